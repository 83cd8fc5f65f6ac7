//! Whether anything has happened on this node: pages that are open look again then.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct News {
    count: AtomicU64,
    ended: AtomicBool,
}

impl News {
    pub fn tell(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Another number when there is news; none when the service stops.
    pub fn count(&self) -> Option<u64> {
        (!self.ended.load(Ordering::Relaxed)).then(|| self.count.load(Ordering::Relaxed))
    }

    /// Whoever waits for news goes home.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}
