//! One order, two events: the older is never sent after the newer, and never beside it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use super::{Outbox, attempt, moved};
use crate::support::{TestDatabase, at, confirm, on_both_engines, waiting_events};
use svc_service::domain::*;
use svc_service::store::*;

on_both_engines! {
    what_settles_an_order_supersedes_the_announcement_that_waits,
    an_announcement_that_failed_before_is_superseded_too,
    a_change_that_fails_supersedes_nothing,
    a_delivered_announcement_stays_delivered,
    the_newer_event_waits_for_an_attempt_of_the_older_under_way,
    an_announcement_that_fails_after_it_was_superseded_is_not_tried_again,
    the_newer_event_waits_no_longer_than_the_lease_of_the_older,
    other_orders_wait_for_nobody,
    no_announcement_is_under_way_once_its_successor_was_claimed,
}

use EventState::{Delivered, Queued, Superseded};
use Status::{Cancelled, Confirmed, Pending};

async fn what_settles_an_order_supersedes_the_announcement_that_waits(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let paid = outbox.announced(1, "paid", 10).await;
    let cancelled = outbox.announced(1, "cancelled", 10).await;
    let open = outbox.announced(1, "open", 10).await;
    outbox.pay(&paid, 20).await;
    outbox.cancel(&cancelled, 20).await;
    assert_eq!(outbox.told(&paid).await, [(Pending, Superseded), (Confirmed, Queued)]);
    assert_eq!(outbox.told(&cancelled).await, [(Pending, Superseded), (Cancelled, Queued)]);
    assert_eq!(outbox.told(&open).await, [(Pending, Queued)]);
    let batch = outbox.claim_all(1).await;
    assert_eq!(batch.orders(), ["open", "paid", "cancelled"], "the newer ones go at once");
}

async fn an_announcement_that_failed_before_is_superseded_too(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let order = outbox.announced(1, "order_1", 10).await;
    outbox.end_all(1, Verdict::RetryAt(at(15))).await;
    outbox.pay(&order, 20).await;
    assert_eq!(outbox.told(&order).await, [(Pending, Superseded), (Confirmed, Queued)]);
    assert_eq!(outbox.claim_all(1).await.events.len(), 1);
}

async fn a_change_that_fails_supersedes_nothing(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let taken = outbox.paid(1, "taken", 10).await;
    let order = outbox.announced(1, "order_1", 10).await;
    let mut clashing = moved(confirm(&order), 20);
    clashing.event.id = outbox.event(&taken).await.id;
    let failed = outbox.store.commit(clashing).await;
    assert!(failed.is_err(), "{failed:?}");
    assert_eq!(outbox.told(&order).await, [(Pending, Queued)]);
    // A change that comes too late is none either.
    outbox.pay(&order, 20).await;
    let late = moved(confirm(&order), 30);
    assert_eq!(outbox.store.commit(late).await.unwrap(), Committed::Lost(Confirmed));
    assert_eq!(outbox.told(&order).await, [(Pending, Superseded), (Confirmed, Queued)]);
}

async fn a_delivered_announcement_stays_delivered(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let order = outbox.announced(1, "order_1", 10).await;
    outbox.end_all(1, Verdict::Delivered).await;
    outbox.pay(&order, 20).await;
    assert_eq!(outbox.told(&order).await, [(Pending, Delivered), (Confirmed, Queued)]);
    let batch = outbox.claim_all(1).await;
    let told = outbox.record(batch.only(), &batch.lease, Verdict::Delivered).await;
    assert_eq!(told, Recorded::Done, "nobody waits for the newest");
}

async fn the_newer_event_waits_for_an_attempt_of_the_older_under_way(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let order = outbox.announced(1, "order_1", 10).await;
    let older = outbox.claim_all(1).await;
    outbox.cancel(&order, 20).await;
    assert!(outbox.claim_all(1).await.events.is_empty(), "the older is under way");
    assert_eq!(outbox.told(&order).await, [(Pending, Superseded), (Cancelled, Queued)]);
    let told = outbox.record(older.only(), &older.lease, Verdict::Delivered).await;
    assert_eq!(told, Recorded::Superseded, "somebody has been waiting for this");
    assert_eq!(outbox.told(&order).await, [(Pending, Delivered), (Cancelled, Queued)]);
    assert_eq!(outbox.claim_all(1).await.only().attempt, 1);
}

async fn an_announcement_that_fails_after_it_was_superseded_is_not_tried_again(
    database: TestDatabase,
) {
    let outbox = Outbox::open(database).await;
    for verdict in [Verdict::RetryAt(at(30)), Verdict::Exhausted] {
        let order = outbox.announced(1, &format!("{verdict:?}").replace(' ', ""), 10).await;
        let older = outbox.claim_all(1).await;
        outbox.pay(&order, 20).await;
        let told = outbox.record(older.only(), &older.lease, verdict).await;
        assert_eq!(told, Recorded::Superseded);
        assert_eq!(outbox.told(&order).await, [(Pending, Superseded), (Confirmed, Queued)]);
        let newer = outbox.claim_all(1).await;
        assert_ne!(newer.only().id, older.only().id);
        outbox.record(newer.only(), &newer.lease, Verdict::Delivered).await;
        assert!(outbox.claim_all(1).await.events.is_empty());
    }
}

async fn the_newer_event_waits_no_longer_than_the_lease_of_the_older(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let order = outbox.announced(1, "order_1", 10).await;
    let older = outbox.claim_all(1).await;
    outbox.pay(&order, 20).await;
    assert!(outbox.claim_all(1).await.events.is_empty());
    outbox.expire_leases().await;
    let newer = outbox.claim_all(1).await;
    assert_ne!(newer.only().id, older.only().id, "the older is not sent again");
    outbox.record(newer.only(), &newer.lease, Verdict::Delivered).await;
    // Whoever held the older one wakes up: its failure brings nothing back.
    outbox.record(older.only(), &older.lease, Verdict::RetryAt(at(30))).await;
    assert_eq!(outbox.told(&order).await, [(Pending, Superseded), (Confirmed, Delivered)]);
    assert!(outbox.claim_all(1).await.events.is_empty());
}

async fn other_orders_wait_for_nobody(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let slow = outbox.announced(1, "slow", 10).await;
    let older = outbox.claim_all(1).await;
    outbox.pay(&slow, 20).await;
    outbox.paid(1, "other", 20).await;
    assert_eq!(outbox.claim_all(1).await.orders(), ["other"]);
    // A record of an order without a newer event tells so.
    let alone = outbox.announced(1, "alone", 20).await;
    let batch = outbox.claim_all(1).await;
    assert_eq!(batch.orders(), ["alone"]);
    let told = outbox.record(batch.only(), &batch.lease, Verdict::RetryAt(at(30))).await;
    assert_eq!(told, Recorded::Done);
    assert_eq!(outbox.told(&alone).await, [(Pending, Queued)]);
    let told = outbox.record(older.only(), &older.lease, Verdict::Delivered).await;
    assert_eq!(told, Recorded::Superseded);
}

/// What claimers saw, in the order they saw it.
#[derive(Default)]
struct Seen {
    /// Orders whose announcement was claimed and is not about to be recorded.
    announcing: HashSet<String>,
    /// Orders whose newer event was claimed.
    settled: HashSet<String>,
    /// Orders that were in both.
    wrong: Vec<String>,
}

async fn no_announcement_is_under_way_once_its_successor_was_claimed(database: TestDatabase) {
    const ORDERS: usize = 600;
    const CLAIMERS: usize = 8;
    let outbox = Arc::new(Outbox::open(database).await);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let paying: Vec<_> = (0..ORDERS)
        .map(|number| {
            let outbox = Arc::clone(&outbox);
            tokio::spawn(async move {
                let order = outbox.announced(1, &format!("order_{number}"), 10).await;
                // At some moment of the claims below.
                for _ in 0..number % 40 {
                    tokio::task::yield_now().await;
                }
                outbox.pay(&order, 20).await;
            })
        })
        .collect();
    let claimers: Vec<_> = (0..CLAIMERS)
        .map(|_| {
            let (outbox, seen) = (Arc::clone(&outbox), Arc::clone(&seen));
            tokio::spawn(async move {
                let over = |seen: &Seen| seen.settled.len() == ORDERS || !seen.wrong.is_empty();
                while !over(&seen.lock().unwrap()) {
                    claim_and_end(&outbox, &seen).await;
                }
            })
        })
        .collect();
    for task in paying.into_iter().chain(claimers) {
        task.await.unwrap();
    }
    let wrong = std::mem::take(&mut seen.lock().unwrap().wrong);
    assert!(wrong.is_empty(), "older after or beside newer: {wrong:?}");
    assert_eq!(waiting_events(&outbox.store).await, 0);
}

/// An announcement fails every time, so that it stays until it is superseded.
async fn claim_and_end(outbox: &Outbox, seen: &Mutex<Seen>) {
    let batch = outbox.claim(1, 16, 1_000_000).await;
    for event in &batch.events {
        let id = super::external_id(&event.body);
        let mut seen = seen.lock().unwrap();
        let fresh = if announces(event) {
            seen.announcing.insert(id.clone())
        } else {
            seen.settled.insert(id.clone())
        };
        assert!(fresh, "{id} was claimed twice");
        if seen.announcing.contains(&id) && seen.settled.contains(&id) {
            seen.wrong.push(id);
        }
    }
    for event in &batch.events {
        let mut verdict = Verdict::Delivered;
        if announces(event) {
            // Later each time: what was settled must have its turn.
            verdict = Verdict::RetryAt(at(20 + i64::from(event.attempt)));
            seen.lock().unwrap().announcing.remove(&super::external_id(&event.body));
        }
        let told = outbox.store.record(vec![attempt(event, &batch.lease, verdict)]).await.unwrap();
        assert_ne!(told, [Recorded::LeaseLost]);
    }
}

fn announces(event: &Claimed) -> bool {
    String::from_utf8_lossy(&event.body).contains(r#""paymentStatus":"PEN""#)
}
