//! Expiry in two phases: no longer offered, and after a grace for money on its way cancelled
//! (rails.md 4).

use jiff::SignedDuration;
use svc_service::domain::*;
use svc_service::orders::{self, Choice, PayError};
use svc_service::store::{Committed, Received, StoreError};

use crate::support::*;

on_both_engines! {
    at_its_deadline_a_reference_is_withdrawn_and_after_the_grace_the_order_is_cancelled,
    what_was_paid_while_we_were_away_is_heard_before_the_order_ends,
    what_could_not_be_stored_is_heard_again_before_the_order_ends,
    a_payment_within_the_grace_confirms,
    a_payment_after_the_cancellation_is_late,
    an_order_nobody_chose_an_instrument_for_ends_after_1440_minutes,
    a_push_in_flight_at_the_deadline_may_still_pay,
    a_push_in_flight_at_the_deadline_that_is_refused_ends_the_order_then,
    a_long_reference_outlives_the_day_of_an_order_without_one,
    deadlines_of_one_moment_are_all_kept,
    what_was_decided_before_a_payer_began_ends_nothing,
}

fn paid(paying: &TestPaying, attempt: &PaymentAttempt, id: &str) -> Notice {
    paying.notice(attempt, id, Word::Paid(Centimos::new(1_500_000)))
}

async fn at_its_deadline_a_reference_is_withdrawn_and_after_the_grace_the_order_is_cancelled(
    database: TestDatabase,
) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &reference(1)).await;
    paying.pass_s(59).await;
    let open = paying.dossier(&order).await;
    assert!(open.is_offered(paying.app.clock.now()));
    assert_eq!(open.closing_since, None);
    paying.pass_s(1).await;
    let closing = paying.dossier(&order).await;
    assert_eq!(closing.closing_since, Some(paying.app.clock.now()));
    assert!(!closing.is_offered(paying.app.clock.now()));
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"), "it may still be paid");
    for choice in [reference(60), Choice::Code, push("900000000")] {
        let refused = paying.try_pay(&order, &choice).await.unwrap_err();
        assert!(matches!(refused, PayError::Refused(PayRefusal::Closed)), "{refused:?}");
    }
    paying.pass_s(4).await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"));
    paying.pass_s(1).await;
    assert_eq!(paying.stands(&order).await, ("expired", "CAN"));
    assert_eq!(paying.events(&order).await, ["PEN", "CAN"]);
    let settled = paying.app.store.audit_of(order.reference_number.as_str()).await.unwrap();
    let last = settled.iter().find(|row| row.action == "order.settle").unwrap();
    assert_eq!((last.actor.as_str(), last.cause.as_str()), ("service", "cancelled: expired"));
    assert_eq!(paying.database.count("payment_attempts").await, 1);
}

async fn what_was_paid_while_we_were_away_is_heard_before_the_order_ends(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(1)).await.attempts.remove(0);
    paying.pass_s(60).await;
    paying.app.clock.advance(SignedDuration::from_hours(1));
    // The database, or all of us, came back this moment.
    paying.app.awake.slept(&paying.app.clock);
    paying.pass_s(4).await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"), "the grace is not over");
    let received = orders::settle(&paying.app, paid(&paying, &attempt, "p1"), "").await.unwrap();
    assert_eq!(received, Received::Confirmed);
    let other = paying.order("order_2", 15_000).await;
    paying.pay(&other, &reference(1)).await;
    paying.pass_s(65).await;
    assert_eq!(paying.stands(&other).await, ("expired", "CAN"), "it ends all the same");
}

async fn what_could_not_be_stored_is_heard_again_before_the_order_ends(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(1)).await.attempts.remove(0);
    paying.pass_s(60).await;
    paying.app.clock.advance(SignedDuration::from_secs(4));
    paying.database.sql("alter table receipts rename to gone").await;
    let fault = orders::settle(&paying.app, paid(&paying, &attempt, "p1"), "").await.unwrap_err();
    assert!(matches!(fault, StoreError::Unavailable(_)), "{fault:?}");
    paying.database.sql("alter table gone rename to receipts").await;
    paying.pass_s(4).await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"), "the grace begins anew");
    let received = orders::settle(&paying.app, paid(&paying, &attempt, "p1"), "").await.unwrap();
    assert_eq!(received, Received::Confirmed);
}

async fn a_payment_within_the_grace_confirms(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(1)).await.attempts.remove(0);
    paying.pass_s(64).await;
    assert!(paying.dossier(&order).await.closing_since.is_some());
    let received = orders::settle(&paying.app, paid(&paying, &attempt, "p1"), "").await.unwrap();
    assert_eq!(received, Received::Confirmed);
    paying.pass_s(600).await;
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    assert_eq!(paying.events(&order).await, ["PEN", "CON"]);
    assert_eq!(paying.exceptions(&order).await, []);
    paying.accounted_for(1).await;
}

async fn a_payment_after_the_cancellation_is_late(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(1)).await.attempts.remove(0);
    paying.pass_s(65).await;
    let received = orders::settle(&paying.app, paid(&paying, &attempt, "p1"), "").await.unwrap();
    assert_eq!(received, Received::Exception(ExceptionKind::Late));
    assert_eq!(paying.stands(&order).await, ("expired", "CAN"));
    assert_eq!(paying.events(&order).await, ["PEN", "CAN"], "nothing is told of it");
    assert_eq!(paying.exceptions(&order).await, [("late", 1_500_000)]);
    paying.accounted_for(1).await;
}

async fn an_order_nobody_chose_an_instrument_for_ends_after_1440_minutes(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let expected: [Seen; 2] = [(0, "", "PEN"), (86_400, "", "CAN")];
    assert_eq!(paying.timeline(&order, 90_000).await, expected);
    assert_eq!(paying.events(&order).await, ["CAN"]);
    paying.accounted_for(0).await;
}

/// A reference that ends at second 60, and a push from second 30 on that is unknown at that time.
async fn with_a_push_in_flight(paying: &TestPaying, phone: &str) -> Order {
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &reference(1)).await;
    paying.pass_s(30).await;
    paying.pay(&order, &push(phone)).await;
    order
}

async fn a_push_in_flight_at_the_deadline_may_still_pay(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = with_a_push_in_flight(&paying, "900000004").await;
    let seen = paying.timeline(&order, 600).await;
    let expected: [Seen; 3] =
        [(30, "awaiting_payer", "PEN"), (120, "unknown", "PEN"), (210, "accepted", "CON")];
    assert_eq!(seen, expected);
    let states: Vec<_> =
        paying.dossier(&order).await.attempts.iter().map(|a| a.state.as_str()).collect();
    assert_eq!(states, ["revoked", "accepted"], "the reference went with it");
    assert_eq!(paying.events(&order).await, ["PEN", "CON"]);
}

async fn a_push_in_flight_at_the_deadline_that_is_refused_ends_the_order_then(
    database: TestDatabase,
) {
    let paying = TestPaying::start(database).await;
    let order = with_a_push_in_flight(&paying, "900000005").await;
    let seen = paying.timeline(&order, 600).await;
    let expected: [Seen; 3] =
        [(30, "awaiting_payer", "PEN"), (120, "unknown", "PEN"), (210, "rejected", "CAN")];
    assert_eq!(seen, expected);
    assert_eq!(paying.events(&order).await, ["PEN", "CAN"]);
}

async fn a_long_reference_outlives_the_day_of_an_order_without_one(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &reference(43_200)).await;
    let month_s = 43_200 * 60;
    let expected: [Seen; 2] = [(0, "issued", "PEN"), (month_s + 5, "expired", "CAN")];
    assert_eq!(paying.timeline(&order, month_s + 60).await, expected);
}

async fn deadlines_of_one_moment_are_all_kept(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let mut referenced = Vec::new();
    for number in 0..20 {
        let order = paying.order(&format!("referenced_{number}"), 15_000).await;
        paying.pay(&order, &reference(1)).await;
        referenced.push(order);
    }
    paying.pass_s(60).await;
    for order in &referenced {
        assert!(paying.dossier(order).await.closing_since.is_some(), "no longer offered");
    }
    paying.pass_s(5).await;
    for order in &referenced {
        assert_eq!(paying.stands(order).await, ("expired", "CAN"));
        assert_eq!(paying.events(order).await, ["PEN", "CAN"]);
    }
    // More of them than are taken from the store at once.
    for number in 0..300 {
        paying.order(&format!("bare_{number}"), 15_000).await;
    }
    paying.app.clock.advance(SignedDuration::from_hours(25));
    orders::run_due(&paying.app).await.unwrap();
    assert_eq!(paying.database.count("orders where status = 'CAN'").await, 320);
    assert_eq!(paying.database.count("outbox where status = 'CAN'").await, 320);
}

async fn what_was_decided_before_a_payer_began_ends_nothing(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let ends = async |seen: &Order, end: fn(Pending, Stamp) -> Change| {
        let stamp = Stamp { at: paying.app.clock.now(), ..stamp() };
        paying.app.store.commit(end(seen.clone().pending().unwrap(), stamp)).await.unwrap()
    };
    let (slow, gone) =
        (paying.order("order_1", 15_000).await, paying.order("order_2", 15_000).await);
    // It has another deadline since.
    paying.pay(&slow, &reference(60)).await;
    assert_eq!(ends(&slow, Pending::expire).await, Committed::Refused);
    // It has the same one, and a code that can be paid.
    paying.pay(&gone, &Choice::Code).await;
    assert_eq!(ends(&gone, Pending::abandon).await, Committed::Refused);
    for order in [&slow, &gone] {
        assert_eq!(paying.stands(order).await, ("issued", "PEN"));
    }
    let now = paying.dossier(&slow).await.order;
    assert_eq!(ends(&now, Pending::expire).await, Committed::Done, "what was seen is so");
    let idle = paying.order("order_3", 15_000).await;
    assert_eq!(ends(&idle, Pending::abandon).await, Committed::Done);
    assert_eq!(ends(&idle, Pending::abandon).await, Committed::Lost(Status::Cancelled));
}
