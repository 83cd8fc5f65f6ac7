//! Webhooks over real sockets, on both engines (spec 4.4, 5.3, 6).

mod delivery;
mod destinations;
mod failures;
mod schedule;
