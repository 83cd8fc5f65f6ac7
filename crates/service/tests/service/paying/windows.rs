//! The payer closes the window: what that ends, and what it does not.

use jiff::SignedDuration;
use svc_service::domain::*;
use svc_service::orders::{self, Choice};
use svc_service::store::Received;

use crate::support::*;

on_both_engines! {
    an_order_with_nothing_begun_is_given_up,
    a_payer_who_came_back_by_another_window_keeps_the_order,
    a_payer_who_found_no_service_has_a_minute_to_come_back,
    a_window_that_is_just_loading_keeps_the_order_for_a_minute,
    a_reference_that_is_only_asked_for_is_not_waited_for_as_long_as_it_would_live,
    a_window_that_went_silent_holds_nothing,
    a_code_may_be_approved_after_the_window_was_closed,
    a_code_nobody_used_takes_the_order_along,
    a_reference_outlives_every_window,
    a_push_nobody_answered_takes_the_order_along,
    a_window_nobody_heard_of_for_long_is_forgotten,
}

async fn opened(paying: &TestPaying, order: &Order, nonce: &str) {
    let now = paying.app.clock.now();
    paying.app.store.visit_seen(&order.reference_number, nonce, None, true, now).await.unwrap();
}

/// As the page's last word does it.
async fn left(paying: &TestPaying, order: &Order, nonce: &str) {
    let now = paying.app.clock.now();
    let due = now.saturating_add(SignedDuration::from_secs(10)).unwrap();
    paying.app.store.visit_left(&order.reference_number, nonce, None, now, due).await.unwrap();
}

async fn an_order_with_nothing_begun_is_given_up(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    opened(&paying, &order, "one").await;
    left(&paying, &order, "one").await;
    paying.pass_s(9).await;
    assert_eq!(paying.stands(&order).await, ("", "PEN"));
    paying.pass_s(1).await;
    assert_eq!(paying.stands(&order).await, ("", "CAN"));
}

async fn a_payer_who_came_back_by_another_window_keeps_the_order(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    opened(&paying, &order, "one").await;
    left(&paying, &order, "one").await;
    paying.pass_s(5).await;
    opened(&paying, &order, "two").await;
    paying.pass_s(300).await;
    assert_eq!(paying.stands(&order).await, ("", "PEN"));
    left(&paying, &order, "two").await;
    paying.pass_s(10).await;
    assert_eq!(paying.stands(&order).await, ("", "CAN"), "the last one decides");
}

/// A page that is loaded again while the service is down leaves nothing but the word that it was left.
async fn a_payer_who_found_no_service_has_a_minute_to_come_back(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let (back, gone) =
        (paying.order("order_1", 15_000).await, paying.order("order_2", 15_000).await);
    for order in [&back, &gone] {
        opened(&paying, order, "one").await;
        left(&paying, order, "one").await;
    }
    paying.app.clock.advance(SignedDuration::from_secs(12));
    // We, or the database, came back this moment.
    paying.app.awake.slept(&paying.app.clock);
    paying.pass_s(30).await;
    assert_eq!(paying.stands(&back).await, ("", "PEN"));
    opened(&paying, &back, "two").await;
    paying.pass_s(31).await;
    assert_eq!(paying.stands(&back).await, ("", "PEN"));
    assert_eq!(paying.stands(&gone).await, ("", "CAN"));
}

/// On a slow network its script speaks seconds after its page.
async fn a_window_that_is_just_loading_keeps_the_order_for_a_minute(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    opened(&paying, &order, "one").await;
    left(&paying, &order, "one").await;
    paying.pass_s(8).await;
    let now = paying.app.clock.now();
    paying.app.store.visit_seen(&order.reference_number, "two", None, false, now).await.unwrap();
    paying.pass_s(30).await;
    assert_eq!(paying.stands(&order).await, ("", "PEN"));
    paying.pass_s(60).await;
    assert_eq!(paying.stands(&order).await, ("", "CAN"), "it never spoke");
}

async fn a_reference_that_is_only_asked_for_is_not_waited_for_as_long_as_it_would_live(
    database: TestDatabase,
) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let mut dossier = paying.pay(&order, &reference(1_440)).await;
    dossier.attempts[0].state = AttemptState::Submitted;
    let now = paying.app.clock.now();
    let Leaving::Wait { until } = dossier.when_left(now) else { panic!("its rail may say yes") };
    assert!(until.duration_since(now) <= SignedDuration::from_mins(5), "{until}");
}

async fn a_window_that_went_silent_holds_nothing(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    opened(&paying, &order, "killed").await;
    opened(&paying, &order, "one").await;
    left(&paying, &order, "one").await;
    paying.pass_s(890).await;
    assert_eq!(paying.stands(&order).await, ("", "PEN"), "it may be hidden");
    paying.pass_s(100).await;
    assert_eq!(paying.stands(&order).await, ("", "CAN"));
}

async fn a_code_may_be_approved_after_the_window_was_closed(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    opened(&paying, &order, "one").await;
    let attempt = paying.pay(&order, &Choice::Code).await.attempts.remove(0);
    left(&paying, &order, "one").await;
    paying.pass_s(30).await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"));
    let paid = paying.notice(&attempt, "p1", Word::Paid(Centimos::new(1_500_000)));
    assert_eq!(orders::settle(&paying.app, paid, "").await.unwrap(), Received::Confirmed);
    paying.pass_s(1_000).await;
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
}

async fn a_code_nobody_used_takes_the_order_along(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 9_103).await;
    opened(&paying, &order, "one").await;
    paying.pay(&order, &Choice::Code).await;
    left(&paying, &order, "one").await;
    let dossier = paying.dossier(&order).await;
    let asked_about =
        dossier.attempts[0].deadline.saturating_add(SignedDuration::from_secs(30)).unwrap();
    let waits = Leaving::Wait { until: asked_about };
    assert_eq!(dossier.when_left(asked_about), waits, "nobody knows yet whether it was used");
    let expected: [Seen; 3] =
        [(0, "issued", "PEN"), (900, "expired", "PEN"), (910, "expired", "CAN")];
    assert_eq!(paying.timeline(&order, 2_000).await, expected);
}

async fn a_reference_outlives_every_window(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    opened(&paying, &order, "one").await;
    paying.pay(&order, &reference(60)).await;
    left(&paying, &order, "one").await;
    paying.pass_s(3_599).await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"));
}

async fn a_push_nobody_answered_takes_the_order_along(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    opened(&paying, &order, "one").await;
    paying.pay(&order, &push("900000003")).await;
    left(&paying, &order, "one").await;
    let expected: [Seen; 3] =
        [(0, "awaiting_payer", "PEN"), (90, "timed_out", "PEN"), (100, "timed_out", "CAN")];
    assert_eq!(paying.timeline(&order, 2_000).await, expected);
}

async fn a_window_nobody_heard_of_for_long_is_forgotten(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    opened(&paying, &order, "old").await;
    paying.pass_s(60).await;
    let since = paying.app.clock.now();
    opened(&paying, &order, "new").await;
    paying.app.store.forget_visits(since).await.unwrap();
    let known = |nonce| paying.app.store.visit(&order.reference_number, nonce);
    assert_eq!(known("old").await.unwrap(), None);
    assert!(known("new").await.unwrap().is_some());
}
