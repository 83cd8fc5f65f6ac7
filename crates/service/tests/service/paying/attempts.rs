//! Attempts: one in flight, so many by a method, stored before the rail is called, told once.

use std::sync::Arc;

use jiff::SignedDuration;
use svc_service::credentials;
use svc_service::domain::*;
use svc_service::orders::{self, Choice, PayError};
use svc_service::store::{NewAttempt, PendingEvent, Received, Started};

use crate::support::*;

on_both_engines! {
    one_attempt_is_in_flight_whatever_the_payer_clicks,
    clicks_at_once_make_one_attempt,
    an_order_is_tried_at_most_five_times_by_a_method,
    a_refused_attempt_leaves_the_order_open_for_the_next,
    the_merchant_hears_of_pen_when_and_only_if_it_wants,
    a_phone_number_is_nowhere_to_be_read,
    a_call_whose_end_nobody_saw_is_asked_about_a_minute_later,
    a_call_whose_end_nobody_saw_may_turn_out_paid,
    money_for_nothing_we_know_is_kept_and_told,
    an_unknown_attempt_is_left_to_an_operator_after_a_day,
}

async fn one_attempt_is_in_flight_whatever_the_payer_clicks(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let first = paying.pay(&order, &push("900000001")).await;
    // The same method shows what is there, even for another number.
    let again = paying.pay(&order, &push("923456789")).await;
    assert_eq!(again.attempts, first.attempts);
    for choice in [Choice::Code, reference(60)] {
        let refused = paying.try_pay(&order, &choice).await.unwrap_err();
        assert!(matches!(refused, PayError::Refused(PayRefusal::InFlight)), "{refused:?}");
    }
    assert_eq!(paying.database.count("payment_attempts").await, 1);
    paying.pass_s(30).await;
    let refused = paying.try_pay(&order, &Choice::Code).await.unwrap_err();
    let settled = PayRefusal::Settled(Status::Confirmed);
    assert!(matches!(refused, PayError::Refused(is) if is == settled), "{refused:?}");
}

async fn clicks_at_once_make_one_attempt(database: TestDatabase) {
    let paying = Arc::new(TestPaying::start(database).await);
    let order = paying.order("order_1", 15_000).await;
    let clicks: Vec<_> = (0..8)
        .map(|_| {
            let (paying, order) = (Arc::clone(&paying), order.clone());
            tokio::spawn(async move { paying.pay(&order, &push("900000001")).await })
        })
        .collect();
    let mut shown = std::collections::HashSet::new();
    for click in clicks {
        shown.insert(click.await.unwrap().attempts[0].id.clone());
    }
    assert_eq!(shown.len(), 1, "each is shown the same");
    assert_eq!(paying.database.count("payment_attempts").await, 1);
    assert_eq!(paying.events(&order).await, ["PEN"]);
}

async fn an_order_is_tried_at_most_five_times_by_a_method(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    for tried in 1..=5 {
        let dossier = paying.pay(&order, &push("900000009")).await;
        assert_eq!(dossier.attempts.len(), tried);
        paying.pass_s(1).await;
    }
    let refused = paying.try_pay(&order, &push("900000000")).await.unwrap_err();
    assert!(matches!(refused, PayError::Refused(PayRefusal::TooManyAttempts)), "{refused:?}");
    assert_eq!(paying.database.count("payment_attempts").await, 5);
    paying.pay(&order, &Choice::Code).await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"), "another method is another matter");
}

async fn a_refused_attempt_leaves_the_order_open_for_the_next(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &push("900002001")).await;
    paying.pass_s(5).await;
    assert_eq!(paying.stands(&order).await, ("rejected", "PEN"));
    paying.pay(&order, &push("900000000")).await;
    paying.pass_s(3).await;
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    assert_eq!(paying.events(&order).await, ["PEN", "CON"], "PEN is told once");
    paying.accounted_for(2).await;
}

async fn the_merchant_hears_of_pen_when_and_only_if_it_wants(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    for (mode, before, after) in [
        (PendingEvent::Instrument, &[][..], &["PEN", "CON"][..]),
        (PendingEvent::Creation, &["PEN"][..], &["PEN", "CON"][..]),
        (PendingEvent::Never, &[][..], &["CON"][..]),
    ] {
        let client = &paying.issued.client_id;
        let issued = credentials::create_application(&paying.app, client, "App", mode).await;
        let known = paying.app.directory.refresh(&paying.app.store).await.unwrap();
        let issued = issued.unwrap();
        let uuid = issued.publishable_key.application_uuid();
        let application = Arc::clone(known.application(uuid).unwrap());
        let order = paying.order_for(&application, "order_1", 15_000).await;
        assert_eq!(paying.events(&order).await, before, "{mode:?} before an instrument");
        // An attempt the rail does not take is no instrument.
        paying.pay(&order, &push("900000009")).await;
        paying.pass_s(1).await;
        assert_eq!(paying.events(&order).await, before, "{mode:?}");
        paying.pay(&order, &reference(60)).await;
        paying.pay(&order, &push("900000000")).await;
        paying.pass_s(3).await;
        assert_eq!(paying.events(&order).await, after, "{mode:?} in the end");
    }
}

async fn a_phone_number_is_nowhere_to_be_read(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &push("923456789")).await;
    let attempt = paying.last_attempt(&order).await;
    let Instrument::Push { phone_masked, phone_sealed } = &attempt.instrument else {
        panic!("{attempt:?}")
    };
    assert_eq!(phone_masked, "9•• ••• 789");
    assert!(phone_sealed.len() > "+244923456789".len());
    paying.pass_s(4).await;
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    assert!(paying.database.holds("order_1").await, "the search finds what is there");
    assert!(!paying.database.holds("923456789").await);
}

/// An attempt that was stored, and then the service died: nobody knows whether the rail was called.
async fn abandoned(paying: &TestPaying, order: &Order, instrument: Instrument) -> AttemptId {
    let now = paying.app.clock.now();
    let attempt = PaymentAttempt {
        id: AttemptId::assign(paying.app.random.bytes()),
        application: order.application,
        reference_number: order.reference_number.clone(),
        rail: "simulator".into(),
        instrument,
        state: AttemptState::Submitted,
        reason: None,
        rail_id: None,
        created_at: now,
        deadline: now.saturating_add(SignedDuration::from_secs(90)).unwrap(),
        due_at: Some(now.saturating_add(SignedDuration::from_secs(60)).unwrap()),
        polls: 0,
    };
    let id = attempt.id.clone();
    let new = NewAttempt { attempt, request_id: "req-pay".into() };
    assert_eq!(paying.app.store.start_attempt(new).await.unwrap(), Started::New);
    id
}

async fn a_call_whose_end_nobody_saw_is_asked_about_a_minute_later(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    abandoned(&paying, &order, Instrument::Code(None)).await;
    let seen = paying.timeline(&order, 3_600).await;
    let expected: [Seen; 2] = [(0, "submitted", "PEN"), (60, "unknown", "PEN")];
    assert_eq!(seen, expected, "never refused, never tried again");
    assert_eq!(paying.database.count("payment_attempts").await, 1);
    let refused = paying.try_pay(&order, &push("900000000")).await.unwrap_err();
    assert!(matches!(refused, PayError::Refused(PayRefusal::InFlight)), "{refused:?}");
}

async fn a_call_whose_end_nobody_saw_may_turn_out_paid(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    abandoned(&paying, &order, Instrument::Code(None)).await;
    let attempt = paying.last_attempt(&order).await;
    paying.pass_s(30).await;
    assert_eq!(paying.stands(&order).await, ("submitted", "PEN"));
    let word = Word::Paid(Centimos::new(1_500_000));
    let received = orders::settle(&paying.app, paying.notice(&attempt, "p1", word), "").await;
    assert_eq!(received.unwrap(), Received::Confirmed);
    paying.pass_s(600).await;
    assert_eq!(paying.stands(&order).await, ("accepted", "CON"));
    paying.accounted_for(1).await;
}

async fn money_for_nothing_we_know_is_kept_and_told(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let notice = |id: &str| Notice {
        rail: "simulator".into(),
        rail_payment_id: id.to_owned(),
        about: About::Reference(BankReference::parse("00348", "123456789").unwrap()),
        word: Word::Paid(Centimos::new(100)),
        raw: b"raw".to_vec(),
    };
    let settle = async |id| orders::settle(&paying.app, notice(id), "").await.unwrap();
    assert_eq!(settle("p1").await, Received::Exception(ExceptionKind::Unmatched));
    assert_eq!(settle("p1").await, Received::Duplicate);
    assert_eq!(settle("p2").await, Received::Exception(ExceptionKind::Unmatched));
    assert_eq!(paying.database.count("exceptions where kind = 'unmatched'").await, 2);
    paying.accounted_for(3).await;
}

async fn an_unknown_attempt_is_left_to_an_operator_after_a_day(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    abandoned(&paying, &order, Instrument::Code(None)).await;
    paying.pass(SignedDuration::from_hours(25)).await;
    let attempt = paying.last_attempt(&order).await;
    assert_eq!((attempt.state, attempt.due_at), (AttemptState::Unknown, None));
    assert_eq!(paying.dossier(&order).await.order.status, Status::Pending, "not cancelled");
    paying.accounted_for(0).await;
}
