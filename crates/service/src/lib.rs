//! A payment-order service for merchants that charge in Angolan kwanza.
//!
//! Each module is a room; ARCHITECTURE.md draws who may import whom, and a tidy test holds it.

pub mod app;
pub mod audit;
mod checkout;
pub mod config;
pub mod console;
pub mod credentials;
pub mod domain;
mod faults;
mod http;
pub mod keys;
mod ops;
pub mod orders;
mod partner;
mod rail_notices;
pub mod rails;
pub mod rekey;
mod sandbox;
mod sdk;
pub mod server;
mod simulation;
pub mod store;
pub mod threads;
mod tls;
pub mod webhook;
