//! What is due goes to one claimer, for as long as its lease lasts.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Outbox, attempt, lane, want};
use crate::support::{TestDatabase, at, on_both_engines};
use svc_service::domain::*;
use svc_service::store::*;

on_both_engines! {
    what_is_due_is_claimed_earliest_first_and_no_more_than_wanted,
    a_claim_keeps_to_the_lanes_it_names,
    a_claim_tells_all_that_sending_takes,
    many_claimers_never_share_an_event,
    a_claimed_event_is_free_again_when_its_lease_has_run_out,
    a_lease_of_a_clock_that_was_set_back_is_of_nobody,
    what_a_node_with_a_slow_clock_delivered_is_delivered,
    a_record_with_a_lost_lease_changes_nothing_but_is_noted,
    a_lease_is_good_for_one_record,
    a_failed_attempt_is_due_again_when_its_verdict_says,
    what_has_ended_is_never_claimed,
    lanes_are_listed_page_by_page_with_the_earliest_due_of_each,
    figures_count_what_waits_and_nothing_else,
}

async fn what_is_due_is_claimed_earliest_first_and_no_more_than_wanted(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    for (id, ms) in [("b", 20), ("d", 40), ("a", 10), ("c", 30)] {
        outbox.paid(1, id, ms).await;
    }
    assert_eq!(outbox.claim(1, 2, 30).await.orders(), ["a", "b"]);
    assert_eq!(outbox.claim(1, 10, 30).await.orders(), ["c"]);
    assert!(outbox.claim(1, 10, 39).await.events.is_empty());
    assert_eq!(outbox.claim(1, 10, 40).await.orders(), ["d"]);
}

async fn a_claim_keeps_to_the_lanes_it_names(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    for application in 1..=3 {
        for id in ["a", "b", "c"] {
            outbox.paid(application, id, 10).await;
        }
    }
    let mut elsewhere = super::new_order(1, "elsewhere");
    let info = elsewhere.terms.additional_info.as_str().replace("a.ao/hook", "b.ao/hook");
    elsewhere.terms.additional_info = AdditionalInfo::parse(&info, &UrlRules::default()).unwrap();
    let elsewhere = outbox.created(elsewhere).await;
    outbox.pay(&elsewhere, 10).await;

    let mut other_origin = want(1, 10, 10);
    other_origin.lane.origin = "https://b.ao".to_owned();
    let batch = outbox.claim_wants(vec![want(1, 2, 10), want(3, 10, 10), other_origin]).await;
    let from = |origin: &str, application: i64| {
        let lane = Lane { application: ApplicationId(application), origin: origin.to_owned() };
        batch.events.iter().filter(|event| event.lane == lane).count()
    };
    assert_eq!(from("https://a.ao", 1), 2, "no more than wanted of this lane");
    assert_eq!(from("https://a.ao", 3), 3);
    assert_eq!(from("https://b.ao", 1), 1);
    assert_eq!(batch.events.len(), 6, "and nothing of the lane nobody named");
    assert_eq!(outbox.claim_all(2).await.events.len(), 3);
}

async fn a_claim_tells_all_that_sending_takes(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let order = outbox.paid(1, "order_1", 10).await;
    let event = outbox.event(&order).await;
    assert_eq!((event.state, event.attempts), (EventState::Queued, 0));
    let batch = outbox.claim_all(1).await;
    let claimed = batch.only();
    assert_eq!((&claimed.id, &claimed.body), (&event.id, &event.body));
    assert_eq!((claimed.webhook_url.as_str(), &claimed.lane), ("https://a.ao/hook", &lane(1)));
    assert_eq!((claimed.attempt, claimed.failures), (1, 0));
    assert_eq!((claimed.queued_at, claimed.created_at), (at(10), at(10)));
}

async fn many_claimers_never_share_an_event(database: TestDatabase) {
    const EVENTS: usize = 1_000;
    const CLAIMERS: usize = 16;
    let outbox = Arc::new(Outbox::open(database).await);
    let paying: Vec<_> = (0..EVENTS)
        .map(|number| {
            let outbox = Arc::clone(&outbox);
            tokio::spawn(async move { outbox.paid(1, &format!("order_{number}"), 10).await })
        })
        .collect();
    for paid in paying {
        paid.await.unwrap();
    }
    let barrier = Arc::new(tokio::sync::Barrier::new(CLAIMERS));
    let claimers: Vec<_> = (0..CLAIMERS)
        .map(|_| {
            let (outbox, barrier) = (Arc::clone(&outbox), Arc::clone(&barrier));
            tokio::spawn(async move {
                barrier.wait().await;
                let mut mine = Vec::new();
                loop {
                    let batch = outbox.claim(1, 7, 10).await;
                    if batch.events.is_empty() {
                        return mine;
                    }
                    assert!(batch.events.len() <= 7, "{} events", batch.events.len());
                    assert!(batch.events.iter().all(|event| event.attempt == 1));
                    mine.extend(batch.events.into_iter().map(|event| event.id));
                }
            })
        })
        .collect();
    let (mut all, mut busy) = (Vec::new(), 0);
    for claimer in claimers {
        let mine = claimer.await.unwrap();
        busy += usize::from(!mine.is_empty());
        all.extend(mine);
    }
    assert_eq!(all.len(), EVENTS);
    assert_eq!(all.into_iter().collect::<HashSet<_>>().len(), EVENTS, "no event went to two");
    assert!(busy > 1, "one claimer took all: this tested nothing");
}

async fn a_claimed_event_is_free_again_when_its_lease_has_run_out(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    outbox.paid(1, "order_1", 10).await;
    let first = outbox.claim_all(1).await;
    assert!(outbox.claim_all(1).await.events.is_empty(), "the lease is live");
    outbox.expire_leases().await;
    let second = outbox.claim_all(1).await;
    assert_eq!((first.only().attempt, second.only().attempt), (1, 2));
    assert_eq!((&first.only().id, &first.only().body), (&second.only().id, &second.only().body));
    assert_eq!(second.only().failures, 0, "nobody knows that the first one failed");
    assert!(outbox.claim_all(1).await.events.is_empty(), "there is a new lease");
}

async fn a_lease_of_a_clock_that_was_set_back_is_of_nobody(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    outbox.paid(1, "order_1", 10).await;
    let before = outbox.claim_all(1).await;
    let set_back = |ms: i64| format!("update outbox set lease_until_ms = lease_until_ms + {ms}");
    // By a little: whoever has it is still sending.
    outbox.database.sql(&set_back(5_000)).await;
    assert!(outbox.claim_all(1).await.events.is_empty());
    outbox.database.sql(&set_back(3_600_000)).await;
    let after = outbox.claim_all(1).await;
    assert_eq!(after.only().id, before.only().id);
}

/// On PostgreSQL it is the server's.
#[tokio::test]
async fn leases_on_sqlite_run_on_the_clock_that_nobody_sets() {
    let outbox = Outbox::open(TestDatabase::sqlite()).await;
    outbox.paid(1, "order_1", 10).await;
    let claims_at = async |since_boot_ms: u64| {
        let now = Steady::since_boot(Duration::from_millis(since_boot_ms));
        let lease = LeaseToken::assign([0; 16]);
        outbox.store.claim(vec![want(1, 10, 10)], &lease, now).await.unwrap().len()
    };
    assert_eq!(claims_at(100_000).await, 1);
    assert_eq!(claims_at(100_000 + LEASE_MS as u64).await, 0, "it lasts to its end");
    assert_eq!(claims_at(100_001 + LEASE_MS as u64).await, 1);
    // The machine has started anew, and its clock with it.
    assert_eq!(claims_at(10_000).await, 1);
}

async fn what_a_node_with_a_slow_clock_delivered_is_delivered(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let order = outbox.paid(1, "order_1", 10_000).await;
    let batch = outbox.claim_all(1).await;
    let early = DeliveryAttempt {
        at: at(9_000),
        ..attempt(batch.only(), &batch.lease, Verdict::Delivered)
    };
    assert_eq!(outbox.store.record(vec![early]).await.unwrap(), [Recorded::Done]);
    assert_eq!(outbox.event(&order).await.state, EventState::Delivered);
}

async fn a_record_with_a_lost_lease_changes_nothing_but_is_noted(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let order = outbox.paid(1, "order_1", 10).await;
    let slow = outbox.claim_all(1).await;
    outbox.expire_leases().await;
    let quick = outbox.claim_all(1).await;
    let before = outbox.event(&order).await;
    for verdict in [Verdict::Delivered, Verdict::RetryAt(at(99)), Verdict::Exhausted] {
        let told = outbox.record(slow.only(), &slow.lease, verdict).await;
        assert_eq!(told, Recorded::LeaseLost);
        assert_eq!(outbox.event(&order).await, before);
    }
    assert!(outbox.claim_all(1).await.events.is_empty(), "the quick one still holds its lease");
    let told = outbox.record(quick.only(), &quick.lease, Verdict::Delivered).await;
    assert_eq!(told, Recorded::Done);
    assert_eq!(outbox.event(&order).await.state, EventState::Delivered);
    let attempts = outbox.store.deliveries_of(&slow.only().id).await.unwrap();
    let numbers: Vec<_> = attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!((attempts[0].http_status, attempts[0].latency_ms), (Some(200), 12));
    assert_eq!((attempts[0].at, &attempts[0].answer_start[..]), (at(10), &b"ok"[..]));
}

async fn a_lease_is_good_for_one_record(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let order = outbox.paid(1, "order_1", 10).await;
    let batch = outbox.claim_all(1).await;
    let told = outbox.record(batch.only(), &batch.lease, Verdict::Delivered).await;
    assert_eq!(told, Recorded::Done);
    let told = outbox.record(batch.only(), &batch.lease, Verdict::RetryAt(at(0))).await;
    assert_eq!(told, Recorded::LeaseLost);
    assert_eq!(outbox.event(&order).await.state, EventState::Delivered);
    let unknown = DeliveryAttempt {
        event: EventId::assign(at(1), [9; 10]),
        ..attempt(batch.only(), &batch.lease, Verdict::Delivered)
    };
    assert_eq!(outbox.store.record(vec![unknown]).await.unwrap(), [Recorded::LeaseLost]);
}

async fn a_failed_attempt_is_due_again_when_its_verdict_says(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let order = outbox.paid(1, "order_1", 10).await;
    let batch = outbox.claim(1, 10, 10).await;
    outbox.record(batch.only(), &batch.lease, Verdict::RetryAt(at(500))).await;
    let event = outbox.event(&order).await;
    assert_eq!((event.state, event.next_attempt_at), (EventState::Queued, at(500)));
    assert!(outbox.claim(1, 10, 499).await.events.is_empty());
    let batch = outbox.claim(1, 10, 500).await;
    assert_eq!((batch.only().attempt, batch.only().failures), (2, 1));
    assert_eq!(batch.only().queued_at, at(10), "the horizon counts from the first");
}

async fn what_has_ended_is_never_claimed(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    for verdict in [Verdict::Delivered, Verdict::Exhausted] {
        let order = outbox.paid(1, &format!("{verdict:?}"), 10).await;
        outbox.end_all(1, verdict).await;
        outbox.expire_leases().await;
        assert!(outbox.claim_all(1).await.events.is_empty(), "{verdict:?}");
        let event = outbox.event(&order).await;
        assert_eq!(event.next_attempt_at, at(10), "it keeps the time of its end");
    }
    assert!(outbox.store.lanes(None, 10).await.unwrap().is_empty());
}

async fn lanes_are_listed_page_by_page_with_the_earliest_due_of_each(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    assert!(outbox.store.lanes(None, 10).await.unwrap().is_empty());
    for (application, id, ms) in [(3, "a", 70), (1, "a", 50), (1, "b", 40), (2, "a", 60)] {
        outbox.paid(application, id, ms).await;
    }
    let delivered = outbox.paid(4, "a", 10).await;
    outbox.end_all(4, Verdict::Delivered).await;
    assert_eq!(outbox.event(&delivered).await.state, EventState::Delivered);
    let due = |application, ms| LaneDue { lane: lane(application), due_at: at(ms) };
    let first = outbox.store.lanes(None, 2).await.unwrap();
    assert_eq!(first, [due(1, 40), due(2, 60)]);
    let second = outbox.store.lanes(Some(lane(2)), 2).await.unwrap();
    assert_eq!(second, [due(3, 70)], "a lane with nothing queued is none");
    assert!(outbox.store.lanes(Some(lane(3)), 2).await.unwrap().is_empty());
    // A lane between two pages that has emptied meanwhile does not stop the next page.
    outbox.end_all(2, Verdict::Delivered).await;
    assert_eq!(outbox.store.lanes(Some(lane(2)), 2).await.unwrap(), [due(3, 70)]);
    // Two origins of one application are two lanes, in the order of their names.
    outbox.database.sql("update outbox set origin = 'https://b.ao' where application_id = 3").await;
    outbox.paid(3, "c", 90).await;
    let origins: Vec<_> = outbox.store.lanes(Some(lane(1)), 10).await.unwrap();
    let b_ao = Lane { application: ApplicationId(3), origin: "https://b.ao".to_owned() };
    assert_eq!(origins, [due(3, 90), LaneDue { lane: b_ao, due_at: at(70) }]);
}

async fn figures_count_what_waits_and_nothing_else(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let figures = async || outbox.store.attention(&Scope::Everything).await.unwrap();
    assert_eq!(figures().await, Attention::default());
    outbox.paid(1, "delivered", 10).await;
    outbox.end_all(1, Verdict::Delivered).await;
    outbox.paid(1, "exhausted", 20).await;
    outbox.end_all(1, Verdict::Exhausted).await;
    let superseded = outbox.announced(1, "superseded", 30).await;
    outbox.pay(&superseded, 50).await;
    outbox.paid(2, "waiting", 40).await;
    outbox.end_all(2, Verdict::RetryAt(at(1_000))).await;
    let two_wait = Attention {
        waiting_events: 2,
        oldest_waiting_at_ms: Some(at(40).as_millisecond()),
        exhausted_events: 1,
        ..Attention::default()
    };
    assert_eq!(figures().await, two_wait);
    assert_eq!(outbox.claim_all(1).await.orders(), ["superseded"]);
    assert_eq!(figures().await, two_wait, "what is under way still waits");
}
