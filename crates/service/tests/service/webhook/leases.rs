//! Two dispatchers, dead dispatchers, deaf databases and restarts: sent twice at most, lost never.

use std::collections::HashMap;

use svc_service::domain::{Lane, Status};
use svc_service::store::{DeliveryAttempt, EventState, PendingEvent, Recorded, Verdict, Want};
use svc_service::webhook::Dispatcher;

use super::crowd::{create, pay_many, settle, stall, told};
use super::gate::Gate;
use crate::support::{Receiver, TestDatabase, TestDelivery, on_both_engines, waiting_events};

/// Far more than an attempt may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

on_both_engines! {
    two_dispatchers_send_each_event_exactly_once,
    a_dispatcher_told_to_stop_gives_back_what_it_has_not_sent,
    what_a_dead_dispatcher_sent_is_sent_again_with_the_same_id_and_bytes,
    a_dispatcher_that_wakes_up_late_undoes_nothing,
    a_claim_that_nobody_records_is_taken_over,
    an_attempt_that_cannot_be_recorded_is_sent_again,
    what_could_not_be_recorded_is_recorded_before_anything_is_claimed,
    nothing_in_memory_is_needed_after_a_restart,
}

async fn two_dispatchers_send_each_event_exactly_once(database: TestDatabase) {
    const EVENTS: usize = 800;
    const STALLS: usize = 4;
    let receiver = Receiver::answering(200).await;
    let mut first = TestDelivery::start(database).await;
    let mut second = first.beside().await;
    for number in 0..STALLS {
        let stall = stall(&first.app, &receiver.url(), PendingEvent::Never).await;
        pay_many(&first.app, &stall, &format!("order_{number}"), EVENTS / STALLS).await;
    }
    tokio::join!(first.drain(), second.drain());
    let mut times: HashMap<String, usize> = HashMap::new();
    for request in receiver.requests() {
        assert_eq!(request.header("x-svc-delivery-attempt"), "1");
        *times.entry(request.header("webhook-id").to_owned()).or_default() += 1;
    }
    assert_eq!(times.len(), EVENTS, "each event");
    assert!(times.values().all(|times| *times == 1), "exactly once");
    assert_eq!(waiting_events(&first.app.store).await, 0);
    for delivery in [&first, &second] {
        let figures = delivery.app.metrics.render();
        let sent = figures
            .lines()
            .any(|line| line.starts_with("svc_webhook_attempts_total") && !line.ends_with(" 0"));
        assert!(sent, "one dispatcher did it all: this tested nothing\n{figures}");
    }
}

async fn a_dispatcher_told_to_stop_gives_back_what_it_has_not_sent(database: TestDatabase) {
    const EVENTS: usize = 2_000;
    const STOPS: usize = 20;
    let receiver = Receiver::answering(200).await;
    let delivery = TestDelivery::start(database).await;
    let stall = stall(&delivery.app, &receiver.url(), PendingEvent::Never).await;
    pay_many(&delivery.app, &stall, "order", EVENTS).await;
    let TestDelivery { app, database, .. } = delivery;
    // Stopped again and again, it is also stopped while it claims.
    for round in 1..=STOPS {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let dispatcher = Dispatcher::new(app.clone()).unwrap();
        let running = tokio::spawn(dispatcher.run(async {
            stopped.await.unwrap();
        }));
        receiver.wait_for(round * EVENTS / STOPS / 2).await;
        stop.send(()).unwrap();
        tokio::time::timeout(PATIENCE, running).await.expect("it ends").unwrap();
    }
    let left = waiting_events(&app.store).await;
    assert_eq!(receiver.requests().len() + left as usize, EVENTS, "each was sent or is queued");
    assert!(left > 0, "it had sent all of them: this tested nothing");
    let leased = database.count("outbox where lease_token is not null").await;
    let counted = database.count("outbox where state = 'queued' and attempts > 0").await;
    assert_eq!((leased, counted), (0, 0), "no lease is left, and no attempt that was not made");
}

async fn what_a_dead_dispatcher_sent_is_sent_again_with_the_same_id_and_bytes(
    database: TestDatabase,
) {
    let mut gate = Gate::start().await;
    let mut dying = TestDelivery::start(database).await;
    let mut beside = dying.beside().await;
    let shop = dying.shop(&gate.url()).await;
    let order = dying.paid_order(&shop, "order_1").await;
    let task = tokio::spawn(async move { dying.drain().await });
    let first = gate.came().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    gate.answer(200);
    beside.drain().await;
    assert!(gate.is_quiet(), "the dead one's lease is live");
    beside.expire_leases().await;
    gate.answer(200);
    beside.drain().await;
    let second = gate.came().await;
    assert_eq!(second.header("webhook-id"), first.header("webhook-id"));
    assert_eq!(second.body, first.body);
    let number = "x-svc-delivery-attempt";
    assert_eq!((first.header(number), second.header(number)), ("1", "2"));
    let event = beside.event(&order).await;
    assert_eq!((event.state, event.attempts), (EventState::Delivered, 2));
    let attempts = beside.app.store.deliveries_of(&event.id).await.unwrap();
    let numbers: Vec<_> = attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [2], "the dead one noted nothing");
    beside.drain().await;
    assert!(gate.is_quiet());
}

async fn a_dispatcher_that_wakes_up_late_undoes_nothing(database: TestDatabase) {
    let mut gate = Gate::start().await;
    let mut slow = TestDelivery::start(database).await;
    let mut quick = slow.beside().await;
    let shop = slow.shop(&gate.url()).await;
    let order = slow.paid_order(&shop, "order_1").await;
    let task = tokio::spawn(async move {
        slow.drain().await;
        slow
    });
    let first = gate.came().await;
    quick.expire_leases().await;
    // The answers are given in the order of the requests: a failure to the slow one, held back
    // until the quick one has been told that all is well.
    let store_says = async {
        let second = gate.came().await;
        assert_eq!(second.header("webhook-id"), first.header("webhook-id"));
        gate.answer(503);
        let slow = task.await.unwrap();
        let event = slow.event(&order).await;
        assert_eq!((event.state, event.attempts), (EventState::Queued, 2));
        let noted = slow.app.store.deliveries_of(&event.id).await.unwrap();
        assert_eq!((noted.len(), noted[0].number), (1, 1), "noted, but not believed");
        let next = slow.dispatcher.next_due().await.unwrap();
        assert_eq!(next, Some(event.created_at), "not put off by the late failure");
        gate.answer(200);
    };
    tokio::join!(quick.drain(), store_says);
    let event = quick.event(&order).await;
    assert_eq!((event.state, event.attempts), (EventState::Delivered, 2));
    assert!(!quick.step().await, "there is nothing left to do");
    assert!(gate.is_quiet());
}

async fn a_claim_that_nobody_records_is_taken_over(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    let order = delivery.paid_order(&shop, "order_1").await;
    let lane = Lane::of(shop.application, &shop.webhook_url);
    let want = Want::due_by(delivery.app.clock.now(), lane, 10);
    let dead = delivery.lease();
    let claimed = delivery
        .app
        .store
        .claim(vec![want], &dead, delivery.app.clock.steady())
        .await
        .unwrap()
        .remove(0);
    delivery.drain().await;
    assert!(receiver.requests().is_empty());
    delivery.expire_leases().await;
    delivery.drain().await;
    let request = receiver.requests().remove(0);
    assert_eq!(request.header("x-svc-delivery-attempt"), "2");
    assert_eq!(request.header("webhook-id"), claimed.id.as_str());
    assert_eq!(request.body, claimed.body);
    // And what the dead one says from the grave is fenced off.
    let late = DeliveryAttempt {
        event: claimed.id,
        lease: dead,
        number: claimed.attempt,
        at: delivery.app.clock.now(),
        queued_at: claimed.queued_at,
        latency_ms: 1,
        http_status: None,
        error: Some("connection reset".to_owned()),
        answer_start: Vec::new(),
        verdict: Verdict::RetryAt(delivery.app.clock.now()),
    };
    assert_eq!(delivery.app.store.record(vec![late]).await.unwrap(), [Recorded::LeaseLost]);
    assert_eq!(delivery.event(&order).await.state, EventState::Delivered);
    assert!(!delivery.step().await);
    assert_eq!(receiver.requests().len(), 1);
}

async fn an_attempt_that_cannot_be_recorded_is_sent_again(database: TestDatabase) {
    let mut gate = Gate::start().await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&gate.url()).await;
    for table in ["delivery_attempts", "outbox"] {
        let order = delivery.paid_order(&shop, table).await;
        let mut deaf = delivery.beside().await;
        let database = std::sync::Arc::clone(&delivery.database);
        let meanwhile = async {
            let request = gate.came().await;
            database.sql(&format!("alter table {table} rename to gone")).await;
            gate.answer(200);
            request
        };
        let (drained, first) = tokio::join!(deaf.dispatcher.drain(), meanwhile);
        assert!(drained.is_err(), "{table}");
        database.sql(&format!("alter table gone rename to {table}")).await;
        let event = delivery.event(&order).await;
        assert_eq!((event.state, event.attempts), (EventState::Queued, 1), "{table}");
        assert!(delivery.app.store.deliveries_of(&event.id).await.unwrap().is_empty());
        delivery.expire_leases().await;
        gate.answer(200);
        delivery.drain().await;
        let second = gate.came().await;
        assert_eq!(second.header("webhook-id"), first.header("webhook-id"));
        assert_eq!((second.header("x-svc-delivery-attempt"), &second.body), ("2", &first.body));
        assert_eq!(delivery.event(&order).await.state, EventState::Delivered, "{table}");
    }
    assert!(gate.is_quiet());
}

/// The store was away for longer than a lease lasts; this process knows what came of its requests.
async fn what_could_not_be_recorded_is_recorded_before_anything_is_claimed(database: TestDatabase) {
    let mut gate = Gate::start().await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&gate.url()).await;
    let order = delivery.paid_order(&shop, "order_1").await;
    let database = std::sync::Arc::clone(&delivery.database);
    let meanwhile = async {
        gate.came().await;
        database.sql("alter table outbox rename to gone").await;
        gate.answer(200);
    };
    let (drained, ()) = tokio::join!(delivery.dispatcher.drain(), meanwhile);
    assert!(drained.is_err());
    database.sql("alter table gone rename to outbox").await;
    delivery.expire_leases().await;
    delivery.drain().await;
    let event = delivery.event(&order).await;
    assert_eq!((event.state, event.attempts), (EventState::Delivered, 1));
    assert!(gate.is_quiet(), "it was sent again");
}

async fn nothing_in_memory_is_needed_after_a_restart(database: TestDatabase) {
    let receiver = Receiver::start(|request| {
        // Announcements and first attempts fail.
        let good = request.status() != "PEN" && request.header("x-svc-delivery-attempt") != "1";
        let status = if good { 200 } else { 503 };
        hyper::Response::builder().status(status).body(http_body_util::Full::default()).unwrap()
    })
    .await;
    let mut delivery = TestDelivery::start(database).await;
    let stall = stall(&delivery.app, &receiver.url(), PendingEvent::Creation).await;
    let mut orders = Vec::new();
    for number in 0..9 {
        let order = create(delivery.app.clone(), stall.clone(), format!("order_{number}")).await;
        orders.push(order);
    }
    // Announcements that failed; of these some are paid, and of those some were tried.
    delivery.drain().await;
    for order in &orders[..6] {
        settle(delivery.app.clone(), order.clone(), Status::Confirmed, 0).await;
    }
    delivery.step().await;
    for order in &orders[6..8] {
        settle(delivery.app.clone(), order.clone(), Status::Cancelled, 0).await;
    }
    let before = receiver.requests();
    let mut delivery = delivery.restarted().await;
    settle(delivery.app.clone(), orders[8].clone(), Status::Confirmed, 0).await;
    while delivery.step().await {}
    let requests = receiver.requests();
    let after = &requests[before.len()..];
    for order in &orders {
        let events = told(&delivery.app, order).await;
        let states: Vec<_> = events.iter().map(|event| event.state).collect();
        assert_eq!(states, [EventState::Superseded, EventState::Delivered]);
        let id = events[1].id.as_str();
        let sent: Vec<_> = requests.iter().filter(|r| r.header("webhook-id") == id).collect();
        assert_eq!(sent.len(), 2, "failed once, then taken");
        assert!(sent.iter().all(|request| request.body == events[1].body));
    }
    assert!(after.iter().all(|request| request.status() != "PEN"), "an older after a newer");
}
