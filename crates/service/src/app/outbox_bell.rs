//! Rung when an event is committed, so that it is sent at once instead of at the next look.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::{Notify, oneshot};

use crate::domain::Lane;

/// Lanes remembered between two looks. More are found by looking, a moment later.
const LANES_MAX: usize = 4_096;

/// Orders ring it, the dispatcher hears it; neither knows the other. A lost ring loses nothing:
/// the event is in the outbox.
#[derive(Debug, Default)]
pub struct OutboxBell {
    lanes: Mutex<HashSet<Lane>>,
    waiting: Mutex<Vec<oneshot::Sender<Option<Timestamp>>>>,
    rung: Notify,
}

impl OutboxBell {
    pub fn ring(&self, lane: Lane) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() < LANES_MAX && lanes.insert(lane) {
            drop(lanes);
            self.rung.notify_one();
        }
    }

    /// Waits until everything due is sent and recorded; then tells when there is next something to
    /// send, as far as only the clock knows. Where nobody delivers, it waits until somebody does.
    pub async fn sent(&self) -> Option<Timestamp> {
        let (tell, told) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(tell);
        self.rung.notify_one();
        told.await.ok().flatten()
    }

    /// Who waits for everything to be sent.
    pub fn take_waiting(&self) -> Vec<oneshot::Sender<Option<Timestamp>>> {
        std::mem::take(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for a ring, also for one that came before anybody listened.
    pub async fn heard(&self) {
        self.rung.notified().await;
    }

    /// The lanes rung for since the last call.
    pub fn take(&self) -> HashSet<Lane> {
        std::mem::take(&mut self.lanes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
