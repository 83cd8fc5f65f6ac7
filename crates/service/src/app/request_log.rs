//! What partners ask, noted beside the way of their requests and written once a second.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use crate::domain::PartnerId;
use crate::store::LoggedRequest;

/// Requests noted whole in a second. A developer at work makes fewer; under load it is a sample.
const TRACES_PER_SECOND: u32 = 50;
/// Of these, calls of strangers: they must neither fill the database nor take the partners' share.
const STRANGERS_PER_SECOND: u32 = 10;

/// Keeps nobody waiting: what does not fit is not noted.
pub struct RequestLog {
    traces_left: AtomicU32,
    strangers_left: AtomicU32,
    notes: Mutex<Vec<LoggedRequest>>,
    uses: Mutex<HashMap<PartnerId, Timestamp>>,
}

/// What a request turns out to be while it is answered.
#[derive(Debug, Default)]
pub struct Trace(Mutex<Traced>);

#[derive(Clone, Debug, Default)]
pub struct Traced {
    pub partner: Option<PartnerId>,
    pub body: String,
}

impl Default for RequestLog {
    fn default() -> Self {
        Self {
            traces_left: AtomicU32::new(TRACES_PER_SECOND),
            strangers_left: AtomicU32::new(STRANGERS_PER_SECOND),
            notes: Mutex::default(),
            uses: Mutex::default(),
        }
    }
}

impl RequestLog {
    /// Given out until the second's share is used up.
    pub fn trace(&self) -> Option<Arc<Trace>> {
        take_one(&self.traces_left).then(Arc::default)
    }

    /// A stranger's beyond their share is not noted, and its place is a partner's again.
    pub fn note(&self, request: LoggedRequest) {
        if request.partner.is_none() && !take_one(&self.strangers_left) {
            self.traces_left.fetch_add(1, Ordering::Relaxed);
            return;
        }
        lock(&self.notes).push(request);
    }

    /// A partner asked for a token.
    pub fn key_used(&self, partner: PartnerId, at: Timestamp) {
        lock(&self.uses).insert(partner, at);
    }

    /// What there is to write; called once a second, it gives out the next second's share.
    pub fn take(&self) -> (Vec<LoggedRequest>, Vec<(PartnerId, Timestamp)>) {
        self.traces_left.store(TRACES_PER_SECOND, Ordering::Relaxed);
        self.strangers_left.store(STRANGERS_PER_SECOND, Ordering::Relaxed);
        (std::mem::take(&mut lock(&self.notes)), lock(&self.uses).drain().collect())
    }
}

impl Trace {
    pub fn partner(&self, partner: PartnerId) {
        lock(&self.0).partner = Some(partner);
    }

    pub fn body(&self, body: String) {
        lock(&self.0).body = body;
    }

    pub fn read(&self) -> Traced {
        lock(&self.0).clone()
    }
}

fn take_one(left: &AtomicU32) -> bool {
    // A look first: under load nobody writes to what everybody reads.
    left.load(Ordering::Relaxed) > 0
        && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(partner: Option<PartnerId>) -> LoggedRequest {
        LoggedRequest {
            request_id: "req-1".into(),
            at: Timestamp::UNIX_EPOCH,
            partner,
            method: "POST".into(),
            path: "/token".into(),
            status: 401,
            error: None,
            details: None,
            took_us: 1,
            body: String::new(),
        }
    }

    #[test]
    fn strangers_leave_the_partners_their_room() {
        let log = RequestLog::default();
        for _ in 0..1_000 {
            assert!(log.trace().is_some(), "a stranger's place is given back");
            log.note(call(None));
        }
        let of_partners = || (0..1_000).filter(|_| log.trace().is_some()).count();
        assert_eq!(of_partners(), (TRACES_PER_SECOND - STRANGERS_PER_SECOND) as usize);
        log.note(call(Some(PartnerId(1))));
        assert_eq!(log.take().0.len(), STRANGERS_PER_SECOND as usize + 1);
        assert_eq!(of_partners(), TRACES_PER_SECOND as usize, "and each second anew");
    }
}
