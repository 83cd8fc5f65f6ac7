//! What was sent, until the store has it: one helping is recorded at a time, and the next gathers meanwhile.

use std::time::Duration;

use crate::domain::Steady;

/// What has waited longer is recorded before anything is claimed: its lease may run out, and then it would be
/// claimed and sent again.
const URGENT_AFTER: Duration = Duration::from_secs(2);

pub(super) struct Unrecorded<T> {
    waiting: Vec<T>,
    /// Since when the first of those has waited.
    waiting_since: Option<Steady>,
    /// The same of those that are being recorded.
    recording_since: Option<Steady>,
    /// The store failed: how long this will take is not known.
    store_failed: bool,
}

impl<T> Default for Unrecorded<T> {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            waiting_since: None,
            recording_since: None,
            store_failed: false,
        }
    }
}

impl<T> Unrecorded<T> {
    pub(super) fn push(&mut self, sent: T, at: Steady) {
        self.waiting.push(sent);
        self.waiting_since.get_or_insert(at);
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the next helping may go.
    pub(super) fn is_ready(&self) -> bool {
        self.recording_since.is_none() && !self.waiting.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<T> {
        self.recording_since = self.waiting_since.take();
        std::mem::take(&mut self.waiting)
    }

    pub(super) fn recorded(&mut self) {
        self.recording_since = None;
        self.store_failed &= !self.waiting.is_empty();
    }

    /// It is kept for the next try.
    pub(super) fn not_recorded(&mut self, sent: Vec<T>) {
        self.waiting.extend(sent);
        self.waiting_since = self.recording_since.take().or(self.waiting_since);
    }

    pub(super) fn store_failed(&mut self) {
        self.store_failed = true;
    }

    /// Whether nothing may be claimed before it.
    pub(super) fn is_urgent(&self, now: Steady) -> bool {
        self.recording_since
            .or(self.waiting_since)
            .is_some_and(|since| self.store_failed || now.duration_since(since) > URGENT_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Steady {
        Steady::since_boot(Duration::from_millis(ms))
    }

    #[test]
    fn what_waits_long_is_urgent_until_it_is_recorded() {
        let mut unrecorded = Unrecorded::default();
        assert!(!unrecorded.is_urgent(at(9_000)), "nothing waits");
        unrecorded.push('a', at(1_000));
        unrecorded.push('b', at(2_500));
        assert!(!unrecorded.is_urgent(at(3_000)));
        assert!(unrecorded.is_urgent(at(3_001)));
        assert_eq!(unrecorded.take(), ['a', 'b']);
        unrecorded.push('c', at(3_100));
        assert!(unrecorded.is_urgent(at(3_200)), "the first helping is not done");
        unrecorded.recorded();
        assert!(!unrecorded.is_urgent(at(5_100)));
        assert!(unrecorded.is_urgent(at(5_101)));
    }

    #[test]
    fn a_helping_goes_when_the_one_before_is_done() {
        let mut unrecorded = Unrecorded::default();
        assert!(!unrecorded.is_ready());
        unrecorded.push('a', at(0));
        assert!(unrecorded.is_ready());
        unrecorded.take();
        unrecorded.push('b', at(1));
        assert!(!unrecorded.is_ready());
        unrecorded.recorded();
        assert!(unrecorded.is_ready());
    }

    #[test]
    fn after_a_failure_of_the_store_all_of_it_is_urgent() {
        let mut unrecorded = Unrecorded::default();
        unrecorded.store_failed();
        assert!(!unrecorded.is_urgent(at(0)), "nothing waits");
        unrecorded.push('a', at(0));
        unrecorded.take();
        unrecorded.push('b', at(1));
        unrecorded.not_recorded(vec!['a']);
        assert!(unrecorded.is_urgent(at(2)));
        assert_eq!(unrecorded.take(), ['b', 'a']);
        // One more came to its end meanwhile, and was not with them.
        unrecorded.push('c', at(3));
        unrecorded.recorded();
        assert!(unrecorded.is_urgent(at(4)));
        unrecorded.take();
        unrecorded.recorded();
        unrecorded.push('d', at(5));
        assert!(!unrecorded.is_urgent(at(6)));
    }
}
