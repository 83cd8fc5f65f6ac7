//! A payment-order service for merchants that charge in Angolan kwanza.
//!
//! Rooms, in the order a request walks through them; ARCHITECTURE.md draws the arrows and a tidy
//! test holds them.

pub mod app;
pub mod config;
pub mod credentials;
pub mod domain;
mod http;
pub mod keys;
mod ops;
pub mod orders;
mod partner;
pub mod server;
pub mod store;
