//! What several parts of the sending reckon with.

use std::time::Duration;

/// Connect, TLS, request and answer together (spec 8: a handler answers in under five seconds).
pub(super) const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(5);
/// Read of an answer at most; whatever follows is not waited for.
pub(super) const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// Requests under way in all: what a node has memory for.
pub(super) const IN_FLIGHT_MAX: usize = 512;
/// Requests under way to one destination at most.
pub(super) const DESTINATION_MAX: u32 = 64;
