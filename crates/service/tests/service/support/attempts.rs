//! What is known of attempts afterwards: in the outbox and in the service's own counters.

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
        let line = format!("svc_webhook_attempts_total{{outcome=\"{outcome}\"}} ");
        let metrics = self.app.metrics.render();
        let count = metrics.lines().find_map(|text| text.strip_prefix(line.as_str()));
        count.unwrap_or_else(|| panic!("{outcome} is not counted")).parse().unwrap()
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
