//! How much a destination is trusted with: many requests while it answers, one probe when it does not.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::limits::DESTINATION_MAX;
use crate::domain::after;

/// What a destination nobody knows may hold: one that hangs must not hold more.
const LIMIT_START: u32 = 4;
/// Failures in a row after which only probes go out.
const FAILURES_MAX: u32 = 5;
/// Between two probes: short at first, and never so long that a merchant that is back waits.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// After pauses like this one events may wait for hours: they are sent before their time. What failed for the first
/// time in a shorter one comes again within seconds by itself.
const PAUSE_LONG: Duration = Duration::from_secs(4);

/// What an attempt says about its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Taken,
    Failed,
    /// Nobody was asked; or it refused, promptly and once more, what it had refused before.
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Breaker {
    state: State,
    failures_in_a_row: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Answers; the limit grows with each success and halves with each failure.
    Flowing { limit: u32 },
    /// Does not answer; nothing is sent until then.
    Paused { until: Timestamp, pause: Duration },
    /// One request is out to see whether it answers again.
    Probing { pause: Duration },
}

impl Breaker {
    pub(super) fn new() -> Self {
        Self { state: State::Flowing { limit: LIMIT_START }, failures_in_a_row: 0 }
    }

    /// How many more requests may start.
    pub(super) fn room(&self, now: Timestamp, in_flight: u32) -> u32 {
        match self.state {
            State::Flowing { limit } => limit.saturating_sub(in_flight),
            State::Paused { until, .. } => u32::from(now >= until),
            State::Probing { .. } => 0,
        }
    }

    /// When there will be room again although nothing ends.
    pub(super) fn paused_until(&self) -> Option<Timestamp> {
        match self.state {
            State::Paused { until, .. } => Some(until),
            State::Flowing { .. } | State::Probing { .. } => None,
        }
    }

    /// A request went out.
    pub(super) fn started(&mut self) {
        if let State::Paused { pause, .. } = self.state {
            self.state = State::Probing { pause };
        }
    }

    /// It has not answered for so long that whatever waits for it may go once it does.
    pub(super) fn is_long_broken(&self) -> bool {
        match self.state {
            State::Paused { pause, .. } | State::Probing { pause } => pause >= PAUSE_LONG,
            State::Flowing { .. } => false,
        }
    }

    /// True when this ends a pause.
    pub(super) fn succeeded(&mut self) -> bool {
        self.failures_in_a_row = 0;
        match &mut self.state {
            State::Flowing { limit } => {
                *limit = (*limit + 1).min(DESTINATION_MAX);
                false
            }
            // From one, and one more with each success: twice as many each round.
            State::Paused { .. } | State::Probing { .. } => {
                self.state = State::Flowing { limit: 2 };
                true
            }
        }
    }

    /// It was not asked, or its answer says nothing about it: if it was a probe, another may go.
    pub(super) fn said_nothing(&mut self, now: Timestamp) {
        if let State::Probing { pause } = self.state {
            self.state = State::Paused { until: now, pause };
        }
    }

    pub(super) fn failed(&mut self, now: Timestamp) {
        self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
        let pause = match self.state {
            State::Flowing { .. } if self.failures_in_a_row >= FAILURES_MAX => PAUSE_FIRST,
            State::Flowing { limit } => {
                self.state = State::Flowing { limit: (limit / 2).max(1) };
                return;
            }
            State::Probing { pause } => (pause * 2).min(PAUSE_MAX),
            // Sent before the pause began: it says nothing new.
            State::Paused { .. } => return,
        };
        let wait = SignedDuration::try_from(pause).expect("seconds fit");
        let until = after(now, wait);
        self.state = State::Paused { until, pause };
    }

    /// Nothing is known that would be missed.
    pub(super) fn is_calm(&self) -> bool {
        matches!(self.state, State::Flowing { .. }) && self.failures_in_a_row == 0
    }

    pub(super) fn is_broken(&self) -> bool {
        !matches!(self.state, State::Flowing { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    fn broken() -> Breaker {
        let mut breaker = Breaker::new();
        (0..FAILURES_MAX).for_each(|_| breaker.failed(at(0)));
        breaker
    }

    #[test]
    fn a_stranger_may_hold_four_requests_and_a_friend_sixty_four() {
        let mut breaker = Breaker::new();
        assert_eq!(breaker.room(at(0), 0), 4);
        assert_eq!(breaker.room(at(0), 4), 0);
        (0..1_000).for_each(|_| assert!(!breaker.succeeded()));
        assert_eq!(breaker.room(at(0), 0), 64);
        breaker.failed(at(0));
        assert_eq!(breaker.room(at(0), 0), 32);
    }

    #[test]
    fn after_five_failures_one_probe_goes_out_and_its_success_opens_the_ramp() {
        let mut breaker = broken();
        assert!(breaker.is_broken());
        assert_eq!(breaker.room(at(999), 0), 0);
        assert_eq!(breaker.room(at(1_000), 0), 1);
        breaker.started();
        assert_eq!(breaker.room(at(1_000), 1), 0, "one probe, not two");
        assert!(breaker.succeeded());
        let ramp: Vec<_> = (0..3)
            .map(|_| {
                let limit = breaker.room(at(1_000), 0);
                (0..limit).for_each(|_| assert!(!breaker.succeeded()));
                limit
            })
            .collect();
        assert_eq!(ramp, [2, 4, 8]);
    }

    #[test]
    fn pauses_double_to_fifteen_seconds() {
        let mut breaker = broken();
        let pauses: Vec<_> = (0..6)
            .map(|_| {
                let until = breaker.paused_until().unwrap();
                breaker.started();
                breaker.failed(until);
                breaker.paused_until().unwrap().duration_since(until).as_secs()
            })
            .collect();
        assert_eq!(pauses, [2, 4, 8, 15, 15, 15]);
    }

    #[test]
    fn requests_from_before_the_pause_do_not_prolong_it() {
        let mut breaker = broken();
        let until = breaker.paused_until();
        (0..59).for_each(|_| breaker.failed(at(500)));
        assert_eq!(breaker.paused_until(), until);
    }

    proptest! {
        #[test]
        fn there_is_always_a_way_on_and_never_more_than_the_limit(
            results in prop::collection::vec(any::<bool>(), 0..200)
        ) {
            let (mut breaker, mut now) = (Breaker::new(), 0);
            for good in results {
                if let Some(until) = breaker.paused_until() {
                    now = now.max(until.as_millisecond());
                }
                let room = breaker.room(at(now), 0);
                prop_assert!((1..=DESTINATION_MAX).contains(&room), "{breaker:?}");
                breaker.started();
                if good { breaker.succeeded(); } else { breaker.failed(at(now)); }
            }
        }
    }
}
