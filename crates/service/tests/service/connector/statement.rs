//! A day's statement beside our books: whatever only one of the two has is found.

use jiff::civil::{Date, date};
use serde_json::{Value, json};
use svc_service::domain::*;
use svc_service::orders::{self, Choice, Finding, ReconcileError, Reconciliation, Verdict};

use super::production;
use crate::support::*;

on_both_engines! {
    what_both_have_is_matched_and_not_counted_again,
    a_payment_we_never_heard_of_is_told_and_settled_when_asked,
    a_payment_under_the_id_of_another_orders_is_not_taken_for_that,
    money_for_nothing_we_know_becomes_an_exception,
    another_amount_than_ours_is_told,
    an_order_that_the_rail_does_not_have_is_told,
    a_line_that_makes_no_sense_is_shown_as_it_came,
    a_rail_that_does_not_answer_is_an_error,
}

/// A code of the connector's, to pay or paid.
async fn issued(paying: &TestPaying, id: &str) -> (Order, PaymentAttempt) {
    let order = paying.order(id, 15_000).await;
    let attempt = paying.pay(&order, &Choice::Code).await.attempts.remove(0);
    (order, attempt)
}

fn line(id: &str, attempt: &PaymentAttempt, amount: &str) -> Value {
    json!({
        "railPaymentId": id, "attemptId": attempt.id.as_str(), "kind": "payment",
        "amount": amount, "occurredAt": "2026-11-16T09:00:00Z",
    })
}

async fn paid(paying: &TestPaying, attempt: &PaymentAttempt, id: &str) {
    let notice = paying.notice(attempt, id, Word::Paid(Centimos::new(1_500_000)));
    orders::settle(&paying.app, notice, "").await.unwrap();
}

fn today(paying: &TestPaying) -> Date {
    jiff::tz::Offset::constant(1).to_datetime(paying.app.clock.now()).date()
}

async fn reconciled(
    (paying, connector): (&TestPaying, &TestConnector),
    lines: Value,
    apply: bool,
) -> Reconciliation {
    connector.will("statement", Reply::Json(json!({ "lines": lines })));
    let rail = paying.app.rails.named(TestConnector::NAME).unwrap();
    orders::reconcile(&paying.app, rail, today(paying), apply).await.unwrap()
}

fn verdicts(told: &Reconciliation) -> Vec<Verdict> {
    told.findings.iter().map(|finding| finding.verdict).collect()
}

async fn what_both_have_is_matched_and_not_counted_again(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let (order, attempt) = issued(&paying, "order_1").await;
    paid(&paying, &attempt, "p1").await;
    let lines = json!([line("p1", &attempt, "15000.00")]);
    let told = reconciled((&paying, &connector), lines, true).await;
    let matched = Finding {
        rail_payment_id: Some("p1".into()),
        order: Some(order.reference_number.clone()),
        amount: Centimos::new(1_500_000),
        verdict: Verdict::Matched,
    };
    assert_eq!(told, Reconciliation { findings: vec![matched], unread: Vec::new(), unasked: None });
    let asked = json!({ "date": today(&paying).to_string() });
    assert_eq!(connector.calls("statement"), [asked], "that day and no other");
    paying.accounted_for(1).await;
}

async fn a_payment_we_never_heard_of_is_told_and_settled_when_asked(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let (order, attempt) = issued(&paying, "order_1").await;
    paying.pass_s(1).await;
    let lines = json!([line("p1", &attempt, "15000.00")]);
    let told = reconciled((&paying, &connector), lines.clone(), false).await;
    assert_eq!(verdicts(&told), [Verdict::MissingHere]);
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"), "it was only looked at");
    let told = reconciled((&paying, &connector), lines.clone(), true).await;
    assert_eq!(verdicts(&told), [Verdict::Confirmed]);
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    assert_eq!(paying.events(&order).await, ["PEN", "CON"]);
    let told = reconciled((&paying, &connector), lines, true).await;
    assert_eq!(verdicts(&told), [Verdict::Matched]);
    paying.accounted_for(1).await;
}

async fn a_payment_under_the_id_of_another_orders_is_not_taken_for_that(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let (_, first) = issued(&paying, "order_1").await;
    let (second_order, second) = issued(&paying, "order_2").await;
    paid(&paying, &first, "p1").await;
    let lines = json!([line("p1", &first, "15000.00"), line("p1", &second, "15000.00")]);
    for (apply, expected) in [
        (false, Verdict::MissingHere),
        (true, Verdict::Exception(ExceptionKind::Reused)),
        (true, Verdict::Matched),
    ] {
        let told = reconciled((&paying, &connector), lines.clone(), apply).await;
        assert_eq!(verdicts(&told), [Verdict::Matched, expected]);
    }
    assert_eq!(paying.stands(&second_order).await, ("held", "PEN"));
}

async fn money_for_nothing_we_know_becomes_an_exception(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let stranger = json!({
        "railPaymentId": "p1", "entity": "00348", "reference": "987654321", "kind": "payment",
        "amount": 15_000,
    });
    let told = reconciled((&paying, &connector), json!([stranger]), true).await;
    assert_eq!(verdicts(&told), [Verdict::Exception(ExceptionKind::Unmatched)]);
    assert_eq!(told.findings[0].order, None);
    paying.accounted_for(1).await;
}

async fn another_amount_than_ours_is_told(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let (order, attempt) = issued(&paying, "order_1").await;
    paid(&paying, &attempt, "p1").await;
    let lines = json!([line("p1", &attempt, "14999.00")]);
    let told = reconciled((&paying, &connector), lines, true).await;
    assert_eq!(verdicts(&told), [Verdict::AmountDiffers { ours: Centimos::new(1_500_000) }]);
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
}

async fn an_order_that_the_rail_does_not_have_is_told(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let (order, attempt) = issued(&paying, "order_1").await;
    paid(&paying, &attempt, "p1").await;
    let told = reconciled((&paying, &connector), json!([]), true).await;
    let missing = Finding {
        rail_payment_id: None,
        order: Some(order.reference_number.clone()),
        amount: Centimos::new(1_500_000),
        verdict: Verdict::MissingThere,
    };
    assert_eq!(told.findings, [missing]);
    let asked = connector.calls("statement").len();
    assert_eq!(asked, 3, "it may stand in the day before or after");
    // Nor is anything told as missing where we could not look.
    connector.will("statement", Reply::Of(only_today));
    let rail = paying.app.rails.named(TestConnector::NAME).unwrap();
    let told = orders::reconcile(&paying.app, rail, today(&paying), true).await.unwrap();
    assert!(told.findings.is_empty() && told.unasked.is_some(), "{told:?}");
    // A refusal in those days is no payment.
    let refusal = json!({
        "railPaymentId": "p0", "attemptId": attempt.id.as_str(), "kind": "refusal",
        "reason": "payer_refused",
    });
    let told = reconciled((&paying, &connector), json!([refusal]), false).await;
    assert_eq!(verdicts(&told), [Verdict::MissingHere, Verdict::MissingThere]);
    // On the next day nothing of ours is missing.
    paying.pass_s(86_400).await;
    let told = reconciled((&paying, &connector), json!([]), true).await;
    assert_eq!(told.findings, []);
}

/// The tests begin on this day.
fn only_today(asked: &Value) -> Reply {
    let is_today = asked["date"] == "2027-01-15";
    if is_today { Reply::Json(json!({ "lines": [] })) } else { Reply::Status(500) }
}

async fn a_line_that_makes_no_sense_is_shown_as_it_came(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let told =
        reconciled((&paying, &connector), json!([{ "kind": "fee", "amount": 3 }]), true).await;
    assert_eq!(told.unread, [json!({ "kind": "fee", "amount": 3 }).to_string()]);
    assert_eq!(told.findings, []);
}

async fn a_rail_that_does_not_answer_is_an_error(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    connector.will("statement", Reply::Status(500));
    let rail = paying.app.rails.named(TestConnector::NAME).unwrap();
    let day = date(2026, 11, 16);
    let told = orders::reconcile(&paying.app, rail, day, true).await;
    assert!(matches!(told, Err(ReconcileError::Rail(_))), "{told:?}");
}
