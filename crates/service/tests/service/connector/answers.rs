//! A rail that keeps silent for good: an operator is told, and answers for it.

use serde_json::json;
use svc_service::domain::*;
use svc_service::orders::{self, AnswerError, Answered, Cancelling, Choice, Found};
use svc_service::store::{Attention, Received, Scope};

use super::production;
use crate::support::*;

on_both_engines! {
    a_payment_nobody_tells_of_is_answered_by_an_operator,
    what_a_rail_can_still_tell_is_not_answered_by_anybody,
    of_several_that_nobody_tells_of_one_is_named,
}

fn operator() -> Author {
    Author { actor: Actor::Operator("ana".into()), request_id: String::new() }
}

async fn attention(paying: &TestPaying) -> Attention {
    paying.app.store.attention(&Scope::Everything).await.unwrap()
}

async fn a_payment_nobody_tells_of_is_answered_by_an_operator(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    connector.will("query", Reply::Json(json!({ "answer": "unknown" })));
    for (id, found, expected) in [
        ("order_1", Found::Paid { rail_payment_id: "tx-7".into() }, ("accepted", "CON")),
        ("order_2", Found::NotPaid, ("rejected", "CAN")),
    ] {
        let order = paying.order(id, 15_000).await;
        paying.pay(&order, &push("923456789")).await;
        paying.pass_s(80_000).await;
        assert_eq!(attention(&paying).await.unanswered, 0, "it is still being asked");
        let (by, reference) = (operator(), &order.reference_number);
        let told = |why: &str| Answered { attempt: None, found: found.clone(), why: why.into() };
        let early = orders::answer(&paying.app, reference, told("hope"), &by).await;
        assert!(matches!(early, Err(AnswerError::StillAsked)), "{early:?}");
        paying.pass_s(10_000).await;
        assert_eq!(paying.stands(&order).await, ("unknown", "PEN"));
        let needs = attention(&paying).await;
        let first = Some(order.reference_number.as_str());
        assert_eq!((needs.unanswered, needs.first_unanswered.as_deref()), (1, first));
        assert_eq!(paying.cancel(&order).await, Cancelling::Waits);
        let answered =
            || orders::answer(&paying.app, reference, told("their statement of today"), &by);
        answered().await.unwrap();
        paying.run_due().await;
        assert_eq!(paying.stands(&order).await, expected, "{id}");
        assert_eq!(attention(&paying).await.unanswered, 0);
        assert!(matches!(answered().await, Err(AnswerError::NotUnknown)));
        let told = paying.app.store.audit_of(order.reference_number.as_str()).await.unwrap();
        let row = told.iter().find(|row| row.action == "attempt.answer").unwrap();
        assert_eq!(row.actor, "operator:ana");
        let attempt = paying.last_attempt(&order).await;
        let said = if id == "order_1" { "was paid by tx-7" } else { "was not paid" };
        let cause = format!("{} {said}: their statement of today", attempt.id.as_str());
        assert_eq!(row.cause, cause);
        if id == "order_1" {
            // The rail tells after all.
            let late = paying.notice(&attempt, "tx-7", Word::Paid(Centimos::new(1_500_000)));
            let received = orders::settle(&paying.app, late, "").await.unwrap();
            assert_eq!(received, Received::Duplicate);
        }
    }
}

async fn of_several_that_nobody_tells_of_one_is_named(database: TestDatabase) {
    let (paying, connector) = production(database).await;
    connector.will("query", Reply::Json(json!({ "answer": "unknown" })));
    let order = paying.order("order_1", 15_000).await;
    let code = paying.pay(&order, &Choice::Code).await.attempts.remove(0);
    paying.pay(&order, &push("923456789")).await;
    let unconfirmed = paying.notice(&code, "p1", Word::Unconfirmed);
    orders::settle(&paying.app, unconfirmed, "").await.unwrap();
    paying.pass_s(100_000).await;
    assert_eq!(attention(&paying).await.unanswered, 2);
    let answered = async |attempt: Option<AttemptId>, found: Found| {
        let told = Answered { attempt, found, why: "their statement".into() };
        orders::answer(&paying.app, &order.reference_number, told, &operator()).await
    };
    let unnamed = answered(None, Found::NotPaid).await;
    let Err(AnswerError::Several(ids)) = unnamed else { panic!("{unnamed:?}") };
    assert!(ids.len() == 2 && ids.contains(&code.id.as_str().to_owned()), "{ids:?}");
    assert_eq!(attention(&paying).await.unanswered, 2, "nothing was guessed");
    answered(Some(code.id.clone()), Found::NotPaid).await.unwrap();
    answered(None, Found::Paid { rail_payment_id: "p2".into() }).await.unwrap();
    let dossier = paying.app.store.dossier(&order.reference_number).await.unwrap().unwrap();
    assert_eq!(dossier.order.status, Status::Confirmed);
    assert_eq!(dossier.attempt(&code.id).unwrap().state, AttemptState::Rejected);
}

async fn what_a_rail_can_still_tell_is_not_answered_by_anybody(database: TestDatabase) {
    let (paying, _connector) = production(database).await;
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &push("923456789")).await;
    let reference = &order.reference_number;
    let hope = Answered { attempt: None, found: Found::NotPaid, why: "hope".into() };
    let refused = orders::answer(&paying.app, reference, hope, &operator()).await;
    assert!(matches!(refused, Err(AnswerError::NotUnknown)), "{refused:?}");
    assert_eq!(paying.stands(&order).await, ("awaiting_payer", "PEN"));
}
