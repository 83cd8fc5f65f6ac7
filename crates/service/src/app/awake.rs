//! Since when this node could hear of payments.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::Clock;
use crate::domain::Steady;

/// The database did not answer, or we were stopped, for so long that rails may have spoken in vain.
const ABSENCE: Duration = Duration::from_secs(60);

/// What a rail said while we were away, or while the database was, is told again later: an order that is closing waits
/// for that as long as it would have waited without.
pub struct Awake(Mutex<Times>);

struct Times {
    since: Timestamp,
    looked_at: Steady,
}

impl Awake {
    pub fn since_now(clock: &Clock) -> Self {
        Self(Mutex::new(Times { since: clock.now(), looked_at: clock.steady() }))
    }

    /// The database has just answered whoever does what is due. Since when that has been so without a long silence:
    /// whoever ends an order asks for it right before, because we may have been stopped a moment ago.
    pub fn look(&self, clock: &Clock) -> Timestamp {
        self.times().look(clock.steady(), || clock.now())
    }

    /// We could not hear until now.
    pub fn slept(&self, clock: &Clock) {
        self.times().since = clock.now();
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Times {
    fn look(&mut self, at: Steady, now: impl FnOnce() -> Timestamp) -> Timestamp {
        if at.duration_since(self.looked_at) > ABSENCE {
            self.since = now();
        }
        self.looked_at = at;
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_silence_is_an_absence_and_much_work_is_not() {
        let (began, minute) = (Timestamp::UNIX_EPOCH, Duration::from_secs(60));
        let mut times = Times { since: began, looked_at: Steady::since_boot(minute) };
        let mut at = times.looked_at;
        for _ in 0..100 {
            at = at.after(minute);
            assert_eq!(times.look(at, || Timestamp::MAX), began, "a turn may take hours");
        }
        let back = Timestamp::from_second(9_000).unwrap();
        at = at.after(minute + Duration::from_millis(1));
        assert_eq!(times.look(at, || back), back);
        assert_eq!(times.look(at, || Timestamp::MAX), back);
    }
}
