//! The only place that asks what time it is.

use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};

/// The service's clock. A sandbox may move it forward; a standing one moves only when told to.
#[derive(Debug)]
pub struct Clock {
    standing_at: Option<Timestamp>,
    ahead_ms: AtomicI64,
}

impl Clock {
    pub fn system() -> Self {
        Self { standing_at: None, ahead_ms: AtomicI64::new(0) }
    }

    /// For weeks in a moment: every test that needs the schedule.
    pub fn standing(at: Timestamp) -> Self {
        Self { standing_at: Some(at), ahead_ms: AtomicI64::new(0) }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one clock of the service")]
    pub fn now(&self) -> Timestamp {
        // Whole milliseconds, as stored: a time read back equals the time that was written.
        let base = self.standing_at.unwrap_or_else(Timestamp::now).as_millisecond();
        let ahead = self.ahead_ms.load(Ordering::Acquire);
        Timestamp::from_millisecond(base.saturating_add(ahead)).unwrap_or(Timestamp::MAX)
    }

    /// The machine's own time, however far a sandbox was moved: for what belongs to people, not orders.
    pub fn machine_now(&self) -> Timestamp {
        self.now().saturating_sub(self.ahead()).unwrap_or(Timestamp::MIN)
    }

    pub fn advance(&self, by: SignedDuration) {
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX).max(0);
        self.ahead_ms.fetch_add(by_ms, Ordering::AcqRel);
    }

    /// At least so far ahead of the machine's time; never back.
    pub fn be_ahead_by(&self, by: SignedDuration) {
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.ahead_ms.fetch_max(by_ms, Ordering::AcqRel);
    }

    pub fn ahead(&self) -> SignedDuration {
        SignedDuration::from_millis(self.ahead_ms.load(Ordering::Acquire))
    }

    /// For measuring how long something took; never for deciding when something is due.
    #[expect(clippy::disallowed_methods, reason = "this is the one clock of the service")]
    pub fn stopwatch(&self) -> std::time::Instant {
        std::time::Instant::now()
    }
}
