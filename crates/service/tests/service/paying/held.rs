//! Another amount than the order's is held, and an operator decides (rails.md 6).

use svc_service::domain::*;
use svc_service::orders::{self, Cancelling, Choice, PayError, Resolution, ResolveError};
use svc_service::store::{Committed, Received, Resolved};

use crate::support::*;

on_both_engines! {
    an_operator_who_accepts_confirms_the_order,
    an_accepted_exception_is_resolved_with_its_order,
    what_was_refunded_meanwhile_is_not_accepted,
    an_operator_who_refunds_cancels_the_order,
    what_an_order_is_held_for_is_not_dismissed,
    nothing_is_resolved_twice,
    only_a_mismatch_of_a_pending_order_is_accepted,
    a_held_order_is_not_paid_another_way,
    a_cancel_of_a_held_order_waits_for_the_operator,
    the_full_amount_still_confirms_a_held_order,
    other_money_by_an_id_of_the_rails_that_was_used_before_is_held,
    money_that_was_taken_back_before_we_heard_of_it_pays_nothing,
    a_payment_that_was_reversed_under_both_its_names_is_stored,
    money_that_was_for_nobody_and_is_for_an_order_now_is_held,
    money_for_nobody_under_an_id_of_an_orders_money_is_on_record,
    a_refusal_by_an_id_of_another_orders_is_heard,
}

/// An order held for one kwanza less, and its entry in the ledger.
async fn held(paying: &TestPaying) -> (Order, i64) {
    let order = paying.order("order_1", 9_003).await;
    paying.pay(&order, &reference(60)).await;
    paying.pass_s(5).await;
    assert_eq!(paying.stands(&order).await, ("held", "PEN"));
    let ledger = paying.ledger(&order).await;
    assert_eq!(ledger.len(), 1);
    (order, ledger[0].id)
}

async fn resolve(paying: &TestPaying, id: i64, what: Resolution) -> Result<String, ResolveError> {
    let resolved = orders::resolve(&paying.app, id, what, &ana(), "ticket 7").await?.resolved;
    let resolved = resolved.unwrap();
    assert_eq!((resolved.by.as_str(), resolved.at), ("operator:ana", paying.app.clock.now()));
    Ok(resolved.resolution)
}

async fn an_operator_who_accepts_confirms_the_order(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let (order, id) = held(&paying).await;
    paying.pass_s(7_200).await;
    assert_eq!(paying.stands(&order).await, ("held", "PEN"), "it waits past its deadline");
    let said = resolve(&paying, id, Resolution::Accept).await.unwrap();
    assert_eq!(said, "accepted: ticket 7");
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    assert_eq!(paying.events(&order).await, ["PEN", "CON"]);
    paying.pass_s(90_000).await;
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    paying.accounted_for(1).await;
}

/// As an operator's acceptance writes it.
fn acceptance(paying: &TestPaying, order: &Order, id: i64) -> Change {
    let at = paying.app.clock.now();
    let stamp = Stamp {
        at,
        actor: ana().actor,
        event_id: EventId::assign(at, [7; 10]),
        request_id: String::new(),
    };
    order.clone().pending().unwrap().accept(id, "ticket 7", stamp)
}

async fn an_accepted_exception_is_resolved_with_its_order(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let (order, id) = held(&paying).await;
    let change = acceptance(&paying, &order, id);
    assert_eq!(paying.app.store.commit(change).await.unwrap(), Committed::Done);
    let resolved = paying.ledger(&order).await[0].resolved.clone().expect("one transaction");
    assert_eq!((&*resolved.by, &*resolved.resolution), ("operator:ana", "accepted: ticket 7"));
    let audit = paying.app.store.audit_of(order.reference_number.as_str()).await.unwrap();
    assert_eq!(audit.iter().filter(|row| row.action == "exception.resolve").count(), 1);
}

async fn what_was_refunded_meanwhile_is_not_accepted(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let (order, id) = held(&paying).await;
    let change = acceptance(&paying, &order, id);
    let (at, by) = (paying.app.clock.now(), "operator:rui".to_owned());
    let refunded = Resolved { at, by, resolution: "refunded: sent back".into() };
    assert!(paying.app.store.resolve_exception(id, refunded).await.unwrap());
    assert_eq!(paying.app.store.commit(change).await.unwrap(), Committed::Refused);
    assert_eq!(paying.stands(&order).await, ("held", "PEN"));
    assert_eq!(paying.events(&order).await, ["PEN"]);
}

async fn an_operator_who_refunds_cancels_the_order(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let (order, id) = held(&paying).await;
    let said = resolve(&paying, id, Resolution::Refund).await.unwrap();
    assert_eq!(said, "refunded: ticket 7");
    assert_eq!(paying.stands(&order).await, ("rejected", "CAN"));
    assert_eq!(paying.events(&order).await, ["PEN", "CAN"]);
    let audit = paying.app.store.audit_of(order.reference_number.as_str()).await.unwrap();
    let settled = audit.iter().find(|row| row.action == "order.settle").unwrap();
    assert_eq!(settled.actor, "operator:ana");
    assert_eq!(paying.exceptions(&order).await, [("mismatch", 900_200)]);
}

async fn what_an_order_is_held_for_is_not_dismissed(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let (order, id) = held(&paying).await;
    let refused = resolve(&paying, id, Resolution::Dismiss).await.unwrap_err();
    assert!(matches!(refused, ResolveError::Held), "{refused:?}");
    assert_eq!(paying.stands(&order).await, ("held", "PEN"));
    assert_eq!(paying.ledger(&order).await[0].resolved, None);
    assert_eq!(paying.events(&order).await, ["PEN"]);
}

async fn nothing_is_resolved_twice(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let (order, id) = held(&paying).await;
    resolve(&paying, id, Resolution::Accept).await.unwrap();
    for again in [Resolution::Accept, Resolution::Refund, Resolution::Dismiss] {
        let refused = resolve(&paying, id, again).await.unwrap_err();
        let ResolveError::Already { by, resolution } = refused else { panic!("{refused:?}") };
        assert_eq!((by.as_str(), resolution.as_str()), ("operator:ana", "accepted: ticket 7"));
    }
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    assert_eq!(paying.events(&order).await, ["PEN", "CON"]);
    let unknown = resolve(&paying, id + 1, Resolution::Dismiss).await.unwrap_err();
    assert!(matches!(unknown, ResolveError::NotFound(_)), "{unknown:?}");
}

async fn only_a_mismatch_of_a_pending_order_is_accepted(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    for (id, amount, kind, wait_s) in
        [("late", 9_007, "late", 200), ("excess", 9_005, "excess", 10)]
    {
        let order = paying.order(id, amount).await;
        paying.pay(&order, &reference(60)).await;
        paying.pass_s(wait_s).await;
        let before = paying.stands(&order).await;
        let entry = paying.ledger(&order).await.remove(0);
        assert_eq!(entry.kind.as_str(), kind);
        let refused = resolve(&paying, entry.id, Resolution::Accept).await.unwrap_err();
        assert!(matches!(refused, ResolveError::NotAcceptable), "{kind}: {refused:?}");
        resolve(&paying, entry.id, Resolution::Refund).await.unwrap();
        assert_eq!(paying.stands(&order).await, before, "{kind}");
    }
}

async fn a_held_order_is_not_paid_another_way(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let (order, _) = held(&paying).await;
    for choice in [Choice::Code, push("900000000"), reference(60)] {
        let refused = paying.try_pay(&order, &choice).await.unwrap_err();
        assert!(matches!(refused, PayError::Refused(PayRefusal::InFlight)), "{refused:?}");
    }
    assert_eq!(paying.database.count("payment_attempts").await, 1);
}

async fn a_cancel_of_a_held_order_waits_for_the_operator(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let (order, id) = held(&paying).await;
    assert_eq!(paying.cancel(&order).await, Cancelling::Waits);
    paying.pass_s(7_200).await;
    assert_eq!(paying.stands(&order).await, ("held", "PEN"));
    resolve(&paying, id, Resolution::Accept).await.unwrap();
    paying.pass_s(7_200).await;
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"), "the operator's word wins");
    assert_eq!(paying.events(&order).await, ["PEN", "CON"]);
}

async fn the_full_amount_still_confirms_a_held_order(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let (order, id) = held(&paying).await;
    let attempt = paying.last_attempt(&order).await;
    let word = Word::Paid(Centimos::new(900_300));
    let received = orders::settle(&paying.app, paying.notice(&attempt, "p2", word), "").await;
    assert_eq!(received.unwrap(), Received::Confirmed);
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    // The other money is still there, and now only goes back.
    let refused = resolve(&paying, id, Resolution::Accept).await.unwrap_err();
    assert!(matches!(refused, ResolveError::NotAcceptable), "{refused:?}");
    resolve(&paying, id, Resolution::Refund).await.unwrap();
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    paying.accounted_for(2).await;
}

async fn other_money_by_an_id_of_the_rails_that_was_used_before_is_held(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let mut orders_paid = Vec::new();
    for id in ["order_1", "order_2"] {
        let order = paying.order(id, 15_000).await;
        paying.pay(&order, &reference(60)).await;
        let attempt = paying.last_attempt(&order).await;
        orders_paid.push((order, attempt));
    }
    let [(first, by_first), (second, by_second)] = &orders_paid[..] else { unreachable!() };
    let full = Word::Paid(Centimos::new(1_500_000));
    let more = Word::Paid(Centimos::new(1_500_100));
    let back = |centimos| Word::Reversed(Centimos::new(centimos));
    for (attempt, word, expected) in [
        (by_first, full.clone(), Received::Confirmed),
        (by_second, full.clone(), Received::Exception(ExceptionKind::Reused)),
        (by_first, more.clone(), Received::Exception(ExceptionKind::Excess)),
        (by_first, back(500_000), Received::Exception(ExceptionKind::Reversal)),
        (by_first, back(1_000_000), Received::Exception(ExceptionKind::Reversal)),
    ] {
        let notice = paying.notice(attempt, "p1", word);
        for expected in [expected, Received::Duplicate] {
            let received = orders::settle(&paying.app, notice.clone(), "").await.unwrap();
            assert_eq!(received, expected, "{notice:?}");
        }
    }
    paying.accounted_for(10).await;
    let of_first = [("excess", 1_500_100), ("reversal", 500_000), ("reversal", 1_000_000)];
    assert_eq!(paying.exceptions(first).await, of_first);
    assert_eq!(paying.stands(second).await, ("held", "PEN"));
    let held = paying.ledger(second).await.remove(0);
    let name = format!("p1 (15000.00 for attempt {})", by_second.id.as_str());
    assert_eq!(held.rail_payment_id, name);
    resolve(&paying, held.id, Resolution::Accept).await.unwrap();
    assert_eq!(paying.stands(second).await, ("accepted", "CON"));
}

async fn money_that_was_taken_back_before_we_heard_of_it_pays_nothing(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(60)).await.attempts.remove(0);
    for (word, expected) in [
        (Word::Reversed(Centimos::new(1_500_000)), ExceptionKind::Reversal),
        (Word::Paid(Centimos::new(1_500_000)), ExceptionKind::Reused),
    ] {
        let notice = paying.notice(&attempt, "p1", word);
        for expected in [Received::Exception(expected), Received::Duplicate] {
            let received = orders::settle(&paying.app, notice.clone(), "").await.unwrap();
            assert_eq!(received, expected, "{notice:?}");
        }
    }
    assert_eq!(paying.stands(&order).await, ("held", "PEN"));
    paying.accounted_for(4).await;
    // It is the same money when the order has ended.
    let held = paying.ledger(&order).await.into_iter().find(|entry| entry.kind.holds_order());
    resolve(&paying, held.unwrap().id, Resolution::Refund).await.unwrap();
    let again = paying.notice(&attempt, "p1", Word::Paid(Centimos::new(1_500_000)));
    let received = orders::settle(&paying.app, again, "").await.unwrap();
    assert_eq!(received, Received::Duplicate);
    assert_eq!(paying.ledger(&order).await.len(), 2, "nothing is refunded twice");
}

/// Its own name is taken by a reversal, too.
async fn a_payment_that_was_reversed_under_both_its_names_is_stored(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(60)).await.attempts.remove(0);
    let notice = |word: fn(Centimos) -> Word, centimos| {
        paying.notice(&attempt, "p1", word(Centimos::new(centimos)))
    };
    for (notice, kind) in [
        (notice(Word::Reversed, 500_000), ExceptionKind::Reversal),
        (notice(Word::Reversed, 1_500_000), ExceptionKind::Reversal),
        (notice(Word::Paid, 1_500_000), ExceptionKind::Reused),
    ] {
        let received = orders::settle(&paying.app, notice.clone(), "").await.unwrap();
        assert_eq!(received, Received::Exception(kind), "{notice:?}");
    }
}

async fn money_that_was_for_nobody_and_is_for_an_order_now_is_held(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(60)).await.attempts.remove(0);
    let right = paying.notice(&attempt, "p1", Word::Paid(Centimos::new(1_500_000)));
    let about = About::Reference(BankReference::parse("00348", "111111111").unwrap());
    let wrong = Notice { about, ..right.clone() };
    for (notice, expected) in [(wrong, ExceptionKind::Unmatched), (right, ExceptionKind::Reused)] {
        for expected in [Received::Exception(expected), Received::Duplicate] {
            let received = orders::settle(&paying.app, notice.clone(), "").await.unwrap();
            assert_eq!(received, expected, "{notice:?}");
        }
    }
    let held = paying.ledger(&order).await.remove(0);
    resolve(&paying, held.id, Resolution::Accept).await.unwrap();
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
}

/// A rail whose ids begin anew.
async fn money_for_nobody_under_an_id_of_an_orders_money_is_on_record(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &reference(60)).await.attempts.remove(0);
    let paid = paying.notice(&attempt, "p1", Word::Paid(Centimos::new(1_500_000)));
    let about = About::Reference(BankReference::parse("00348", "111111111").unwrap());
    let other = Notice { about, ..paid.clone() };
    for (notice, expected) in [
        (&paid, Received::Confirmed),
        (&other, Received::Exception(ExceptionKind::Unmatched)),
        (&other, Received::Duplicate),
        (&paid, Received::Duplicate),
    ] {
        let received = orders::settle(&paying.app, notice.clone(), "").await.unwrap();
        assert_eq!(received, expected, "{notice:?}");
    }
}

/// A rail whose ids begin anew.
async fn a_refusal_by_an_id_of_another_orders_is_heard(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    for id in ["order_1", "order_2"] {
        let order = paying.order(id, 15_000).await;
        let attempt = paying.pay(&order, &push("923456789")).await.attempts.remove(0);
        let refusal = paying.notice(&attempt, "p1", Word::Refused(Reason::PayerRefused));
        for expected in [Received::Noted, Received::Duplicate] {
            let received = orders::settle(&paying.app, refusal.clone(), "").await.unwrap();
            assert_eq!(received, expected, "{id}");
        }
        assert_eq!(paying.stands(&order).await, ("rejected", "PEN"), "{id}");
    }
}

fn ana() -> Author {
    Author { actor: Actor::Operator("ana".into()), request_id: String::new() }
}
