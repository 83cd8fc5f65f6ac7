//! Moments before and after others: the end of time itself is as near as we get to it.

use jiff::{SignedDuration, Timestamp};

pub fn after(moment: Timestamp, by: SignedDuration) -> Timestamp {
    moment.saturating_add(by).expect(ONLY_CALENDARS_FAIL)
}

pub fn before(moment: Timestamp, by: SignedDuration) -> Timestamp {
    moment.saturating_sub(by).expect(ONLY_CALENDARS_FAIL)
}

/// Days and months have no length without a time zone; a duration has one.
const ONLY_CALENDARS_FAIL: &str = "durations can be added to any moment";

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
