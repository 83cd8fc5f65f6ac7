//! A connector that takes a question and never answers: nobody else waits for it.

use std::sync::Arc;

use serde_json::json;
use svc_service::domain::{Author, Centimos, Reason, Word};
use svc_service::orders::{self, AnswerError, Answered, Cancelling, Choice, Found};
use svc_service::store::Received;
use tokio::sync::Semaphore;

use super::production;
use crate::support::*;

on_both_engines! {
    a_connector_that_hangs_holds_up_no_deadline,
    a_connector_that_hangs_is_asked_few_questions_at_once,
    a_connector_that_cannot_be_asked_is_not_asked,
    a_rail_that_is_away_at_the_deadline_is_waited_for,
    a_rail_that_stays_away_is_waited_for_a_day,
    a_rail_that_loses_a_question_now_and_then_keeps_no_order,
    a_code_that_is_lost_sight_of_while_a_push_is_under_way_keeps_its_order,
}

/// By then a code is asked about, and an order nobody pays is past its deadline.
const DEADLINE_S: i64 = 24 * 60 * 60;
/// Of one connector at once.
const QUESTIONS_MAX: usize = 32;

fn advance_s(paying: &TestPaying, seconds: i64) {
    paying.app.clock.advance(jiff::SignedDuration::from_secs(seconds));
}

async fn a_connector_that_hangs_holds_up_no_deadline(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let asked = paying.order("order_asked", 15_000).await;
    paying.pay(&asked, &Choice::Code).await;
    let left = paying.order("order_left", 15_000).await;
    connector.will("query", Reply::Hang(Arc::new(Semaphore::new(0))));
    advance_s(&paying, DEADLINE_S + 1);
    orders::begin_due(&paying.app).await.unwrap();
    connector.wait_for("query", 1).await;
    advance_s(&paying, 10 * 60 + 1);
    orders::begin_due(&paying.app).await.unwrap();
    assert_eq!(paying.stands(&left).await, ("", "CAN"), "while the question is open");
}

async fn a_connector_that_hangs_is_asked_few_questions_at_once(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    for number in 0..QUESTIONS_MAX + 8 {
        let order = paying.order(&format!("order_{number}"), 15_000).await;
        paying.pay(&order, &Choice::Code).await;
    }
    connector.will("query", Reply::Hang(Arc::new(Semaphore::new(0))));
    advance_s(&paying, DEADLINE_S + 1);
    orders::begin_due(&paying.app).await.unwrap();
    connector.wait_for("query", QUESTIONS_MAX).await;
    let next = orders::next_due(&paying.app).await.unwrap().unwrap();
    let wait = next.duration_since(paying.app.clock.now());
    assert!((1..=2).contains(&wait.as_secs()), "the others are looked at again soon: {wait:?}");
    advance_s(&paying, 3);
    orders::begin_due(&paying.app).await.unwrap();
    assert_eq!(connector.calls("query").len(), QUESTIONS_MAX);
}

async fn a_connector_that_cannot_be_asked_is_not_asked(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    connector.can(&json!({ "canQuery": false }));
    TestConnector::asked_by(&paying.app).await.unwrap();
    connector.will("start-code", Reply::Status(500));
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &Choice::Code).await;
    paying.pass_s(600).await;
    assert_eq!(connector.calls("query").len(), 0);
    assert_eq!(paying.stands(&order).await, ("unknown", "PEN"), "its notice may still come");
    let by = Author::command_line(None);
    let answer = async || {
        let why = "their statement".to_owned();
        let not_paid = Answered { attempt: None, found: Found::NotPaid, why };
        orders::answer(&paying.app, &order.reference_number, not_paid, &by).await
    };
    assert!(matches!(answer().await, Err(AnswerError::StillAsked)), "the code can still be paid");
    // A quarter of an hour for the code, and ten minutes for its notice.
    paying.pass_s(1_300).await;
    answer().await.unwrap();
    assert_eq!(paying.stands(&order).await, ("rejected", "PEN"));
}

/// Twice: a question may be lost.
async fn asked_in_vain(paying: &TestPaying) {
    for _ in 0..2 {
        TestConnector::asked_by(&paying.app).await.unwrap_err();
    }
}

/// The payer paid in time; nobody could tell us.
async fn a_rail_that_is_away_at_the_deadline_is_waited_for(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(60)).await.attempts.remove(0);
    for call in ["capabilities", "revoke-reference", "query", "drain"] {
        connector.will(call, Reply::HangUp);
    }
    asked_in_vain(&paying).await;
    paying.pass_s(3_600 + 3_600).await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"), "an hour after its deadline");
    connector.can(&json!({}));
    TestConnector::asked_by(&paying.app).await.unwrap();
    paying.pass_s(599).await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"), "it has its grace to tell");
    let notice = paying.notice(&attempt, "p1", Word::Paid(Centimos::new(1_500_000)));
    assert_eq!(orders::settle(&paying.app, notice, "").await.unwrap(), Received::Confirmed);
}

async fn a_rail_that_stays_away_is_waited_for_a_day(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &reference(60)).await;
    for call in ["capabilities", "revoke-reference", "query", "drain"] {
        connector.will(call, Reply::HangUp);
    }
    asked_in_vain(&paying).await;
    paying.pass_s(3_600 + DEADLINE_S).await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"));
    paying.pass_s(601).await;
    assert_eq!(paying.stands(&order).await, ("expired", "CAN"));
}

async fn a_rail_that_loses_a_question_now_and_then_keeps_no_order(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &reference(60)).await;
    paying.pass_s(3_600 + 599).await;
    connector.will("capabilities", Reply::HangUp);
    TestConnector::asked_by(&paying.app).await.unwrap_err();
    connector.can(&json!({}));
    TestConnector::asked_by(&paying.app).await.unwrap();
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"));
    paying.pass_s(1).await;
    assert_eq!(paying.stands(&order).await, ("expired", "CAN"), "its grace was not begun anew");
}

async fn a_code_that_is_lost_sight_of_while_a_push_is_under_way_keeps_its_order(
    database: TestDatabase,
) {
    let (paying, _connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    let code = paying.pay(&order, &Choice::Code).await.attempts.remove(0);
    let push = paying.pay(&order, &push("923456789")).await.attempts.remove(1);
    let notice = paying.notice(&code, "p1", Word::Unconfirmed);
    assert_eq!(orders::settle(&paying.app, notice, "").await.unwrap(), Received::Noted);
    let notice = paying.notice(&push, "p2", Word::Refused(Reason::PayerRefused));
    assert_eq!(orders::settle(&paying.app, notice, "").await.unwrap(), Received::Noted);
    assert_eq!(paying.cancel(&order).await, Cancelling::Waits, "money may be moving");
    let notice = paying.notice(&code, "p3", Word::Paid(Centimos::new(1_500_000)));
    assert_eq!(orders::settle(&paying.app, notice, "").await.unwrap(), Received::Confirmed);
}
