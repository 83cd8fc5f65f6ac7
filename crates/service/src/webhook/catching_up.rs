//! A merchant that was away is back: what waits for it goes before its time, each event once and seldom twice.

use jiff::{SignedDuration, Timestamp};

use crate::domain::{Lane, after};
use crate::store::Want;

/// How far it is. What is due and what is not are claimed in turn, so that neither waits for the other.
pub(super) struct CatchingUp {
    /// Those due before this moment have gone.
    from: Timestamp,
    /// All that is due was claimed: the next claim is for what is not.
    nothing_due: bool,
    /// The first of those that a claim under way has not seen, whatever it says.
    unseen: Option<Timestamp>,
}

impl CatchingUp {
    pub(super) fn from(first: Timestamp) -> Self {
        Self { from: first, nothing_due: false, unseen: Some(first) }
    }

    /// Claimed before, not sent, and there to be claimed again.
    pub(super) fn comes_again(&mut self, due_at: Timestamp) {
        self.from = self.from.min(due_at);
        self.unseen = Some(self.unseen.map_or(due_at, |first| first.min(due_at)));
    }

    pub(super) fn want(&mut self, now: Timestamp, lane: Lane, most: usize) -> Want {
        if !self.nothing_due {
            return Want::due_by(now, lane, most);
        }
        self.unseen = None;
        Want::early(self.from, lane, most)
    }

    /// After a claim that gave as much as it asked for (then the last of it is due at that moment) or less;
    /// whether there is more to catch up on.
    pub(super) fn claimed(&mut self, want: &Want, full_to: Option<Timestamp>) -> bool {
        if !want.is_early() {
            self.nothing_due = full_to.is_none();
            return true;
        }
        self.nothing_due = false;
        let next = full_to.map(|last| {
            // Others may be due at the same moment, and are asked for with the next; no more than once.
            let step = SignedDuration::from_millis(i64::from(last == want.due_from));
            after(last, step)
        });
        let Some(from) = self.unseen.take().into_iter().chain(next).min() else { return false };
        self.from = from;
        true
    }
}
