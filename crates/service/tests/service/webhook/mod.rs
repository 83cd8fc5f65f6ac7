//! Webhooks over real sockets, on both engines (spec 4.4, 5.3, 6).

mod crowd;
mod delivery;
mod destinations;
mod failures;
mod gate;
mod http2;
mod leases;
mod ordering;
mod rotation;
mod schedule;
