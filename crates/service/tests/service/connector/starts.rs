//! Starting an attempt at a connector: what it is told, and what its answer or its silence means.

use std::sync::Arc;

use serde_json::{Value, json};
use svc_service::domain::*;
use svc_service::orders::{self, Cancelling, Choice, PayError};
use svc_service::store::Received;
use tokio::sync::Semaphore;

use super::production;
use crate::support::*;

on_both_engines! {
    a_push_is_started_with_all_the_rail_needs_and_asked_about_when_its_window_ends,
    a_reference_is_the_rails_own_and_is_paid_by_its_number,
    a_code_is_shown_as_the_rail_gave_it,
    a_rail_may_say_another_deadline,
    a_deadline_that_is_over_is_none,
    a_push_is_asked_about_soon_whatever_deadline_its_rail_says,
    a_broken_answer_to_a_start_is_unknown_and_never_tried_again,
    a_reference_without_an_entity_is_shown_to_nobody,
    a_reference_that_was_not_issued_leaves_the_orders_deadline_alone,
    a_start_that_hangs_is_asked_about_and_its_late_answer_changes_nothing,
    a_stop_waits_for_a_start_that_its_payer_has_left,
    a_cancellation_that_waited_ends_an_order_whose_reference_is_issued_after_all,
    a_reference_issued_after_the_order_was_paid_is_withdrawn,
    an_unknown_attempt_is_settled_by_asking,
    a_refusal_is_told_in_the_rails_words,
    what_was_asked_and_paid_wrongly_is_held,
}

async fn a_push_is_started_with_all_the_rail_needs_and_asked_about_when_its_window_ends(
    database: TestDatabase,
) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &push("923456789")).await.attempts.remove(0);
    assert_eq!((attempt.state, attempt.rail.as_str()), (AttemptState::AwaitingPayer, "acquirer"));
    assert_eq!(attempt.rail_id.as_deref(), Some("rail-7"));
    let expected = json!({
        "attemptId": attempt.id.as_str(), "amount": 15_000, "currency": "AOA", "label": "Livro",
        "deadline": attempt.deadline.to_string(), "phone": "+244923456789",
    });
    assert_eq!(connector.calls("start-push"), [expected]);
    let paid = json!({ "answer": "accepted", "railPaymentId": "p1", "amount": "15000.00" });
    connector.will("query", Reply::Json(paid));
    let seen: [Seen; 2] = [(0, "awaiting_payer", "PEN"), (90, "accepted", "CON")];
    assert_eq!(paying.timeline(&order, 600).await, seen);
    let asked = json!({ "attemptId": attempt.id.as_str(), "railId": "rail-7" });
    assert_eq!(connector.calls("query"), [asked], "once is enough");
    assert_eq!(paying.events(&order).await, ["PEN", "CON"]);
    paying.accounted_for(1).await;
    assert!(!paying.database.holds("923456789").await);
}

async fn a_reference_is_the_rails_own_and_is_paid_by_its_number(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(60)).await.attempts.remove(0);
    let bank = BankReference::parse("00348", "987654321").unwrap();
    assert_eq!(attempt.instrument, Instrument::Reference(Some(bank.clone())));
    assert_eq!(attempt.state, AttemptState::Issued);
    let call = connector.calls("issue-reference").remove(0);
    assert_eq!(call["reference"].as_str().unwrap().len(), 9, "a number the rail may take");
    assert_eq!(call["phone"], Value::Null);
    let notice = Notice {
        rail: "acquirer".into(),
        rail_payment_id: "p1".into(),
        about: About::Reference(bank),
        word: Word::Paid(Centimos::new(1_500_000)),
        raw: b"raw".to_vec(),
    };
    let received = orders::settle(&paying.app, notice, "").await.unwrap();
    assert_eq!(received, Received::Confirmed);
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
}

async fn a_code_is_shown_as_the_rail_gave_it(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &Choice::Code).await.attempts.remove(0);
    let code = WalletCode { code: "AB12-CD34".into(), link: "https://wallet.example/AB12".into() };
    assert_eq!(attempt.instrument, Instrument::Code(Some(code)));
    assert_eq!(connector.calls("start-code").len(), 1);
    let over = json!({ "answer": "refused", "reason": "timeout" });
    connector.will("query", Reply::Json(over));
    let seen: [Seen; 2] = [(0, "issued", "PEN"), (900, "expired", "PEN")];
    assert_eq!(paying.timeline(&order, 1_000).await, seen);
}

async fn a_rail_may_say_another_deadline(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    let deadline = at(120_000);
    let given = json!({
        "answer": "accepted", "railId": "r", "entity": "00348", "reference": "987654321",
        "deadline": deadline.to_string(),
    });
    connector.will("issue-reference", Reply::Json(given));
    let dossier = paying.pay(&order, &reference(60)).await;
    assert_eq!((dossier.attempts[0].deadline, dossier.order.expires_at), (deadline, deadline));
    // In production money on its way has ten minutes.
    let seen: [Seen; 2] = [(0, "issued", "PEN"), (720, "expired", "CAN")];
    assert_eq!(paying.timeline(&order, 3_600).await, seen);
}

async fn a_deadline_that_is_over_is_none(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    let given = json!({
        "answer": "accepted", "railId": "r", "entity": "00348", "reference": "987654321",
        "deadline": at(-3_600_000).to_string(),
    });
    connector.will("issue-reference", Reply::Json(given));
    let dossier = paying.pay(&order, &reference(60)).await;
    assert_eq!(dossier.attempts[0].deadline, at(3_600_000));
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"));
}

async fn a_push_is_asked_about_soon_whatever_deadline_its_rail_says(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    let deadline = at(30 * 24 * 3_600_000).to_string();
    let given = json!({ "answer": "accepted", "railId": "r", "deadline": deadline });
    connector.will("start-push", Reply::Json(given));
    connector.will("query", Reply::Json(json!({ "answer": "refused", "reason": "timeout" })));
    paying.pay(&order, &push("923456789")).await;
    let seen: [Seen; 2] = [(0, "awaiting_payer", "PEN"), (600, "timed_out", "PEN")];
    assert_eq!(paying.timeline(&order, 1_000).await, seen);
}

fn code(rail_id: &str, code: &str, link: &str) -> Reply {
    let answer = json!({ "answer": "accepted", "railId": rail_id, "code": code, "link": link });
    Reply::Json(answer)
}

async fn a_broken_answer_to_a_start_is_unknown_and_never_tried_again(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let replies = [
        ("status_500", Reply::Status(500)),
        ("status_400", Reply::Status(400)),
        ("not_json", Reply::Text("<html>")),
        ("nothing", Reply::Text("")),
        ("a_list", Reply::Text("[]")),
        ("another_word", Reply::Json(json!({ "answer": "maybe", "railId": "r" }))),
        ("no_id", Reply::Json(json!({ "answer": "accepted", "code": "A", "link": "B" }))),
        ("no_code", Reply::Json(json!({ "answer": "accepted", "railId": "r" }))),
        ("nul_in_id", code("a\0b", "A", "https://w.ao/")),
        ("nul_in_code", code("r", "A\0", "https://w.ao/")),
        ("endless_code", code("r", &"A".repeat(3_000), "https://w.ao/")),
        ("link_that_runs", code("r", "A", "javascript:alert(1)")),
        ("link_to_nowhere", code("r", "A", "B")),
        ("hangs_up", Reply::HangUp),
    ];
    let count = replies.len();
    for (name, reply) in replies {
        connector.will("start-code", reply);
        let order = paying.order(name, 15_000).await;
        paying.pay(&order, &Choice::Code).await;
        assert_eq!(paying.stands(&order).await, ("unknown", "PEN"), "{name}");
        paying.pay(&order, &Choice::Code).await;
        let refused = paying.try_pay(&order, &reference(60)).await.unwrap_err();
        assert!(matches!(refused, PayError::Refused(PayRefusal::InFlight)), "{name}: {refused:?}");
        assert_eq!(paying.events(&order).await, [""; 0], "{name}: nothing can be paid yet");
    }
    let first = connector.calls("start-code").len();
    paying.pass_s(7_200).await;
    assert_eq!((first, connector.calls("start-code").len()), (count, count), "never again");
    let polled = connector.calls("query").len();
    assert!(polled > 20 * count, "but asked about: {polled}");
    let unknown = paying.database.count("payment_attempts where state = 'unknown'").await;
    assert_eq!(unknown, i64::try_from(count).unwrap());
}

async fn a_reference_without_an_entity_is_shown_to_nobody(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let alone = json!({ "answer": "accepted", "railId": "r", "reference": "987654321" });
    connector.will("issue-reference", Reply::Json(alone));
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &reference(60)).await;
    assert_eq!(paying.stands(&order).await, ("unknown", "PEN"));
    assert_eq!(paying.events(&order).await, [""; 0]);
}

/// Nobody was shown a reference, so no deadline was promised.
async fn a_reference_that_was_not_issued_leaves_the_orders_deadline_alone(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    connector.will("issue-reference", Reply::HangUp);
    paying.pay(&order, &reference(5)).await;
    assert_eq!(paying.stands(&order).await, ("unknown", "PEN"));
    connector.will("query", Reply::Json(json!({ "answer": "refused", "reason": "config" })));
    paying.pass_s(10).await;
    assert_eq!(paying.stands(&order).await, ("rejected", "PEN"));
    let dossier = paying.app.store.dossier(&order.reference_number).await.unwrap().unwrap();
    assert_eq!(dossier.order.expires_at, order.expires_at);
}

async fn a_start_that_hangs_is_asked_about_and_its_late_answer_changes_nothing(
    database: TestDatabase,
) {
    let (paying, connector) = production(database).await;
    let gate = Arc::new(Semaphore::new(0));
    connector.will("start-push", Reply::Hang(Arc::clone(&gate)));
    let order = paying.order("order_1", 15_000).await;
    // The payer is not kept longer than a moment.
    paying.pay(&order, &push("923456789")).await;
    assert_eq!(paying.stands(&order).await, ("submitted", "PEN"));
    paying.pass_s(59).await;
    assert_eq!(connector.calls("query").len(), 0);
    let refused = json!({ "answer": "refused", "reason": "payer_refused" });
    connector.will("query", Reply::Json(refused));
    paying.pass_s(1).await;
    assert_eq!(paying.stands(&order).await, ("rejected", "PEN"));
    gate.add_permits(1);
    // The connection that hung is free again once its answer was read.
    connector.will("start-push", Reply::Json(json!({ "answer": "accepted", "railId": "r2" })));
    paying.pay(&order, &push("923456789")).await;
    let states: Vec<_> =
        paying.dossier(&order).await.attempts.iter().map(|a| a.state.as_str()).collect();
    assert_eq!(states, ["rejected", "awaiting_payer"]);
    assert_eq!(connector.calls("start-push").len(), 2);
}

async fn a_stop_waits_for_a_start_that_its_payer_has_left(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let gate = Arc::new(Semaphore::new(0));
    connector.will("start-push", Reply::Hang(Arc::clone(&gate)));
    let order = paying.order("order_1", 15_000).await;
    let choice = push("923456789");
    tokio::select! {
        _ = paying.pay(&order, &choice) => panic!("the rail has not answered"),
        _ = connector.wait_for("start-push", 1) => {}
    }
    paying.app.rail_calls.close();
    gate.add_permits(1);
    paying.app.rail_calls.wait().await;
    assert_eq!(paying.stands(&order).await, ("awaiting_payer", "PEN"));
}

async fn a_cancellation_that_waited_ends_an_order_whose_reference_is_issued_after_all(
    database: TestDatabase,
) {
    let (paying, connector) = production(database).await;
    let gate = Arc::new(Semaphore::new(0));
    connector.will("issue-reference", Reply::Hang(Arc::clone(&gate)));
    let order = paying.order("order_1", 15_000).await;
    let waiting = async {
        connector.wait_for("issue-reference", 1).await;
        assert_eq!(paying.cancel(&order).await, Cancelling::Waits);
        let given = json!({
            "answer": "accepted", "railId": "rail-7", "entity": "00348", "reference": "987654321",
        });
        connector.will("issue-reference", Reply::Json(given));
        gate.add_permits(1);
    };
    let choice = reference(43_200);
    let (dossier, ()) = tokio::join!(paying.pay(&order, &choice), waiting);
    assert_eq!(dossier.attempts[0].state, AttemptState::Issued);
    paying.run_due().await;
    assert_eq!(paying.stands(&order).await, ("revoked", "CAN"));
    assert_eq!(paying.events(&order).await, ["CAN"], "nobody was told that it could be paid");
    assert_eq!(connector.calls("revoke-reference").len(), 1);
}

async fn a_reference_issued_after_the_order_was_paid_is_withdrawn(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    let code = paying.pay(&order, &Choice::Code).await.attempts.remove(0);
    paying.pass_s(1).await;
    let gate = Arc::new(Semaphore::new(0));
    connector.will("issue-reference", Reply::Hang(Arc::clone(&gate)));
    let meanwhile = async {
        connector.wait_for("issue-reference", 1).await;
        let word = Word::Paid(Centimos::new(1_500_000));
        orders::settle(&paying.app, paying.notice(&code, "p1", word), "").await.unwrap();
        let given = json!({
            "answer": "accepted", "railId": "rail-7", "entity": "00348", "reference": "987654321",
        });
        connector.will("issue-reference", Reply::Json(given));
        gate.add_permits(1);
    };
    let choice = reference(60);
    let (dossier, ()) = tokio::join!(paying.pay(&order, &choice), meanwhile);
    assert_eq!(dossier.order.status, Status::Confirmed);
    paying.run_due().await;
    assert_eq!(connector.calls("revoke-reference").len(), 1);
    assert_eq!(paying.database.count("bank_references where free_at_ms is null").await, 0);
    assert_eq!(paying.events(&order).await, ["PEN", "CON"]);
}

async fn an_unknown_attempt_is_settled_by_asking(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    connector.will("start-push", Reply::Status(503));
    for (id, answer, expected) in [
        ("paid", json!({ "answer": "accepted", "railPaymentId": "p1", "amount": 15_000 }), "CON"),
        ("refused", json!({ "answer": "refused", "reason": "limit" }), "PEN"),
    ] {
        connector.will("query", Reply::Json(json!({ "answer": "unknown" })));
        let order = paying.order(id, 15_000).await;
        paying.pay(&order, &push("923456789")).await;
        paying.pass_s(29).await;
        assert_eq!(paying.stands(&order).await, ("unknown", "PEN"), "{id}: asked at 10 in vain");
        connector.will("query", Reply::Json(answer));
        paying.pass_s(1).await;
        assert_eq!(paying.stands(&order).await.1, expected, "{id}: asked at 30");
        let attempt = paying.last_attempt(&order).await;
        assert!(attempt.state.is_over(), "{id}: {attempt:?}");
    }
    assert_eq!(connector.calls("start-push").len(), 2);
}

async fn a_refusal_is_told_in_the_rails_words(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    for (id, reason, told) in [
        ("order_1", json!("insufficient_funds"), "insufficient_funds"),
        ("order_2", json!("2006"), "other:2006"),
        ("order_3", Value::Null, "other:other"),
    ] {
        let refusal = json!({ "answer": "refused", "reason": reason });
        connector.will("start-push", Reply::Json(refusal));
        let order = paying.order(id, 15_000).await;
        let attempt = paying.pay(&order, &push("923456789")).await.attempts.remove(0);
        assert_eq!(attempt.state, AttemptState::Rejected, "{id}");
        assert_eq!(attempt.reason.unwrap().to_text(), told);
        assert_eq!(paying.events(&order).await, [""; 0], "{id}: nothing could be paid");
    }
}

async fn what_was_asked_and_paid_wrongly_is_held(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    for (id, amount, centimos) in [
        ("order_1", json!("14999.99"), 1_499_999),
        ("order_2", json!(15_000.5), 1_500_050),
        ("order_3", json!(30_000), 3_000_000),
    ] {
        let paid = json!({ "answer": "accepted", "railPaymentId": id, "amount": amount });
        connector.will("query", Reply::Json(paid));
        let order = paying.order(id, 15_000).await;
        paying.pay(&order, &push("923456789")).await;
        paying.pass_s(90).await;
        assert_eq!(paying.stands(&order).await, ("held", "PEN"), "{id}");
        assert_eq!(paying.exceptions(&order).await, [("mismatch", centimos)], "{id}");
    }
    paying.accounted_for(3).await;
}
