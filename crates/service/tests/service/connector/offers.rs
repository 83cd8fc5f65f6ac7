//! What a connector offers, hides and takes back.

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::json;
use svc_service::domain::*;
use svc_service::orders::{self, Answered, Cancelling, Choice, Found, PayError, Resolution};
use svc_service::rails::RailsError;
use tokio::sync::Semaphore;

use super::{is_production, production, production_with};
use crate::support::*;

on_both_engines! {
    a_method_hides_itself_for_amounts_it_does_not_take,
    a_connector_that_has_not_said_what_it_can_do_offers_nothing,
    a_connector_that_starts_after_the_service_is_known,
    a_connector_that_stops_answering_keeps_what_it_said,
    a_connector_with_another_secret_refuses_us,
    a_telephone_is_asked_so_often_and_no_more,
    a_reference_is_withdrawn_when_the_order_is_cancelled,
    the_other_reference_is_withdrawn_when_the_order_is_paid,
    a_reference_is_withdrawn_when_it_expires,
    a_held_reference_is_withdrawn_when_an_operator_has_decided,
    a_rail_that_refuses_a_withdrawal_is_asked_whether_it_was_paid,
    a_reference_is_withdrawn_at_its_own_deadline,
    a_reference_whose_deadline_is_to_come_is_withdrawn_with_its_order,
    a_withdrawal_under_way_is_not_begun_again,
    a_paid_reference_is_not_withdrawn_at_its_deadline,
    a_rail_that_cannot_withdraw_is_asked_whether_it_was_paid,
    a_rail_that_cannot_withdraw_is_asked_until_the_order_is_over,
    nothing_is_withdrawn_where_the_rail_cannot,
    a_reference_that_an_operator_gives_up_is_withdrawn,
    a_withdrawal_is_told_until_it_is_taken_and_once,
    a_withdrawal_nobody_takes_in_a_day_is_left_to_a_person,
    a_withdrawal_that_is_found_after_days_is_told,
    a_push_that_fails_after_the_deadline_leaves_a_reference_its_grace,
}

async fn not_offered(paying: &TestPaying, id: &str, amount: i64, choice: &Choice) -> bool {
    let order = paying.order(id, amount).await;
    let before = paying.database.count("payment_attempts").await;
    match paying.try_pay(&order, choice).await {
        Ok(_) => false,
        Err(PayError::NotOffered) => {
            assert_eq!(paying.database.count("payment_attempts").await, before);
            true
        }
        Err(other) => panic!("{other:?}"),
    }
}

async fn a_method_hides_itself_for_amounts_it_does_not_take(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    connector.offers(&json!([
        { "code": "FPMCXEXPRSS", "min": 50, "max": 300_000 },
        { "code": "FPSOLPGEXT", "max": 1_000 },
    ]));
    TestConnector::asked_by(&paying.app).await.unwrap();
    let push = push("923456789");
    for (id, amount, choice, hidden) in [
        ("a", 49, &push, true),
        ("b", 50, &push, false),
        ("c", 300_000, &push, false),
        ("d", 300_001, &push, true),
        ("e", 1, &reference(60), false),
        ("f", 1_001, &reference(60), true),
        ("g", 500, &Choice::Code, true),
    ] {
        assert_eq!(not_offered(&paying, id, amount, choice).await, hidden, "{id}: {amount}");
    }
}

async fn a_connector_that_has_not_said_what_it_can_do_offers_nothing(database: TestDatabase) {
    let connector = TestConnector::start().await;
    let paying = production_with(database, connector.config()).await;
    for (id, choice) in [("a", push("923456789")), ("b", reference(60)), ("c", Choice::Code)] {
        assert!(not_offered(&paying, id, 15_000, &choice).await, "{id}");
    }
    connector.will("capabilities", Reply::Status(500));
    assert!(TestConnector::asked_by(&paying.app).await.is_err());
    assert!(not_offered(&paying, "d", 15_000, &Choice::Code).await);
    assert_eq!(connector.calls("start-code").len(), 0);
    connector.offers(&json!([{ "code": "FPSOLPG" }]));
    TestConnector::asked_by(&paying.app).await.unwrap();
    assert!(!not_offered(&paying, "e", 15_000, &Choice::Code).await);
}

async fn a_connector_that_starts_after_the_service_is_known(database: TestDatabase) {
    let connector = TestConnector::start().await;
    connector.will("capabilities", Reply::Status(503));
    let rail = connector.config();
    let service = TestService::start_with(database, |config| config.rails = vec![rail]).await;
    connector.wait_for("capabilities", 1).await;
    let says = async |up: &str| {
        let line = format!("svc_rail_up{{rail=\"acquirer\"}} {up}\n");
        service.get("/metrics").await.text.contains(&line)
    };
    patiently(async { while !says("0").await {} }).await;
    connector.can(&json!({}));
    patiently(async { while !says("1").await {} }).await;
}

async fn a_connector_that_stops_answering_keeps_what_it_said(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    for broken in [Reply::Status(500), Reply::Text("{}"), Reply::HangUp] {
        connector.will("capabilities", broken);
        assert!(TestConnector::asked_by(&paying.app).await.is_err());
    }
    assert!(!not_offered(&paying, "a", 15_000, &Choice::Code).await);
}

async fn a_connector_with_another_secret_refuses_us(database: TestDatabase) {
    let connector = TestConnector::start().await;
    let paying = production_with(database, connector.config_with_another_secret()).await;
    assert!(TestConnector::asked_by(&paying.app).await.is_err());
    assert_eq!(connector.refused(), 1);
    assert!(not_offered(&paying, "a", 15_000, &Choice::Code).await);
    assert_eq!(connector.refused(), 1, "nobody asked it to start anything");
}

/// Of many orders: whoever knows a number could ask until its owner gives in.
async fn a_telephone_is_asked_so_often_and_no_more(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let mut asked = 0;
    let refused = loop {
        let order = paying.order(&format!("order_{asked}"), 15_000).await;
        match paying.try_pay(&order, &push("923456789")).await {
            Ok(_) => asked += 1,
            Err(refused) => break refused,
        }
        assert!(asked < 20, "there is no end to it");
    };
    assert!(matches!(refused, PayError::TooOften(_)), "{refused:?}");
    assert!(asked >= 10, "{asked}");
    assert_eq!(connector.calls("start-push").len(), asked);
    let order = paying.order("of_another", 15_000).await;
    paying.pay(&order, &push("923456780")).await;
}

/// An order with a reference of the connector's.
async fn with_reference(paying: &TestPaying) -> (Order, PaymentAttempt) {
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(60)).await.attempts.remove(0);
    assert_eq!(attempt.state, AttemptState::Issued);
    (order, attempt)
}

fn withdrawal(attempt: &PaymentAttempt) -> serde_json::Value {
    json!({
        "attemptId": attempt.id.as_str(), "railId": "rail-7",
        "entity": "00348", "reference": "987654321",
    })
}

async fn a_reference_is_withdrawn_when_the_order_is_cancelled(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let (order, attempt) = with_reference(&paying).await;
    assert_eq!(paying.cancel(&order).await, Cancelling::Settled(Status::Cancelled));
    paying.run_due().await;
    assert_eq!(connector.calls("revoke-reference"), [withdrawal(&attempt)]);
}

/// Paid in time, and told late: the order is still in its grace.
async fn a_rail_that_refuses_a_withdrawal_is_asked_whether_it_was_paid(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let (order, attempt) = with_reference(&paying).await;
    connector.will("revoke-reference", Reply::Json(json!({ "answer": "refused" })));
    let answer = json!({ "answer": "accepted", "railPaymentId": "p1", "amount": "15000.00" });
    connector.will("query", Reply::Json(answer));
    paying.pass_s(3_600).await;
    assert_eq!(connector.calls("revoke-reference"), [withdrawal(&attempt)]);
    assert_eq!(connector.calls("query").len(), 1);
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    paying.pass_s(3_600).await;
    assert_eq!(connector.calls("revoke-reference").len(), 1, "nothing more to withdraw");
}

async fn a_held_reference_is_withdrawn_when_an_operator_has_decided(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let by = Author::command_line(None);
    for (resolution, id) in [(Resolution::Refund, "order_1"), (Resolution::Accept, "order_2")] {
        let number = if id == "order_1" { "987654321" } else { "987654322" };
        let issued = json!({
            "answer": "accepted", "railId": "rail-7", "entity": "00348", "reference": number,
        });
        connector.will("issue-reference", Reply::Json(issued));
        let before = connector.calls("revoke-reference").len();
        let order = paying.order(id, 15_000).await;
        let attempt = paying.pay(&order, &reference(60)).await.attempts.remove(0);
        let less = paying.notice(&attempt, id, Word::Paid(Centimos::new(1_499_900)));
        orders::settle(&paying.app, less, "").await.unwrap();
        let held = paying.ledger(&order).await.remove(0).id;
        orders::resolve(&paying.app, held, resolution, &by, "why").await.unwrap();
        paying.run_due().await;
        let told = connector.calls("revoke-reference");
        assert_eq!(told.len(), before + 1, "{resolution:?}");
        assert_eq!(told[before]["reference"], number);
    }
}

/// The payer was shown it; then its rail kept silent.
async fn a_reference_that_an_operator_gives_up_is_withdrawn(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    connector.will("query", Reply::Json(json!({ "answer": "unknown" })));
    let (order, attempt) = with_reference(&paying).await;
    let unconfirmed = paying.notice(&attempt, "p1", Word::Unconfirmed);
    orders::settle(&paying.app, unconfirmed, "").await.unwrap();
    paying.pass_s(100_000).await;
    let why = "their statement".to_owned();
    let not_paid = Answered { attempt: None, found: Found::NotPaid, why };
    let by = Author::command_line(None);
    orders::answer(&paying.app, &order.reference_number, not_paid, &by).await.unwrap();
    paying.run_due().await;
    assert_eq!(connector.calls("revoke-reference"), [withdrawal(&attempt)]);
}

async fn a_withdrawal_is_told_until_it_is_taken_and_once(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let (order, attempt) = with_reference(&paying).await;
    for silent in [Reply::Status(500), Reply::HangUp] {
        connector.will("revoke-reference", silent);
        assert!(matches!(paying.cancel(&order).await, Cancelling::Settled(Status::Cancelled)));
        paying.pass_s(299).await;
    }
    assert_eq!(connector.calls("revoke-reference").len(), 2);
    connector.will("revoke-reference", Reply::Json(json!({ "answer": "accepted" })));
    paying.pass_s(86_400).await;
    let told = withdrawal(&attempt);
    assert_eq!(connector.calls("revoke-reference"), [told.clone(), told.clone(), told]);
}

/// We were away, not the rail: it has not been told once.
async fn a_withdrawal_that_is_found_after_days_is_told(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let (order, attempt) = with_reference(&paying).await;
    assert!(matches!(paying.cancel(&order).await, Cancelling::Settled(Status::Cancelled)));
    let days = SignedDuration::from_hours(3 * 24);
    paying.app.clock.advance(days);
    let paying = paying.restarted(|config| is_production(config, connector.config())).await;
    paying.run_due().await;
    assert_eq!(connector.calls("revoke-reference").len(), 0, "nobody knows what the rail can do");
    TestConnector::asked_by(&paying.app).await.unwrap();
    paying.pass_s(30).await;
    assert_eq!(connector.calls("revoke-reference"), [withdrawal(&attempt)]);
}

async fn a_withdrawal_nobody_takes_in_a_day_is_left_to_a_person(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let (order, _) = with_reference(&paying).await;
    connector.will("revoke-reference", Reply::Status(500));
    paying.cancel(&order).await;
    paying.pass_s(90_000).await;
    let asked = connector.calls("revoke-reference").len();
    assert!((280..=290).contains(&asked), "every five minutes: {asked}");
    paying.pass_s(90_000).await;
    assert_eq!(connector.calls("revoke-reference").len(), asked);
}

async fn a_push_that_fails_after_the_deadline_leaves_a_reference_its_grace(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    for (id, number, pays) in [("order_1", "987654321", true), ("order_2", "987654322", false)] {
        let given = json!({
            "answer": "accepted", "railId": "rail-7", "entity": "00348", "reference": number,
        });
        connector.will("issue-reference", Reply::Json(given));
        let order = paying.order(id, 15_000).await;
        let reference = paying.pay(&order, &reference(60)).await.attempts.remove(0);
        paying.pass_s(3_590).await;
        paying.pay(&order, &push("923456789")).await;
        let refused = json!({ "answer": "refused", "reason": "payer_refused" });
        connector.will("query", Reply::Json(refused));
        let before = connector.calls("revoke-reference").len();
        paying.pass_s(10).await;
        assert_eq!(connector.calls("revoke-reference").len(), before + 1, "at the deadline");
        paying.pass_s(80).await;
        assert_eq!(paying.stands(&order).await, ("rejected", "PEN"), "it may have been paid");
        if pays {
            paying.pass_s(100).await;
            let word = Word::Paid(Centimos::new(1_500_000));
            orders::settle(&paying.app, paying.notice(&reference, id, word), "").await.unwrap();
            assert_eq!(paying.stands(&order).await.1, "CON");
        } else {
            paying.pass_s(519).await;
            assert_eq!(paying.stands(&order).await.1, "PEN");
            paying.pass_s(1).await;
            assert_eq!(paying.stands(&order).await.1, "CAN");
        }
        paying.run_due().await;
        assert_eq!(connector.calls("revoke-reference").len(), before + 1, "and once");
    }
}

async fn the_other_reference_is_withdrawn_when_the_order_is_paid(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let (order, attempt) = with_reference(&paying).await;
    paying.pass_s(1).await;
    let push = paying.pay(&order, &push("923456789")).await.attempts.remove(1);
    let word = Word::Paid(Centimos::new(1_500_000));
    orders::settle(&paying.app, paying.notice(&push, "p1", word), "").await.unwrap();
    let states: Vec<_> =
        paying.dossier(&order).await.attempts.iter().map(|a| a.state.as_str()).collect();
    assert_eq!(states, ["revoked", "accepted"]);
    paying.run_due().await;
    assert_eq!(connector.calls("revoke-reference"), [withdrawal(&attempt)]);
}

async fn a_reference_is_withdrawn_when_it_expires(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let (order, attempt) = with_reference(&paying).await;
    paying.pass_s(3_599).await;
    assert_eq!(connector.calls("revoke-reference").len(), 0);
    paying.pass_s(1).await;
    assert_eq!(connector.calls("revoke-reference"), [withdrawal(&attempt)]);
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"), "first withdrawn, then cancelled");
    paying.pass_s(599).await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"));
    paying.pass_s(1).await;
    assert_eq!(paying.stands(&order).await, ("expired", "CAN"));
}

/// Its notice was lost, and nothing else would tell of the money before the order is over.
async fn a_rail_that_cannot_withdraw_is_asked_whether_it_was_paid(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    connector.can(&json!({ "canRevoke": false }));
    TestConnector::asked_by(&paying.app).await.unwrap();
    let (paid, _) = with_reference(&paying).await;
    connector.will("query", Reply::Json(json!({ "answer": "unknown" })));
    paying.pass_s(3_600).await;
    assert_eq!(paying.stands(&paid).await, ("issued", "PEN"));
    let answer = json!({ "answer": "accepted", "railPaymentId": "p1", "amount": "15000.00" });
    connector.will("query", Reply::Json(answer));
    paying.pass_s(300).await;
    assert_eq!(paying.stands(&paid).await, ("accepted", "CON"), "asked again in the grace");
    assert_eq!(connector.calls("query").len(), 2);
    assert_eq!(connector.calls("revoke-reference").len(), 0);
}

async fn a_rail_that_cannot_withdraw_is_asked_until_the_order_is_over(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    connector.can(&json!({ "canRevoke": false }));
    TestConnector::asked_by(&paying.app).await.unwrap();
    let (order, _) = with_reference(&paying).await;
    connector.will("query", Reply::Json(json!({ "answer": "unknown" })));
    paying.pass_s(7_200).await;
    assert_eq!(paying.stands(&order).await, ("expired", "CAN"));
    assert_eq!(connector.calls("query").len(), 2, "at its deadline and in its grace");
    assert_eq!(connector.calls("revoke-reference").len(), 0);
}

/// A code lets the order live on, and nobody should find two references of it that can be paid.
async fn a_reference_is_withdrawn_at_its_own_deadline(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(1)).await.attempts.remove(0);
    paying.pay(&order, &Choice::Code).await;
    paying.pass_s(59).await;
    assert_eq!(connector.calls("revoke-reference").len(), 0);
    paying.pass_s(1).await;
    assert_eq!(connector.calls("revoke-reference"), [withdrawal(&attempt)]);
    assert_eq!(paying.stands(&order).await.1, "PEN");
    let unused = json!({ "answer": "refused", "reason": "timeout" });
    connector.will("query", Reply::Json(unused));
    paying.pass_s(3_600).await;
    assert_eq!(paying.stands(&order).await.1, "CAN");
    assert_eq!(connector.calls("revoke-reference").len(), 1, "it is told once");
}

async fn a_reference_whose_deadline_is_to_come_is_withdrawn_with_its_order(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(1)).await.attempts.remove(0);
    paying.pay(&order, &Choice::Code).await;
    assert_eq!(paying.cancel(&order).await, Cancelling::Settled(Status::Cancelled));
    paying.run_due().await;
    assert_eq!(connector.calls("revoke-reference"), [withdrawal(&attempt)]);
    paying.pass_s(3_600).await;
    assert_eq!(connector.calls("revoke-reference").len(), 1, "it is told once");
}

async fn a_withdrawal_under_way_is_not_begun_again(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &reference(1)).await;
    paying.pay(&order, &Choice::Code).await;
    let gate = Arc::new(Semaphore::new(0));
    connector.will("revoke-reference", Reply::Hang(Arc::clone(&gate)));
    let deadline = async {
        paying.app.clock.advance(SignedDuration::from_secs(60));
        paying.run_due().await;
    };
    let cancelled = async {
        connector.wait_for("revoke-reference", 1).await;
        paying.cancel(&order).await;
        gate.add_permits(1);
    };
    tokio::join!(deadline, cancelled);
    paying.pass_s(3_600).await;
    assert_eq!(paying.stands(&order).await.1, "CAN");
    assert_eq!(connector.calls("revoke-reference").len(), 1, "it is told once");
}

async fn a_paid_reference_is_not_withdrawn_at_its_deadline(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(1)).await.attempts.remove(0);
    paying.pay(&order, &Choice::Code).await;
    let paid = paying.notice(&attempt, "p1", Word::Paid(order.terms.amount.into()));
    orders::settle(&paying.app, paid, "").await.unwrap();
    paying.pass_s(3_600).await;
    assert_eq!(paying.stands(&order).await.1, "CON");
    assert_eq!(connector.calls("revoke-reference").len(), 0);
}

async fn nothing_is_withdrawn_where_the_rail_cannot(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let plain = json!({ "methods": [{ "code": "FPSOLPGEXT" }] });
    connector.will("capabilities", Reply::Json(plain));
    TestConnector::asked_by(&paying.app).await.unwrap();
    let (order, _) = with_reference(&paying).await;
    assert_eq!(paying.cancel(&order).await, Cancelling::Settled(Status::Cancelled));
    paying.pass_s(600).await;
    assert_eq!(connector.calls("revoke-reference").len(), 0);
}

#[tokio::test]
async fn two_rails_of_one_name_and_a_wrong_secret_are_refused_at_start() {
    let connector = TestConnector::start().await;
    let rails = |configs: &[svc_service::config::RailConfig]| {
        svc_service::rails::Rails::new(Environment::Sandbox, configs, "run").map(drop).unwrap_err()
    };
    let (one, mut other) = (connector.config(), connector.config());
    assert!(matches!(rails(&[one.clone(), other.clone()]), RailsError::SameName(_)));
    other.name = "simulator".into();
    assert!(matches!(rails(&[one, other.clone()]), RailsError::SameName(_)));
    other.name = "other".into();
    other.secret = "plain".to_owned().into();
    assert!(matches!(rails(&[other]), RailsError::Connector(_)));
}
