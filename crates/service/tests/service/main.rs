//! The service from outside: the store on both engines, and the API over real sockets.

mod create_payment_order;
mod ops;
mod payment_by_external_transaction;
mod store;
mod support;
mod tidy;
mod token;
