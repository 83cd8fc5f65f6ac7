//! A partner's own events, page by page, oldest first.

use super::Outbox;
use crate::support::{TestDatabase, at, on_both_engines};
use svc_service::domain::*;
use svc_service::store::*;

on_both_engines! {
    pages_follow_each_other_in_the_order_of_ids,
    undelivered_leaves_out_what_was_delivered_or_superseded,
    a_page_is_one_applications_own,
    a_page_looks_at_so_many_rows_and_says_how_far_it_came,
}

fn page(application: i64, limit: usize) -> FeedPage {
    FeedPage { application: ApplicationId(application), after: None, limit, undelivered: false }
}

fn names(feed: &Feed) -> Vec<String> {
    feed.events.iter().map(|event| super::external_id(&event.body)).collect()
}

async fn pages_follow_each_other_in_the_order_of_ids(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let empty = outbox.store.feed(page(1, 10)).await.unwrap();
    assert!(empty.events.is_empty() && empty.scanned_to.is_none() && !empty.more);
    for (id, ms) in [("c", 30), ("a", 10), ("e", 50), ("b", 20), ("d", 40)] {
        outbox.paid(1, id, ms).await;
    }
    let first = outbox.store.feed(page(1, 2)).await.unwrap();
    assert_eq!((names(&first), first.more), (vec!["a".to_owned(), "b".to_owned()], true));
    assert_eq!(first.scanned_to.as_ref(), Some(&first.events[1].id));
    let second =
        outbox.store.feed(FeedPage { after: first.scanned_to, ..page(1, 2) }).await.unwrap();
    assert_eq!((names(&second), second.more), (vec!["c".to_owned(), "d".to_owned()], true));
    let third = FeedPage { after: second.scanned_to, ..page(1, 2) };
    let third = outbox.store.feed(third).await.unwrap();
    assert_eq!((names(&third), third.more), (vec!["e".to_owned()], false));
    assert_eq!(third.scanned_to.as_ref(), Some(&third.events[0].id));
    let last = outbox.store.feed(FeedPage { after: third.scanned_to, ..page(1, 2) }).await.unwrap();
    assert!(last.events.is_empty() && last.scanned_to.is_none() && !last.more);
    let exact = outbox.store.feed(page(1, 5)).await.unwrap();
    assert_eq!((exact.events.len(), exact.more), (5, false));
}

async fn undelivered_leaves_out_what_was_delivered_or_superseded(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let superseded = outbox.announced(1, "superseded", 10).await;
    outbox.pay(&superseded, 20).await;
    outbox.end_all(1, Verdict::Delivered).await;
    outbox.paid(1, "exhausted", 30).await;
    outbox.end_all(1, Verdict::Exhausted).await;
    outbox.paid(1, "queued", 40).await;
    outbox.paid(1, "delivered", 50).await;
    let batch = outbox.claim_all(1).await;
    let delivered = &batch.events[1];
    outbox.record(delivered, &batch.lease, Verdict::Delivered).await;
    assert_eq!(outbox.store.feed(page(1, 10)).await.unwrap().events.len(), 5);
    let undelivered = FeedPage { undelivered: true, ..page(1, 10) };
    let feed = outbox.store.feed(undelivered.clone()).await.unwrap();
    assert_eq!(names(&feed), ["exhausted", "queued"]);
    assert_eq!(feed.scanned_to.as_ref(), Some(&delivered.id), "wanted or not");
    let one = outbox.store.feed(FeedPage { limit: 1, ..undelivered }).await.unwrap();
    assert_eq!((names(&one), one.more), (vec!["exhausted".to_owned()], true));
    assert_eq!(one.scanned_to.as_ref(), Some(&one.events[0].id), "the rest comes on the next page");
}

async fn a_page_is_one_applications_own(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    for ms in 0..20 {
        outbox.paid(1 + ms % 2, &format!("order_{ms}"), ms).await;
    }
    for application in 1..=2 {
        let feed = outbox.store.feed(page(application, 100)).await.unwrap();
        assert_eq!(feed.events.len(), 10);
        assert!(feed.events.iter().all(|event| event.application == ApplicationId(application)));
    }
    // Nor with another application's cursor.
    let theirs = outbox.store.feed(page(2, 5)).await.unwrap().scanned_to;
    let ours = outbox.store.feed(FeedPage { after: theirs, ..page(1, 100) }).await.unwrap();
    assert_eq!(names(&ours), ["order_10", "order_12", "order_14", "order_16", "order_18"]);
    assert!(outbox.store.feed(page(3, 100)).await.unwrap().events.is_empty());
}

async fn a_page_looks_at_so_many_rows_and_says_how_far_it_came(database: TestDatabase) {
    const SCANNED_MAX: usize = 5_000;
    let outbox = Outbox::open(database).await;
    outbox.paid(1, "delivered", 10).await;
    outbox.end_all(1, Verdict::Delivered).await;
    // As many delivered ones as a page looks at, then one that waits.
    outbox
        .database
        .sql(
            "insert into outbox (id, application_id, reference_number, status, body, webhook_url,
                 origin, state, next_attempt_at_ms, queued_at_ms, created_at_ms)
             with recursive numbers (n) as (
                 select 10001 union all select n + 1 from numbers where n < 14999)
             select id || cast(n as text), application_id, reference_number, status, body,
                 webhook_url, origin, state, next_attempt_at_ms, queued_at_ms, created_at_ms
             from outbox cross join numbers where application_id = 1",
        )
        .await;
    outbox.paid(1, "waiting", 20).await;
    let undelivered = FeedPage { undelivered: true, ..page(1, 10) };
    let first = outbox.store.feed(undelivered.clone()).await.unwrap();
    assert!(first.events.is_empty() && first.more, "there is more, although none was wanted");
    let scanned = outbox.store.feed(page(1, SCANNED_MAX)).await.unwrap();
    assert_eq!(scanned.events.len(), SCANNED_MAX);
    assert_eq!(first.scanned_to.as_ref(), scanned.events.last().map(|event| &event.id));
    let second = FeedPage { after: first.scanned_to, ..undelivered };
    let second = outbox.store.feed(second).await.unwrap();
    assert_eq!((names(&second), second.more), (vec!["waiting".to_owned()], false));
    assert_eq!(second.events[0].created_at, at(20));
}
