//! Cancelling: never while money may be moving; then it waits, and a payment wins (rails.md 2).

use svc_service::domain::*;
use svc_service::orders::{self, Cancelling, Choice, PayError};
use svc_service::store::Received;

use crate::support::*;

on_both_engines! {
    an_order_with_nothing_in_flight_is_cancelled_at_once_and_its_reference_is_dead,
    a_cancel_waits_for_the_attempt_in_flight_and_is_applied_when_it_is_refused,
    a_cancel_waits_for_an_unknown_attempt_however_long,
    a_cancel_waits_for_what_the_rail_says_of_a_code_past_its_deadline,
    a_confirmation_wins_over_a_waiting_cancel,
    a_cancel_that_waits_is_noted_once_and_nothing_new_is_started,
    a_settled_order_is_not_cancelled,
}

async fn an_order_with_nothing_in_flight_is_cancelled_at_once_and_its_reference_is_dead(
    database: TestDatabase,
) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(60)).await.attempts.remove(0);
    paying.pass_s(1).await;
    assert_eq!(paying.cancel(&order).await, Cancelling::Settled(Status::Cancelled));
    assert_eq!(paying.stands(&order).await, ("revoked", "CAN"));
    assert_eq!(paying.events(&order).await, ["PEN", "CAN"]);
    let word = Word::Paid(Centimos::new(1_500_000));
    let received = orders::settle(&paying.app, paying.notice(&attempt, "p1", word), "").await;
    assert_eq!(received.unwrap(), Received::Exception(ExceptionKind::Late));
    assert_eq!(paying.exceptions(&order).await, [("late", 1_500_000)]);
    assert_eq!(paying.stands(&order).await, ("revoked", "CAN"));
    paying.accounted_for(1).await;
}

async fn a_cancel_waits_for_the_attempt_in_flight_and_is_applied_when_it_is_refused(
    database: TestDatabase,
) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &push("900003000")).await;
    assert_eq!(paying.cancel(&order).await, Cancelling::Waits);
    assert_eq!(paying.stands(&order).await, ("awaiting_payer", "PEN"));
    let expected: [Seen; 2] = [(0, "awaiting_payer", "PEN"), (5, "rejected", "CAN")];
    assert_eq!(paying.timeline(&order, 600).await, expected);
    assert_eq!(paying.events(&order).await, ["PEN", "CAN"]);
    let audit = paying.app.store.audit_of(order.reference_number.as_str()).await.unwrap();
    let settled = audit.iter().find(|row| row.action == "order.settle").unwrap();
    assert_eq!(settled.cause, "cancelled: payer", "as it was asked for");
}

async fn a_cancel_waits_for_an_unknown_attempt_however_long(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &push("900000005")).await;
    paying.pass_s(100).await;
    assert_eq!(paying.cancel(&order).await, Cancelling::Waits);
    let expected: [Seen; 2] = [(100, "unknown", "PEN"), (180, "rejected", "CAN")];
    assert_eq!(paying.timeline(&order, 600).await, expected);
}

async fn a_cancel_waits_for_what_the_rail_says_of_a_code_past_its_deadline(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let (used, unused) =
        (paying.order("order_1", 9_103).await, paying.order("order_2", 9_103).await);
    let code = paying.pay(&used, &Choice::Code).await.attempts.remove(0);
    paying.pay(&unused, &Choice::Code).await;
    paying.app.clock.advance(code.deadline.duration_since(paying.app.clock.now()));
    for order in [&used, &unused] {
        assert_eq!(paying.cancel(order).await, Cancelling::Waits);
        assert_eq!(paying.stands(order).await, ("issued", "PEN"));
    }
    // Approved in the last second, and told now.
    let paid = paying.notice(&code, "p1", Word::Paid(Centimos::new(910_300)));
    assert_eq!(orders::settle(&paying.app, paid, "").await.unwrap(), Received::Confirmed);
    paying.run_due().await;
    assert_eq!(paying.stands(&used).await, ("accepted", "CON"));
    assert_eq!(paying.stands(&unused).await, ("expired", "CAN"));
}

async fn a_confirmation_wins_over_a_waiting_cancel(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &push("900000000")).await;
    assert_eq!(paying.cancel(&order).await, Cancelling::Waits);
    let expected: [Seen; 2] = [(0, "awaiting_payer", "PEN"), (3, "accepted", "CON")];
    assert_eq!(paying.timeline(&order, 90_000).await, expected, "and no day later either");
    assert_eq!(paying.events(&order).await, ["PEN", "CON"]);
    assert_eq!(paying.exceptions(&order).await, []);
    paying.accounted_for(1).await;
}

async fn a_cancel_that_waits_is_noted_once_and_nothing_new_is_started(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &push("900000001")).await;
    for _ in 0..3 {
        assert_eq!(paying.cancel(&order).await, Cancelling::Waits);
    }
    assert_eq!(paying.database.count("audit where action = 'order.request_cancel'").await, 1);
    assert_eq!(paying.dossier(&order).await.cancel_requested, Some(CancelReason::Payer));
    for choice in [Choice::Code, reference(60)] {
        let refused = paying.try_pay(&order, &choice).await.unwrap_err();
        assert!(matches!(refused, PayError::Refused(PayRefusal::InFlight)), "{refused:?}");
    }
    assert_eq!(paying.database.count("payment_attempts").await, 1);
}

async fn a_settled_order_is_not_cancelled(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 9_001).await;
    paying.pay(&order, &reference(60)).await;
    paying.pass_s(5).await;
    assert_eq!(paying.cancel(&order).await, Cancelling::Settled(Status::Confirmed));
    assert_eq!(paying.events(&order).await, ["PEN", "CON"]);
    assert_eq!(paying.dossier(&order).await.cancel_requested, None);
}
