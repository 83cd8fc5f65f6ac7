//! The outbox on every engine: claims, leases, superseding, replays and the feed.

mod claims;
mod feed;
mod races;
mod replay;
mod superseding;

use crate::support::{TestDatabase, at, cancel, confirm, events_of, new_order, random};
use svc_service::app::Clock;
use svc_service::domain::*;
use svc_service::store::*;

/// A store with events in it, and the hands of a dispatcher.
struct Outbox {
    store: Store,
    database: TestDatabase,
}

impl Outbox {
    async fn open(database: TestDatabase) -> Self {
        Self { store: database.store().await, database }
    }

    /// An order without an event.
    async fn order(&self, application: i64, id: &str) -> Order {
        self.created(new_order(application, id)).await
    }

    /// An order whose `PEN` event is due at that moment.
    async fn announced(&self, application: i64, id: &str, ms: i64) -> Order {
        let mut new = new_order(application, id);
        new.created_at = at(ms);
        self.created(new.announced(EventId::assign(at(ms), random()))).await
    }

    /// An order whose only event is `CON`, due at that moment.
    async fn paid(&self, application: i64, id: &str, ms: i64) -> Order {
        let order = self.order(application, id).await;
        self.pay(&order, ms).await;
        order
    }

    async fn created(&self, new: NewOrder) -> Order {
        match self.store.create_order(new).await.unwrap() {
            Created::New(order) => order,
            other => panic!("expected a new order, got {other:?}"),
        }
    }

    async fn pay(&self, order: &Order, ms: i64) {
        let change = moved(confirm(order), ms);
        assert_eq!(self.store.commit(change).await.unwrap(), Committed::Done);
    }

    async fn cancel(&self, order: &Order, ms: i64) {
        let change = moved(cancel(order), ms);
        assert_eq!(self.store.commit(change).await.unwrap(), Committed::Done);
    }

    /// Claims events of an application, with a lease of their own.
    async fn claim(&self, application: i64, most: usize, by_ms: i64) -> Batch {
        self.claim_wants(vec![want(application, most, by_ms)]).await
    }

    async fn claim_wants(&self, wants: Vec<Want>) -> Batch {
        let mut token = [0; 16];
        token[..10].copy_from_slice(&random());
        let lease = LeaseToken::assign(token);
        let mut events = self.store.claim(wants, &lease, Clock::system().steady()).await.unwrap();
        events.sort_by(|a, b| a.id.cmp(&b.id));
        Batch { events, lease }
    }

    /// Everything of an application that can be claimed, whenever it is due.
    async fn claim_all(&self, application: i64) -> Batch {
        self.claim(application, 1_000, 1_000_000_000).await
    }

    /// Claims everything of an application and ends it so.
    async fn end_all(&self, application: i64, verdict: Verdict) {
        let batch = self.claim_all(application).await;
        assert!(!batch.events.is_empty(), "there is nothing to end");
        for event in &batch.events {
            self.record(event, &batch.lease, verdict).await;
        }
    }

    async fn record(&self, event: &Claimed, lease: &LeaseToken, verdict: Verdict) -> Recorded {
        self.store.record(vec![attempt(event, lease, verdict)]).await.unwrap().remove(0)
    }

    /// As if whoever holds a lease had died long ago.
    async fn expire_leases(&self) {
        self.database.sql("update outbox set lease_until_ms = 1 where lease_until_ms > 1").await;
    }

    /// What is told of an order and how far that has come, oldest first.
    async fn told(&self, order: &Order) -> Vec<(Status, EventState)> {
        let events = events_of(&self.store, order).await;
        events.into_iter().map(|event| (event.status, event.state)).collect()
    }

    /// The only event of an order.
    async fn event(&self, order: &Order) -> EventRecord {
        let mut events = events_of(&self.store, order).await;
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }
}

/// What one claim got.
struct Batch {
    events: Vec<Claimed>,
    lease: LeaseToken,
}

impl Batch {
    /// The external ids of the orders, in the order of the events.
    fn orders(&self) -> Vec<String> {
        self.events.iter().map(|event| external_id(&event.body)).collect()
    }

    fn only(&self) -> &Claimed {
        let [event] = &self.events[..] else { panic!("{} events", self.events.len()) };
        event
    }
}

fn external_id(body: &[u8]) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap();
    body["data"]["externalTransactionId"].as_str().unwrap().to_owned()
}

fn lane(application: i64) -> Lane {
    Lane::of(ApplicationId(application), "https://a.ao/hook")
}

fn want(application: i64, most: usize, by_ms: i64) -> Want {
    Want::due_by(at(by_ms), lane(application), most)
}

fn attempt(event: &Claimed, lease: &LeaseToken, verdict: Verdict) -> DeliveryAttempt {
    DeliveryAttempt {
        event: event.id.clone(),
        lease: lease.clone(),
        number: event.attempt,
        at: event.queued_at,
        queued_at: event.queued_at,
        latency_ms: 12,
        http_status: Some(if verdict == Verdict::Delivered { 200 } else { 500 }),
        error: None,
        answer_start: b"ok".to_vec(),
        verdict,
    }
}

/// The same change at another moment.
fn moved(mut change: Change, ms: i64) -> Change {
    change.stamp.at = at(ms);
    change.event.at = at(ms);
    change.event.id = EventId::assign(at(ms), random());
    change
}
