//! A connector's queue: read every minute, the effect stored first, acknowledged second.

use serde_json::{Value, json};
use svc_service::domain::*;
use svc_service::orders::Choice;

use super::production;
use crate::support::*;

on_both_engines! {
    a_payment_in_the_queue_confirms_its_order_and_is_acknowledged,
    what_could_not_be_stored_is_not_acknowledged,
    a_payment_that_was_not_acknowledged_is_a_duplicate_the_next_time,
    notices_that_cannot_be_acknowledged_do_not_hold_up_the_others,
    money_of_another_currency_pays_nothing,
    an_empty_attempt_id_beside_a_reference_is_none,
    every_kind_of_news_is_read_and_what_makes_no_sense_stays,
    a_queue_that_cannot_be_read_is_read_a_minute_later,
    an_id_that_something_unread_shares_is_not_acknowledged,
    a_queue_is_read_no_sooner_because_its_rail_is_asked_what_it_can_do,
}

fn payment(id: &str, attempt: &PaymentAttempt, amount: &Value) -> Value {
    json!({
        "railPaymentId": id, "attemptId": attempt.id.as_str(), "kind": "payment", "amount": amount,
    })
}

/// A code of the connector's to pay.
async fn issued(paying: &TestPaying, id: &str) -> (Order, PaymentAttempt) {
    let order = paying.order(id, 15_000).await;
    let attempt = paying.pay(&order, &Choice::Code).await.attempts.remove(0);
    (order, attempt)
}

/// From now on the queue is read, the first time now.
async fn reads_the_queue(paying: &TestPaying) {
    let (name, now) = (TestConnector::NAME, paying.app.clock.now());
    assert!(paying.app.store.open_queue(name, now).await.unwrap());
}

fn acknowledged(connector: &TestConnector) -> Vec<String> {
    let calls = connector.calls("ack");
    calls.iter().map(|call| call["railPaymentId"].as_str().unwrap().to_owned()).collect()
}

/// As a program writes it whose fields are always there.
async fn an_empty_attempt_id_beside_a_reference_is_none(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    reads_the_queue(&paying).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(60)).await.attempts.remove(0);
    let Instrument::Reference(Some(bank)) = attempt.instrument else { panic!("{attempt:?}") };
    connector.enqueue(json!({
        "railPaymentId": "p1", "attemptId": "", "entity": bank.entity(), "reference": bank.number(),
        "kind": "payment", "amount": "15000.00",
    }));
    paying.run_due().await;
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    assert_eq!(acknowledged(&connector), ["p1"]);
}

async fn a_payment_in_the_queue_confirms_its_order_and_is_acknowledged(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    reads_the_queue(&paying).await;
    let (order, attempt) = issued(&paying, "order_1").await;
    paying.run_due().await;
    assert_eq!(connector.calls("drain"), [json!({ "limit": 10_000 })]);
    connector.enqueue(payment("p1", &attempt, &json!("15000.00")));
    let seen: [Seen; 2] = [(0, "issued", "PEN"), (60, "accepted", "CON")];
    assert_eq!(paying.timeline(&order, 200).await, seen, "read again after a minute");
    assert_eq!((acknowledged(&connector), connector.queued()), (vec!["p1".to_owned()], 0));
    assert_eq!(connector.calls("ack")[0]["kind"], "payment");
    assert_eq!(paying.events(&order).await, ["PEN", "CON"]);
    paying.accounted_for(1).await;
}

async fn what_could_not_be_stored_is_not_acknowledged(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    reads_the_queue(&paying).await;
    let (order, attempt) = issued(&paying, "order_1").await;
    connector.enqueue(payment("p1", &attempt, &json!(15_000)));
    paying.database.sql("alter table receipts rename to receipts_away").await;
    svc_service::orders::run_due(&paying.app).await.unwrap();
    assert_eq!(connector.calls("drain").len(), 1);
    assert_eq!((acknowledged(&connector).len(), connector.queued()), (0, 1));
    paying.database.sql("alter table receipts_away rename to receipts").await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"), "all of it or nothing");
    assert_eq!(paying.events(&order).await, ["PEN"]);
    paying.pass_s(60).await;
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    assert_eq!((acknowledged(&connector).len(), connector.queued()), (1, 0));
    paying.accounted_for(1).await;
}

async fn a_queue_is_read_no_sooner_because_its_rail_is_asked_what_it_can_do(
    database: TestDatabase,
) {
    let (paying, connector) = production(database).await;
    reads_the_queue(&paying).await;
    paying.run_due().await;
    let note = async |ahead_s: i64| {
        let at = paying.app.clock.now() + jiff::SignedDuration::from_secs(ahead_s);
        paying.app.store.open_queue(TestConnector::NAME, at).await.unwrap()
    };
    assert!(!note(0).await);
    paying.run_due().await;
    assert_eq!(connector.calls("drain").len(), 1, "not yet");
    // A clock that was ahead put it off for an hour; it is right again.
    assert!(note(-3_600).await);
    paying.run_due().await;
    assert_eq!(connector.calls("drain").len(), 2);
}

/// A rail that forgets by the id would forget what we did not understand as well.
async fn an_id_that_something_unread_shares_is_not_acknowledged(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    reads_the_queue(&paying).await;
    let (order, attempt) = issued(&paying, "order_1").await;
    connector.enqueue(payment("p1", &attempt, &json!("15000.00")));
    connector.enqueue(json!({ "railPaymentId": "p1", "kind": "something new" }));
    paying.run_due().await;
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    assert_eq!((acknowledged(&connector).len(), connector.queued()), (0, 2));
}

async fn a_payment_that_was_not_acknowledged_is_a_duplicate_the_next_time(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    reads_the_queue(&paying).await;
    let (order, attempt) = issued(&paying, "order_1").await;
    paying.run_due().await;
    connector.enqueue(payment("p1", &attempt, &json!("15000")));
    connector.will("ack", Reply::Status(500));
    paying.pass_s(180).await;
    assert_eq!(acknowledged(&connector).len(), 3, "at 60, 120 and 180");
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    assert_eq!(paying.events(&order).await, ["PEN", "CON"]);
    assert_eq!(paying.exceptions(&order).await, []);
    paying.accounted_for(3).await;
}

async fn notices_that_cannot_be_acknowledged_do_not_hold_up_the_others(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    reads_the_queue(&paying).await;
    let (order, attempt) = issued(&paying, "order_1").await;
    paying.run_due().await;
    for id in ["old-1", "old-2", "old-3", "old-4"] {
        connector.enqueue(payment(id, &attempt, &json!("1.00")));
    }
    connector.enqueue(payment("p1", &attempt, &json!("15000.00")));
    connector.will(
        "ack",
        Reply::Of(|asked| match asked["railPaymentId"].as_str() {
            Some("p1") => Reply::Json(json!({ "answer": "accepted" })),
            _ => Reply::Status(404),
        }),
    );
    paying.pass_s(60).await;
    assert_eq!(paying.stands(&order).await.1, "CON");
    assert_eq!(acknowledged(&connector).last().map(String::as_str), Some("p1"));
    for deaf in [Reply::HangUp, Reply::Status(503)] {
        connector.will("ack", deaf);
        let asked = acknowledged(&connector).len();
        paying.pass_s(60).await;
        assert_eq!(acknowledged(&connector).len(), asked + 3, "it is left alone");
    }
}

async fn money_of_another_currency_pays_nothing(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    reads_the_queue(&paying).await;
    let (order, attempt) = issued(&paying, "order_1").await;
    paying.run_due().await;
    let mut dollars = payment("p1", &attempt, &json!("15000.00"));
    dollars["currency"] = "USD".into();
    connector.enqueue(dollars);
    paying.pass_s(60).await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"));
    assert_eq!((acknowledged(&connector).len(), connector.queued()), (0, 1), "it is kept there");
    let mut kwanza = payment("p2", &attempt, &json!("15000.00"));
    kwanza["currency"] = "AOA".into();
    connector.enqueue(kwanza);
    paying.pass_s(60).await;
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
}

async fn every_kind_of_news_is_read_and_what_makes_no_sense_stays(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    reads_the_queue(&paying).await;
    let (refused_order, refused) = issued(&paying, "order_1").await;
    let (paid_order, paid) = issued(&paying, "order_2").await;
    let about = |id: &str, attempt: &PaymentAttempt, kind: &str, more: Value| {
        let mut body = payment(id, attempt, &Value::Null);
        body["kind"] = kind.into();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    connector.enqueue(about("p1", &refused, "unconfirmed", json!({})));
    connector.enqueue(about("p1", &refused, "refusal", json!({ "reason": "payer_refused" })));
    connector.enqueue(about("p2", &paid, "payment", json!({ "amount": "15000.0" })));
    connector.enqueue(about("p2", &paid, "reversal", json!({ "amount": "15000" })));
    connector.enqueue(json!({
        "railPaymentId": "p3", "kind": "payment", "amount": 7.25,
        "entity": "00348", "reference": "111222333",
    }));
    for nonsense in [
        about("q1", &paid, "gift", json!({ "amount": 1 })),
        about("q2", &paid, "payment", json!({ "amount": "1,5" })),
        about("q3", &paid, "payment", json!({ "amount": -1 })),
        about("q4", &paid, "payment", json!({})),
        json!({ "railPaymentId": "q5", "kind": "payment", "amount": 1 }),
        json!({ "railPaymentId": "", "kind": "payment", "amount": 1, "attemptId": paid.id.as_str() }),
        json!({ "railPaymentId": "q7", "kind": "payment", "amount": 1, "attemptId": "short" }),
        json!(["q8"]),
    ] {
        connector.enqueue(nonsense);
    }
    paying.run_due().await;
    assert_eq!(paying.stands(&refused_order).await, ("rejected", "PEN"));
    assert_eq!(paying.stands(&paid_order).await, ("accepted", "CON"));
    assert_eq!(paying.exceptions(&paid_order).await, [("reversal", 1_500_000)]);
    let unmatched = "exceptions where kind = 'unmatched' and amount_centimos = 725";
    assert_eq!(paying.database.count(unmatched).await, 1);
    paying.accounted_for(5).await;
    assert_eq!(connector.queued(), 8, "for a person to find");
    let kept = "receipts where kind = 'reversal' and rail = 'acquirer'";
    assert_eq!(paying.database.count(kept).await, 1);
    assert!(paying.database.holds("111222333").await, "byte for byte as it came");
}

async fn a_queue_that_cannot_be_read_is_read_a_minute_later(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    reads_the_queue(&paying).await;
    let (order, attempt) = issued(&paying, "order_1").await;
    connector.enqueue(payment("p1", &attempt, &json!(15_000)));
    connector.will("drain", Reply::Text("not json"));
    paying.run_due().await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"));
    let queue = json!({ "payments": [payment("p1", &attempt, &json!(15_000))] });
    connector.will("drain", Reply::Json(queue));
    let seen: [Seen; 2] = [(0, "issued", "PEN"), (60, "accepted", "CON")];
    assert_eq!(paying.timeline(&order, 61).await, seen);
}
