//! The only place that asks what time it is.

use jiff::Timestamp;

#[derive(Debug)]
pub struct Clock(());

impl Clock {
    pub fn system() -> Self {
        Self(())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one clock of the service")]
    pub fn now(&self) -> Timestamp {
        // Whole milliseconds, as stored: a time read back equals the time that was written.
        let now = Timestamp::now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// For measuring how long something took; never for deciding when something is due.
    #[expect(clippy::disallowed_methods, reason = "this is the one clock of the service")]
    pub fn stopwatch(&self) -> std::time::Instant {
        std::time::Instant::now()
    }
}
