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
    looked_at: Look,
}

/// By the clock that nobody can set, which stands still while the machine's host holds it up, and by the machine's own,
/// which is put right afterwards.
#[derive(Clone, Copy)]
struct Look(Steady, Timestamp);

impl Look {
    fn now(clock: &Clock) -> Self {
        Self(clock.steady(), clock.machine_now())
    }

    fn is_long_after(self, earlier: Self) -> bool {
        self.0.duration_since(earlier.0) > ABSENCE
            || self.1.duration_since(earlier.1).unsigned_abs() > ABSENCE
    }
}

impl Awake {
    pub fn since_now(clock: &Clock) -> Self {
        Self(Mutex::new(Times { since: clock.now(), looked_at: Look::now(clock) }))
    }

    /// The database has just answered whoever does what is due. Since when that has been so without a long silence:
    /// whoever ends an order asks for it right before, because we may have been stopped a moment ago.
    pub fn look(&self, clock: &Clock) -> Timestamp {
        self.times().look(Look::now(clock), || clock.now())
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
    fn look(&mut self, at: Look, now: impl FnOnce() -> Timestamp) -> Timestamp {
        if at.is_long_after(self.looked_at) {
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
        let mut at = Look(Steady::since_boot(minute), began);
        let mut times = Times { since: began, looked_at: at };
        for _ in 0..100 {
            at = Look(at.0.after(minute), at.1 + minute);
            assert_eq!(times.look(at, || Timestamp::MAX), began, "a turn may take hours");
        }
        let over = minute + Duration::from_millis(1);
        let slept = Look(at.0.after(over), at.1);
        // The host held the machine up, and then its clock was put right.
        let held_up = Look(slept.0, at.1 + over);
        for (at, second) in [(slept, 9_000), (held_up, 9_060)] {
            let back = Timestamp::from_second(second).unwrap();
            assert_eq!(times.look(at, || back), back);
            assert_eq!(times.look(at, || Timestamp::MAX), back);
        }
    }
}
