//! Verdicts: what was seen against what the contract wants. Pure.

use std::time::Duration;

use super::case::{Case, State, Wanted};
use super::finding::Finding;
use crate::http::Silence;

/// A handler answers in under five seconds (spec 8).
pub(super) const TIME_MAX: Duration = Duration::from_secs(5);

/// What came of a case.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub answer: Result<u16, Silence>,
    pub took: Duration,
    pub effect: Effect,
}

/// What the merchant's own record says afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    NotSeen,
    State {
        before: State,
        wanted: State,
        after: State,
        count: Option<u64>,
    },
    /// Of an order that is not paid as agreed: its state is the merchant's business, its goods stay.
    Held {
        after: State,
        count: Option<u64>,
    },
    /// Of an order that is not the merchant's.
    StillUnknown(bool),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Answer {
        got: u16,
        wanted: Wanted,
    },
    NoAnswer(Silence),
    Slow(Duration),
    Effect {
        is: State,
        wanted: State,
    },
    MadeUpOrder,
    Counted(u64),
    /// Though another amount was paid.
    Fulfilled,
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub case: Case,
    /// `None` when it was not tried.
    pub seen: Option<Seen>,
    pub faults: Vec<Fault>,
}

/// Everything `svc check` has to say.
pub(super) struct Graded {
    pub rows: Vec<Row>,
    pub findings: Vec<Finding>,
    pub effect_seen: bool,
    /// The number of fulfilments was told.
    pub count_seen: bool,
}

impl Graded {
    /// What was not tried was held back by something that failed.
    pub(super) fn passed(&self) -> bool {
        self.rows.iter().all(Row::passed)
    }
}

impl Row {
    pub(super) fn judged(case: Case, seen: Seen) -> Self {
        let faults = faults(case, &seen);
        Self { case, seen: Some(seen), faults }
    }

    pub(super) fn not_tried(case: Case) -> Self {
        Self { case, seen: None, faults: Vec::new() }
    }

    pub(super) fn passed(&self) -> bool {
        self.seen.is_some() && self.faults.is_empty()
    }

    pub(super) fn failed(&self) -> bool {
        !self.faults.is_empty()
    }

    /// The status it was answered with.
    pub(super) fn status(&self) -> Option<u16> {
        self.seen.as_ref()?.answer.as_ref().ok().copied()
    }

    pub(super) fn was_taken(&self) -> bool {
        self.status().is_some_and(|status| (200..300).contains(&status))
    }

    /// It changed what it should not have.
    pub(super) fn acted(&self) -> bool {
        self.faults.iter().any(|fault| matches!(fault, Fault::Effect { .. } | Fault::MadeUpOrder))
    }
}

fn faults(case: Case, seen: &Seen) -> Vec<Fault> {
    let mut faults = Vec::new();
    let wanted = case.wanted();
    match &seen.answer {
        Err(silence) => faults.push(Fault::NoAnswer(silence.clone())),
        Ok(got) if !fits(*got, wanted) => faults.push(Fault::Answer { got: *got, wanted }),
        Ok(_) => {}
    }
    if case == Case::InTime && seen.took >= TIME_MAX {
        faults.push(Fault::Slow(seen.took));
    }
    match seen.effect {
        Effect::State { wanted, after, .. } if wanted != after => {
            faults.push(Fault::Effect { is: after, wanted });
        }
        Effect::Held { count: Some(1..), .. } => faults.push(Fault::Fulfilled),
        Effect::StillUnknown(false) => faults.push(Fault::MadeUpOrder),
        _ => {}
    }
    if let Effect::State { count: Some(count @ 2..), .. } = seen.effect {
        faults.push(Fault::Counted(count));
    }
    faults
}

fn fits(status: u16, wanted: Wanted) -> bool {
    match wanted {
        Wanted::Taken => (200..300).contains(&status),
        Wanted::Refused => status == 401,
        Wanted::Unreadable => (400..500).contains(&status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(status: u16, effect: Effect) -> Seen {
        Seen { answer: Ok(status), took: Duration::from_millis(3), effect }
    }

    fn state(before: State, wanted: State, after: State, count: Option<u64>) -> Effect {
        Effect::State { before, wanted, after, count }
    }

    #[test]
    fn an_answer_is_not_enough_where_the_effect_is_seen() {
        use State::{Confirmed, Pending};
        let paid = state(Pending, Confirmed, Confirmed, None);
        let asleep = state(Pending, Confirmed, Pending, None);
        assert!(Row::judged(Case::Valid, seen(200, paid)).passed());
        assert!(Row::judged(Case::Valid, seen(200, Effect::NotSeen)).passed());
        assert!(Row::judged(Case::Valid, seen(200, asleep)).failed());
        let fooled = state(Pending, Pending, Confirmed, None);
        let row = Row::judged(Case::Capitals, seen(401, fooled));
        assert!(row.failed() && row.acted(), "401, and yet it was paid");
    }

    #[test]
    fn twice_fulfilled_is_a_fault_and_once_is_none() {
        use State::Confirmed;
        for (count, faults) in [(None, 0), (Some(0), 0), (Some(1), 0), (Some(2), 1), (Some(20), 1)]
        {
            let effect = state(Confirmed, Confirmed, Confirmed, count);
            assert_eq!(Row::judged(Case::Parallel, seen(200, effect)).faults.len(), faults);
        }
    }

    #[test]
    fn goods_that_were_not_paid_for_in_full_stay() {
        for (count, passes) in [(None, true), (Some(0), true), (Some(1), false)] {
            let effect = Effect::Held { after: State::Confirmed, count };
            assert_eq!(Row::judged(Case::OtherAmount, seen(200, effect)).passed(), passes);
        }
    }

    #[test]
    fn each_case_wants_its_own_answers() {
        for (case, status, fits) in [
            (Case::Valid, 204, true),
            (Case::Valid, 302, false),
            (Case::UnknownOrder, 404, false),
            (Case::MissingSignature, 401, true),
            (Case::MissingSignature, 403, false),
            (Case::UnsignedNonsense, 500, false),
            (Case::SignedNonsense, 422, true),
            (Case::SignedNonsense, 500, false),
            (Case::SignedNonsense, 200, false),
        ] {
            assert_eq!(Row::judged(case, seen(status, Effect::NotSeen)).passed(), fits, "{case:?}");
        }
    }

    #[test]
    fn five_seconds_are_too_long() {
        let slow = |took| Seen { took, ..seen(200, Effect::NotSeen) };
        assert!(Row::judged(Case::InTime, slow(TIME_MAX)).failed());
        assert!(Row::judged(Case::InTime, slow(Duration::from_millis(4_999))).passed());
    }

    #[test]
    fn what_was_not_tried_did_not_pass() {
        assert!(!Row::not_tried(Case::Valid).passed());
    }
}
