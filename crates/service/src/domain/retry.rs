//! Why a webhook was not delivered and when it is tried again: the schedule is data, the decision is pure.

use std::time::Duration;

use super::words::words;

/// Nothing is given up before this long after the event became due, nor before so many attempts,
/// however the dice fall.
pub const RETRY_HORIZON: Duration = Duration::from_secs(35 * 24 * 3600);
pub const DELIVERIES_MIN: u32 = 110;

/// Seconds before attempt 1, 2, 3 …; afterwards every `TAIL`.
const STEPS_S: [u64; 8] = [0, 5, 30, 120, 600, 1_800, 3_600, 10_800];
const TAIL: Duration = Duration::from_secs(8 * 3600);
/// Where the schedule goes on for a page that is gone for good: at an hour.
const STEP_OF_GONE: u32 = 6;
/// Spread of each delay, so that merchants are not called back in step.
const JITTER: f64 = 0.2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    After(Duration),
    /// The horizon has passed: the event stays listed and can be replayed.
    Exhausted,
}

/// The wait before the next attempt, `attempts` having failed, the last for this reason.
///
/// `dice` in 0..1 chooses within the jitter; `retry_after` is what the merchant asked for, honoured
/// between the schedule's own delay and twice that, and never beyond the tail.
pub fn next_retry(
    failure: Failure,
    attempts: u32,
    since_due: Duration,
    retry_after: Option<Duration>,
    dice: f64,
) -> Retry {
    let base = match failure {
        Failure::Gone => base_delay(attempts.max(STEP_OF_GONE)),
        _ => base_delay(attempts),
    };
    let spread = base.mul_f64(1.0 - JITTER + 2.0 * JITTER * dice.clamp(0.0, 1.0));
    let delay = match retry_after {
        Some(asked) => asked.clamp(base, (base * 2).min(TAIL).max(base)).max(spread),
        None => spread,
    };
    if since_due >= RETRY_HORIZON && attempts >= DELIVERIES_MIN {
        Retry::Exhausted
    } else {
        Retry::After(delay)
    }
}

fn base_delay(attempts: u32) -> Duration {
    usize::try_from(attempts)
        .ok()
        .and_then(|n| STEPS_S.get(n))
        .map_or(TAIL, |seconds| Duration::from_secs(*seconds))
}

words! {
    /// Why an event was not delivered. The label of a metric too, so there are few.
    pub enum Failure {
        /// The URL or an address of its host is not one we send to.
        Refused = "refused",
        Dns = "dns",
        Connect = "connect",
        Tls = "tls",
        Timeout = "timeout",
        /// The connection broke or what came was not HTTP.
        Broken = "broken",
        /// An answer, but not a 2xx.
        Status = "status",
        /// 410: somebody has taken the page away and says so.
        Gone = "gone",
        /// We could not sign: nothing was sent.
        Unsigned = "unsigned",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIDDLE: f64 = 0.5;

    fn refused(attempts: u32, since: Duration, asked: Option<Duration>, dice: f64) -> Retry {
        next_retry(Failure::Status, attempts, since, asked, dice)
    }

    #[test]
    fn the_schedule_is_the_documented_one() {
        let expected_s = [0, 5, 30, 120, 600, 1_800, 3_600, 10_800, 28_800, 28_800];
        for (attempts, seconds) in (0u32..).zip(expected_s) {
            assert_eq!(
                refused(attempts, Duration::ZERO, None, MIDDLE),
                Retry::After(Duration::from_secs(seconds)),
                "after {attempts} attempts"
            );
        }
    }

    #[test]
    fn a_page_that_is_gone_is_asked_for_every_hour_at_most() {
        let waits = |attempts| next_retry(Failure::Gone, attempts, Duration::ZERO, None, MIDDLE);
        for (attempts, seconds) in [(1, 3_600), (6, 3_600), (7, 10_800), (8, 28_800)] {
            assert_eq!(waits(attempts), Retry::After(Duration::from_secs(seconds)), "{attempts}");
        }
    }

    #[test]
    fn thirty_five_days_hold_at_least_110_attempts() {
        let (mut attempts, mut elapsed) = (0, Duration::ZERO);
        while let Retry::After(delay) = refused(attempts, elapsed, None, MIDDLE) {
            elapsed += delay;
            attempts += 1;
        }
        assert!(attempts >= DELIVERIES_MIN, "{attempts} attempts");
        assert!(elapsed >= RETRY_HORIZON && elapsed < RETRY_HORIZON + 2 * TAIL);
    }

    #[test]
    fn retry_after_is_honoured_between_once_and_twice_the_delay() {
        let asked =
            |seconds| refused(3, Duration::ZERO, Some(Duration::from_secs(seconds)), MIDDLE);
        assert_eq!(asked(1), Retry::After(Duration::from_secs(120)));
        assert_eq!(asked(200), Retry::After(Duration::from_secs(200)));
        assert_eq!(asked(100_000), Retry::After(Duration::from_secs(240)));
        let tail = refused(20, Duration::ZERO, Some(Duration::from_secs(1_000_000)), MIDDLE);
        assert_eq!(tail, Retry::After(TAIL));
    }

    proptest! {
        #[test]
        fn jitter_stays_within_a_fifth(attempts in 0u32..200, dice in 0.0f64..1.0) {
            let base = base_delay(attempts).as_secs_f64();
            match refused(attempts, Duration::ZERO, None, dice) {
                Retry::After(delay) => {
                    prop_assert!(delay.as_secs_f64() >= base * 0.799);
                    prop_assert!(delay.as_secs_f64() <= base * 1.201);
                }
                Retry::Exhausted => prop_assert!(false, "exhausted at once"),
            }
        }

        #[test]
        fn it_ends_after_the_horizon_and_enough_attempts_and_not_before(
            attempts in 0u32..500, since_s in 0u64..5_000_000, dice in 0.0f64..1.0
        ) {
            let since = Duration::from_secs(since_s);
            let ended = refused(attempts, since, None, dice) == Retry::Exhausted;
            prop_assert_eq!(ended, since >= RETRY_HORIZON && attempts >= DELIVERIES_MIN);
        }
    }
}
