//! Since when this node could hear of payments.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

use super::Clock;

/// What a rail said while we were away, or while the database was, is told again later: an order that is closing waits
/// for that as long as it would have waited without.
pub struct Awake {
    since_ms: AtomicI64,
}

impl Awake {
    pub fn since_now(clock: &Clock) -> Self {
        Self { since_ms: AtomicI64::new(clock.now().as_millisecond()) }
    }

    /// We could not hear until now.
    pub fn slept(&self, clock: &Clock) {
        self.since_ms.store(clock.now().as_millisecond(), Ordering::Relaxed);
    }

    pub fn since(&self) -> Timestamp {
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        Timestamp::from_millisecond(since_ms).expect("it was a time when it was stored")
    }
}
