//! Two statements at once on PostgreSQL, one of them stopped half-way by a lock the test holds.
//! On SQLite there is one writer and no such moment.

use std::sync::Arc;
use std::time::Duration;

use super::{Outbox, attempt, moved};
use crate::support::{TestDatabase, at, confirm, patiently};
use svc_service::domain::*;
use svc_service::store::*;
use tokio::task::JoinHandle;

/// A lock on the events of an order, and somebody who sees who waits for it.
struct Held {
    holder: tokio_postgres::Client,
    /// Not the holder itself: within a transaction the activity is always the same.
    watcher: tokio_postgres::Client,
}

impl Held {
    async fn on(outbox: &Outbox, order: &Order) -> Self {
        let holder = outbox.database.connection().await;
        let reference = order.reference_number.as_str();
        holder
            .batch_execute(&format!(
                "begin; select 1 from outbox where reference_number = '{reference}' for update"
            ))
            .await
            .unwrap();
        Self { holder, watcher: outbox.database.connection().await }
    }

    /// Waits until so many statements wait for locks, or the last of them needs none.
    async fn until_waiting<T>(&self, count: i64, last: &JoinHandle<T>) {
        let sql = "select count(*) from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'";
        let waiting = async || -> i64 { self.watcher.query_one(sql, &[]).await.unwrap().get(0) };
        patiently(async { while !last.is_finished() && waiting().await < count {} }).await;
    }

    async fn release(self) {
        self.holder.batch_execute("commit").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_settled_during_a_replay_is_not_announced_after_it() {
    let outbox = Arc::new(Outbox::open(TestDatabase::postgres().await).await);
    let announced = outbox.announced(1, "announced", 10).await;
    let other = outbox.announced(1, "other", 10).await;
    outbox.end_all(1, Verdict::Delivered).await;
    let held = Held::on(&outbox, &other).await;
    let replay = {
        let outbox = Arc::clone(&outbox);
        tokio::spawn(async move {
            outbox
                .store
                .replay(EventFilter::default(), at(50), Author::command_line(None), "test")
                .await
        })
    };
    held.until_waiting(1, &replay).await;
    assert!(!replay.is_finished(), "the replay is half-way");
    let paying = {
        let (outbox, change) = (Arc::clone(&outbox), moved(confirm(&announced), 60));
        tokio::spawn(async move { outbox.store.commit(change).await })
    };
    held.until_waiting(2, &paying).await;
    held.release().await;
    replay.await.unwrap().unwrap();
    assert_eq!(paying.await.unwrap().unwrap(), Committed::Done);
    let told = outbox.told(&announced).await;
    assert_eq!(told[1], (Status::Confirmed, EventState::Queued));
    assert_ne!(told[0].1, EventState::Queued, "the older event will be sent after the newer");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_knows_of_a_write_that_nobody_sees_yet() {
    let outbox = Arc::new(Outbox::open(TestDatabase::postgres().await).await);
    let order = outbox.announced(1, "order_1", 10).await;
    let unseen_for = async || {
        let page =
            FeedPage { application: ApplicationId(1), after: None, limit: 10, undelivered: false };
        outbox.store.feed(page).await.unwrap().unseen_for
    };
    assert_eq!(unseen_for().await, Duration::ZERO);
    let held = Held::on(&outbox, &order).await;
    assert_eq!(unseen_for().await, Duration::ZERO, "not of what others do");
    let paying = {
        let (outbox, change) = (Arc::clone(&outbox), moved(confirm(&order), 20));
        tokio::spawn(async move { outbox.store.commit(change).await })
    };
    held.until_waiting(1, &paying).await;
    assert!(unseen_for().await > Duration::ZERO);
    held.release().await;
    assert_eq!(paying.await.unwrap().unwrap(), Committed::Done);
    assert_eq!(unseen_for().await, Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_waited_for_the_newer_event_tells_of_it() {
    let outbox = Arc::new(Outbox::open(TestDatabase::postgres().await).await);
    let order = outbox.announced(1, "order_1", 10).await;
    let older = outbox.claim_all(1).await;
    let held = Held::on(&outbox, &order).await;
    let paying = {
        let (outbox, change) = (Arc::clone(&outbox), moved(confirm(&order), 20));
        tokio::spawn(async move { outbox.store.commit(change).await })
    };
    held.until_waiting(1, &paying).await;
    let recording = {
        let outbox = Arc::clone(&outbox);
        let attempt = attempt(older.only(), &older.lease, Verdict::Delivered);
        tokio::spawn(async move { outbox.store.record(vec![attempt]).await })
    };
    held.until_waiting(2, &recording).await;
    held.release().await;
    assert_eq!(paying.await.unwrap().unwrap(), Committed::Done);
    let told = recording.await.unwrap().unwrap();
    assert_eq!(told, [Recorded::Superseded], "nobody will be woken for the newer event");
}
