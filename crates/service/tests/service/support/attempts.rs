//! What is known of attempts afterwards: in the outbox and in the service's own counters.

use std::fmt::Debug;
use std::str::FromStr;

use svc_service::domain::Order;
use svc_service::store::{DeliveryRecord, EventState};

use super::TestDelivery;

impl TestDelivery {
    /// The attempts at the only event of an order, oldest first.
    pub(crate) async fn attempts(&self, order: &Order) -> Vec<DeliveryRecord> {
        let event = self.event(order).await;
        self.app.store.deliveries_of(&event.id).await.unwrap()
    }

    /// How many attempts have ended so.
    pub(crate) fn ended(&self, outcome: &str) -> usize {
        self.figure(&format!("svc_webhook_attempts_total{{outcome=\"{outcome}\"}}"))
    }

    /// What the figures say under this name.
    pub(crate) fn figure<T: FromStr<Err: Debug>>(&self, name: &str) -> T {
        figure(&self.app.metrics.render(), name)
    }

    /// That the first attempt failed and the second is due as the schedule says, and the attempt.
    pub(crate) async fn failed_once(&self, order: &Order, what: &str) -> DeliveryRecord {
        let event = self.event(order).await;
        assert_eq!((event.state, event.attempts), (EventState::Queued, 1), "{what}");
        let attempts = self.attempts(order).await;
        let [attempt] = &attempts[..] else { panic!("{what}: {attempts:?}") };
        let wait_ms = event.next_attempt_at.as_millisecond() - attempt.at.as_millisecond();
        assert!((4_000..=6_000).contains(&wait_ms), "{what}: {wait_ms} ms");
        assert!(attempt.answer_start.len() <= 512, "{what}");
        attempt.clone()
    }

    /// That the first attempt was the last, and the attempt.
    pub(crate) async fn delivered_at_once(&self, order: &Order, what: &str) -> DeliveryRecord {
        let event = self.event(order).await;
        assert_eq!((event.state, event.attempts), (EventState::Delivered, 1), "{what}");
        let attempt = self.attempts(order).await.remove(0);
        assert_eq!(attempt.error, None, "{what}");
        assert!(attempt.answer_start.len() <= 512, "{what}");
        attempt
    }
}

/// The one under this name, among the text of all of them.
pub(crate) fn figure<T: FromStr<Err: Debug>>(figures: &str, name: &str) -> T {
    let told = figures.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    told.unwrap_or_else(|| panic!("no {name} in:\n{figures}")).parse().unwrap()
}
