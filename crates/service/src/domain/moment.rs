//! Moments before and after others, on the clock of people and on the one that nobody can set.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// As near to the ends of time as one gets.
pub fn after(moment: Timestamp, by: SignedDuration) -> Timestamp {
    moment.saturating_add(by).expect(ONLY_CALENDARS_FAIL)
}

pub fn before(moment: Timestamp, by: SignedDuration) -> Timestamp {
    moment.saturating_sub(by).expect(ONLY_CALENDARS_FAIL)
}

/// Days and months have no length without a time zone; a duration has one.
const ONLY_CALENDARS_FAIL: &str = "durations can be added to any moment";

/// A moment of a machine's clock that nobody can set, and that does not stand still while the machine sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Steady(Duration);

impl Steady {
    pub const fn since_boot(time: Duration) -> Self {
        Self(time)
    }

    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }

    pub fn duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    pub fn as_millisecond(self) -> i64 {
        i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_over_its_ends() {
        for by in [SignedDuration::MAX, SignedDuration::from_secs(1)] {
            assert_eq!(after(Timestamp::MAX, by), Timestamp::MAX);
            assert_eq!(before(Timestamp::MIN, by), Timestamp::MIN);
        }
        assert_eq!(after(Timestamp::UNIX_EPOCH, SignedDuration::MAX), Timestamp::MAX);
        assert_eq!(before(Timestamp::UNIX_EPOCH, SignedDuration::MAX), Timestamp::MIN);
    }
}
