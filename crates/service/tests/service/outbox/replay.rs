//! Sending again what has ended, and finding it: the latest event of an order only.

use super::Outbox;
use crate::support::{TestDatabase, at, on_both_engines, waiting_events};
use svc_service::domain::*;
use svc_service::store::*;

on_both_engines! {
    what_has_ended_and_what_waits_is_queued_anew,
    what_a_newer_event_made_pointless_is_not_replayed,
    a_replay_keeps_to_its_filter,
    a_replay_waits_for_an_attempt_under_way_and_is_not_swallowed_by_it,
    events_are_found_by_every_part_of_the_filter_newest_first,
    very_many_are_replayed_in_slices_each_of_them_once,
}

fn all() -> EventFilter {
    EventFilter::default()
}

fn by_state(state: EventState) -> EventFilter {
    EventFilter { state: Some(state), ..all() }
}

fn by_order(order: &Order) -> EventFilter {
    EventFilter { reference_number: Some(order.reference_number.clone()), ..all() }
}

fn by_application(application: i64) -> EventFilter {
    EventFilter { application: Some(ApplicationId(application)), ..all() }
}

fn between(since_ms: i64, until_ms: i64) -> EventFilter {
    EventFilter { since: Some(at(since_ms)), until: Some(at(until_ms)), ..all() }
}

async fn what_has_ended_and_what_waits_is_queued_anew(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let verdicts = [Verdict::Delivered, Verdict::Exhausted, Verdict::RetryAt(at(900_000))];
    for (application, verdict) in (1..).zip(verdicts) {
        outbox.paid(application, "order_1", 10).await;
        outbox.end_all(application, Verdict::RetryAt(at(20))).await;
        outbox.end_all(application, verdict).await;
    }
    assert_eq!(
        outbox.store.replay(all(), at(5_000), Author::command_line(None), "test").await.unwrap(),
        3
    );
    assert_eq!(waiting_events(&outbox.store).await, 3);
    for application in 1..=3 {
        assert!(outbox.claim(application, 10, 4_999).await.events.is_empty());
        let batch = outbox.claim(application, 10, 5_000).await;
        let event = batch.only();
        assert_eq!((event.attempt, event.failures), (3, 0), "numbers go on, the schedule does not");
        assert_eq!((event.queued_at, event.created_at), (at(5_000), at(10)));
        outbox.record(event, &batch.lease, Verdict::Delivered).await;
        let attempts = outbox.store.deliveries_of(&event.id).await.unwrap();
        let numbers: Vec<_> = attempts.iter().map(|attempt| attempt.number).collect();
        assert_eq!(numbers, [1, 2, 3], "what was kept of the earlier ones stays");
    }
}

async fn what_a_newer_event_made_pointless_is_not_replayed(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let superseded = outbox.announced(1, "superseded", 10).await;
    outbox.pay(&superseded, 20).await;
    outbox.end_all(1, Verdict::Delivered).await;
    let older = outbox.announced(2, "older", 10).await;
    outbox.end_all(2, Verdict::Delivered).await;
    outbox.cancel(&older, 20).await;
    outbox.end_all(2, Verdict::Exhausted).await;
    let alone = outbox.announced(3, "alone", 10).await;
    outbox.end_all(3, Verdict::Delivered).await;
    assert_eq!(
        outbox.store.replay(all(), at(5_000), Author::command_line(None), "test").await.unwrap(),
        3
    );
    use EventState::{Delivered, Queued, Superseded};
    let states = async |order: &Order| -> Vec<EventState> {
        outbox.told(order).await.into_iter().map(|(_, state)| state).collect()
    };
    assert_eq!(states(&superseded).await, [Superseded, Queued]);
    assert_eq!(states(&older).await, [Delivered, Queued]);
    assert_eq!(states(&alone).await, [Queued]);
    // Also when asked for by name.
    for order in [&superseded, &older] {
        let pointless = crate::support::events_of(&outbox.store, order).await.remove(0);
        let filter = EventFilter { id: Some(pointless.id), ..all() };
        assert_eq!(
            outbox
                .store
                .replay(filter, at(6_000), Author::command_line(None), "test")
                .await
                .unwrap(),
            0
        );
    }
}

async fn a_replay_keeps_to_its_filter(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let first = outbox.paid(1, "first", 10).await;
    outbox.paid(1, "second", 20).await;
    outbox.end_all(1, Verdict::Delivered).await;
    let third = outbox.paid(1, "third", 30).await;
    outbox.end_all(1, Verdict::Exhausted).await;
    outbox.paid(2, "first", 20).await;
    outbox.end_all(2, Verdict::Delivered).await;
    let third_id = outbox.event(&third).await.id;
    let both = EventFilter { state: Some(EventState::Delivered), ..by_application(1) };
    let cases: [(EventFilter, &[&str], &[&str]); 8] = [
        (by_order(&first), &["first"], &[]),
        (by_state(EventState::Exhausted), &["third"], &[]),
        (by_application(2), &[], &["first"]),
        (EventFilter { id: Some(third_id), ..all() }, &["third"], &[]),
        // From a moment on, and up to but without another.
        (between(20, 30), &["second"], &["first"]),
        (EventFilter { since: Some(at(21)), ..all() }, &["third"], &[]),
        (EventFilter { until: Some(at(11)), ..all() }, &["first"], &[]),
        (both, &["first", "second"], &[]),
    ];
    for (filter, of_one, of_two) in cases {
        let expected = (of_one.len() + of_two.len()) as u64;
        let replayed = outbox
            .store
            .replay(filter.clone(), at(5_000), Author::command_line(None), "test")
            .await
            .unwrap();
        assert_eq!(replayed, expected, "{filter:?}");
        for (application, orders) in [(1, of_one), (2, of_two)] {
            let batch = outbox.claim_all(application).await;
            assert_eq!(batch.orders(), orders, "{filter:?}");
            for event in &batch.events {
                // As it was before.
                let exhausted = super::external_id(&event.body) == "third";
                let verdict = if exhausted { Verdict::Exhausted } else { Verdict::Delivered };
                outbox.record(event, &batch.lease, verdict).await;
            }
        }
    }
    let unknown = EventFilter { application: Some(ApplicationId(9)), ..all() };
    assert_eq!(
        outbox.store.replay(unknown, at(5_000), Author::command_line(None), "test").await.unwrap(),
        0
    );
}

async fn a_replay_waits_for_an_attempt_under_way_and_is_not_swallowed_by_it(
    database: TestDatabase,
) {
    let outbox = Outbox::open(database).await;
    let order = outbox.paid(1, "order_1", 10).await;
    let batch = outbox.claim_all(1).await;
    assert_eq!(
        outbox
            .store
            .replay(by_order(&order), at(5_000), Author::command_line(None), "test")
            .await
            .unwrap(),
        1
    );
    assert!(outbox.claim_all(1).await.events.is_empty(), "it is under way");
    let told = outbox.record(batch.only(), &batch.lease, Verdict::Delivered).await;
    assert_eq!(told, Recorded::Done);
    assert_eq!(outbox.event(&order).await.state, EventState::Queued);
    let again = outbox.claim_all(1).await;
    outbox.record(again.only(), &again.lease, Verdict::Delivered).await;
    assert_eq!(outbox.event(&order).await.state, EventState::Delivered);
}

async fn events_are_found_by_every_part_of_the_filter_newest_first(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    let first = outbox.announced(1, "first", 10).await;
    outbox.pay(&first, 40).await;
    outbox.end_all(1, Verdict::Delivered).await;
    let second = outbox.paid(1, "second", 20).await;
    outbox.paid(2, "third", 30).await;
    outbox.end_all(2, Verdict::Exhausted).await;
    let found = async |filter: EventFilter, limit| -> Vec<String> {
        let events = outbox.store.events(filter, limit).await.unwrap();
        let name = |event: &EventRecord| {
            format!("{} {}", super::external_id(&event.body), event.status.code())
        };
        events.iter().map(name).collect()
    };
    assert_eq!(found(all(), 10).await, ["first CON", "third CON", "second CON", "first PEN"]);
    assert_eq!(found(all(), 2).await, ["first CON", "third CON"]);
    assert_eq!(found(by_order(&first), 10).await, ["first CON", "first PEN"]);
    assert_eq!(found(by_application(2), 10).await, ["third CON"]);
    assert_eq!(found(between(20, 40), 10).await, ["third CON", "second CON"]);
    for (state, event) in [
        (EventState::Queued, "second CON"),
        (EventState::Delivered, "first CON"),
        (EventState::Superseded, "first PEN"),
        (EventState::Exhausted, "third CON"),
    ] {
        assert_eq!(found(by_state(state), 10).await, [event]);
    }
    let event = outbox.event(&second).await;
    assert_eq!((event.application, event.status), (ApplicationId(1), Status::Confirmed));
    assert_eq!((event.created_at, event.next_attempt_at), (at(20), at(20)));
    assert_eq!(event.webhook_url, "https://a.ao/hook");
    let by_id = EventFilter { id: Some(event.id), ..all() };
    assert_eq!(found(by_id.clone(), 10).await, ["second CON"]);
    // Every part counts.
    let foreign = EventFilter { application: Some(ApplicationId(2)), ..by_id };
    assert!(found(foreign, 10).await.is_empty());
}

async fn very_many_are_replayed_in_slices_each_of_them_once(database: TestDatabase) {
    let outbox = Outbox::open(database).await;
    outbox.paid(1, "order_1", 10).await;
    outbox.end_all(1, Verdict::Exhausted).await;
    let copies = "insert into outbox (id, application_id, reference_number, status, body, webhook_url,
                      origin, state, next_attempt_at_ms, queued_at_ms, created_at_ms)
                  with recursive n (i) as (select 100001 union all select i + 1 from n where i < 112500)
                  select id || i, application_id, reference_number || i, status, body, webhook_url,
                      origin, state, next_attempt_at_ms, queued_at_ms, created_at_ms
                  from outbox, n";
    outbox.database.sql(copies).await;
    let exhausted = || by_state(EventState::Exhausted);
    let replay = async || {
        outbox
            .store
            .replay(exhausted(), at(5_000), Author::command_line(None), "test")
            .await
            .unwrap()
    };
    assert_eq!(replay().await, 12_501);
    assert_eq!(waiting_events(&outbox.store).await, 12_501);
    let told = "select count(*) from audit where action = 'webhook.replay'";
    assert_eq!(outbox.database.number(told).await, 3, "each slice tells its own");
    assert_eq!(replay().await, 0);
    // Without a state they still match after they are queued: the slices go on all the same.
    let again =
        outbox.store.replay(all(), at(6_000), Author::command_line(None), "test").await.unwrap();
    assert_eq!(again, 12_501);
    // Nor do they end at a stretch in which none is wanted.
    outbox.database.sql("update outbox set state = 'delivered'").await;
    let last = "update outbox set state = 'exhausted' where id = (select max(id) from outbox)";
    outbox.database.sql(last).await;
    assert_eq!(replay().await, 1);
}
