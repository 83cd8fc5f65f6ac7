//! The shop from outside: real sockets, a database of its own, and a payment service that does as told.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod create_order;
mod greeting;
mod order_events;
mod order_status;
mod pages;
mod reconcile;
mod secrets;
mod service;
mod support;
mod webhook;
