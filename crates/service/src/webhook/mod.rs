//! Telling merchants: outbox row → claim with a lease → sign → POST → record (spec 4.4, 5.3, 6).
//!
//! This room and `orders` do not know each other. They meet in the outbox table, which is why
//! either may crash.

mod breaker;
mod catching_up;
mod chaos;
mod connections;
mod delivery;
mod dispatcher;
mod guard;
mod lanes;
mod limits;
mod look_up;
mod sender;
mod signature;
mod unrecorded;

pub use connections::SenderError;
pub use dispatcher::Dispatcher;
pub use look_up::{LookUp, look_up};
pub(crate) use signature::signature_headers;
