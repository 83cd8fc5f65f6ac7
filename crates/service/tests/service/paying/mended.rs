//! Faults that were found and mended: each would come back without a sound.

use jiff::SignedDuration;
use serde_json::json;
use svc_service::domain::*;
use svc_service::orders::{self, Choice};
use svc_service::store::{NewAttempt, Received, Started};

use crate::support::{
    Reply, TestConnector, TestDatabase, TestPaying, on_both_engines, push, reference,
};

on_both_engines! {
    a_second_click_after_the_first_was_issued_makes_no_second_reference,
    a_refusal_does_not_release_an_order_that_is_held,
    a_rail_confirms_no_attempt_of_another_rail,
    a_reference_that_is_anothers_is_not_shown,
    a_query_answered_with_an_old_payments_id_holds_the_order,
    a_held_attempt_stays_held_when_another_pays_the_order,
    an_order_paid_twice_under_one_id_is_paid_twice,
    a_refusal_under_a_used_id_ends_its_attempt,
}

async fn with_connector(database: TestDatabase) -> (TestPaying, TestConnector) {
    let connector = TestConnector::start().await;
    let rail = connector.config();
    let paying = TestPaying::start_with(database, |config| config.rails = vec![rail]).await;
    TestConnector::asked_by(&paying.app).await.unwrap();
    (paying, connector)
}

fn paid(rail: &str, id: &str, about: About, centimos: i64) -> Notice {
    let word = Word::Paid(Centimos::new(centimos));
    Notice { rail: rail.into(), rail_payment_id: id.into(), about, word, raw: b"said".to_vec() }
}

async fn a_second_click_after_the_first_was_issued_makes_no_second_reference(
    database: TestDatabase,
) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let first = paying.pay(&order, &reference(60)).await.attempts.remove(0);
    // What a click stores that had looked before the first was issued.
    let late = PaymentAttempt {
        id: AttemptId::assign([7; 15]),
        state: AttemptState::Submitted,
        instrument: Instrument::Reference(None),
        ..first
    };
    let new = NewAttempt { attempt: late, request_id: String::new() };
    assert_eq!(paying.app.store.start_attempt(new).await.unwrap(), Started::Lost);
    assert_eq!(paying.dossier(&order).await.attempts.len(), 1);
}

async fn a_refusal_does_not_release_an_order_that_is_held(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &push("900000003")).await.attempts.remove(0);
    let about = || About::Attempt(attempt.id.clone());
    orders::settle(&paying.app, paid("simulator", "x", about(), 1), "").await.unwrap();
    let refusal =
        Notice { word: Word::Refused(Reason::PayerRefused), ..paid("simulator", "y", about(), 0) };
    orders::settle(&paying.app, refusal, "").await.unwrap();
    assert!(paying.dossier(&order).await.is_held());
    orders::expire_now(&paying.app, &order.reference_number).await.unwrap();
    assert_eq!(paying.dossier(&order).await.order.status, Status::Pending);
}

async fn a_rail_confirms_no_attempt_of_another_rail(database: TestDatabase) {
    let (paying, connector) = with_connector(database).await;
    connector.offers(&json!([{ "code": "FPSOLPG" }]));
    TestConnector::asked_by(&paying.app).await.unwrap();
    let order = paying.order("order_1", 15_000).await;
    let attempt = paying.pay(&order, &push("900000003")).await.attempts.remove(0);
    assert_eq!(attempt.rail, "simulator");
    let notice = paid("acquirer", "x", About::Attempt(attempt.id), 1_500_000);
    let received = orders::settle(&paying.app, notice, "").await.unwrap();
    assert_eq!(received, Received::Exception(ExceptionKind::Unmatched));
    assert_eq!(paying.dossier(&order).await.order.status, Status::Pending);
}

async fn a_reference_that_is_anothers_is_not_shown(database: TestDatabase) {
    // This connector gives everybody the same number.
    let (paying, connector) = with_connector(database).await;
    let (first, second) = (paying.order("o1", 15_000).await, paying.order("o2", 15_000).await);
    let issued = paying.pay(&first, &reference(60)).await.attempts.remove(0);
    let refused = paying.pay(&second, &reference(60)).await.attempts.remove(0);
    assert_eq!(issued.state, AttemptState::Issued);
    assert_eq!((refused.state, &refused.reason), (AttemptState::Rejected, &Some(Reason::Config)));
    // Nobody was shown it, but at the rail it is alive: who has it from the first order would pay the second.
    paying.run_due().await;
    let told = connector.calls("revoke-reference");
    let [told] = &told[..] else { panic!("{told:?}") };
    assert_eq!(told["attemptId"], refused.id.as_str());
    let Instrument::Reference(Some(bank)) = &issued.instrument else { panic!("{issued:?}") };
    assert_eq!(
        (&told["entity"], &told["reference"]),
        (&bank.entity().into(), &bank.number().into())
    );
    assert_eq!(paying.stands(&first).await, ("issued", "PEN"), "the other's stays");
    // Money for that number may be the first payer's, whatever the rail says of it.
    let notice = paid("acquirer", "whose", About::Attempt(refused.id), 1_500_000);
    let received = orders::settle(&paying.app, notice, "").await.unwrap();
    assert_eq!(received, Received::Exception(ExceptionKind::Reused));
    assert_eq!(paying.stands(&second).await, ("held", "PEN"));
    assert_eq!(paying.stands(&first).await, ("issued", "PEN"));
}

async fn a_query_answered_with_an_old_payments_id_holds_the_order(database: TestDatabase) {
    let (paying, connector) = with_connector(database).await;
    let (first, second) = (paying.order("o1", 15_000).await, paying.order("o2", 15_000).await);
    let paid_by = paying.pay(&first, &push("923456789")).await.attempts.remove(0);
    let notice = paid("acquirer", "used", About::Attempt(paid_by.id), 1_500_000);
    orders::settle(&paying.app, notice, "").await.unwrap();
    let answer = json!({ "answer": "accepted", "railPaymentId": "used", "amount": "15000.00" });
    connector.will("query", Reply::Json(answer));
    paying.pay(&second, &push("923456789")).await;
    paying.pass(SignedDuration::from_hours(72)).await;
    assert_eq!(connector.calls("query").len(), 1);
    assert_eq!(paying.stands(&second).await, ("held", "PEN"));
    assert_eq!(paying.exceptions(&second).await, [("reused", 1_500_000)]);
}

async fn a_held_attempt_stays_held_when_another_pays_the_order(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let held = paying.pay(&order, &reference(60)).await.attempts.remove(0);
    let code = paying.pay(&order, &Choice::Code).await.attempts.remove(1);
    let wrong = paid("simulator", "x", About::Attempt(held.id.clone()), 1);
    orders::settle(&paying.app, wrong, "").await.unwrap();
    let right = paid("simulator", "y", About::Attempt(code.id), 1_500_000);
    assert_eq!(orders::settle(&paying.app, right, "").await.unwrap(), Received::Confirmed);
    let dossier = paying.dossier(&order).await;
    assert_eq!(dossier.attempt(&held.id).unwrap().state, AttemptState::Held);
}

async fn an_order_paid_twice_under_one_id_is_paid_twice(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let one = paying.pay(&order, &reference(60)).await.attempts.remove(0);
    let other = paying.pay(&order, &Choice::Code).await.attempts.remove(1);
    let [one, other] =
        [one, other].map(|attempt| paid("simulator", "x", About::Attempt(attempt.id), 1_500_000));
    for (notice, received) in [
        (&one, Received::Confirmed),
        (&other, Received::Exception(ExceptionKind::Excess)),
        (&other, Received::Duplicate),
        (&one, Received::Duplicate),
    ] {
        assert_eq!(orders::settle(&paying.app, notice.clone(), "").await.unwrap(), received);
    }
    assert_eq!(paying.exceptions(&order).await, [("excess", 1_500_000)]);
}

async fn a_refusal_under_a_used_id_ends_its_attempt(database: TestDatabase) {
    let (paying, _connector) = with_connector(database).await;
    let order = paying.order("order_1", 15_000).await;
    for tries in 1..=2 {
        let attempt = paying.pay(&order, &push("923456789")).await.attempts.pop().unwrap();
        let refusal = Notice {
            word: Word::Refused(Reason::PayerRefused),
            ..paid("acquirer", "no", About::Attempt(attempt.id.clone()), 0)
        };
        let received = orders::settle(&paying.app, refusal, "").await.unwrap();
        assert_eq!(received, Received::Noted);
        let dossier = paying.dossier(&order).await;
        assert_eq!(dossier.attempts.len(), tries);
        assert_eq!(dossier.attempt(&attempt.id).unwrap().state, AttemptState::Rejected);
    }
}
