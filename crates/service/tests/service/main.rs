//! The service from outside: the store on both engines, and the API over real sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod checkout;
mod connector;
mod console;
mod create_payment_order;
mod directory;
mod events;
mod model;
mod notices;
mod opening;
mod ops;
mod outbox;
mod paying;
mod payment_by_external_transaction;
mod races;
mod rekey;
mod sandbox;
mod sdk;
mod simulate;
mod store;
mod support;
mod tidy;
mod token;
mod unheard;
mod webhook;
