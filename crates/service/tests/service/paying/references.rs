//! FPSOLPGEXT, by amount: bank references, and whose number it is (rails.md 3, 4).

use jiff::SignedDuration;
use svc_service::domain::*;
use svc_service::store::{NewAttempt, Started};

use super::row::Row;
use crate::support::*;

on_both_engines! {
    amount_9001_is_paid_5_seconds_after_issue,
    amount_9002_is_paid_60_seconds_after_issue,
    amount_9003_is_paid_one_kwanza_less_and_held,
    amount_9004_is_paid_one_kwanza_more_and_held,
    amount_9005_is_paid_twice_and_the_second_is_excess,
    amount_9006_lives_2_minutes_and_is_cancelled_after_the_grace,
    amount_9007_is_paid_a_minute_after_expiry_and_is_late,
    amount_9008_is_found_paid_at_second_120,
    amount_9009_is_not_issued,
    a_payer_who_comes_back_is_shown_the_same_reference_and_deadline,
    a_number_that_is_taken_is_drawn_again,
    a_number_rests_for_180_days_after_its_death,
    two_live_references_never_have_the_same_number,
}

const PEN: (i64, &str) = (0, "PEN");
const ISSUED: Seen = (0, "issued", "PEN");

fn row<'a>(amount: i64, timeline: &'a [Seen], events: &'a [(i64, &'a str)]) -> Row<'a> {
    Row {
        amount,
        choice: reference(1_440),
        until_s: 3_600,
        timeline,
        reason: None,
        events,
        exceptions: &[],
        notices: 1,
    }
}

async fn amount_9001_is_paid_5_seconds_after_issue(database: TestDatabase) {
    let timeline = [ISSUED, (5, "accepted", "CON")];
    row(9001, &timeline, &[PEN, (5, "CON")]).holds(database).await;
}

async fn amount_9002_is_paid_60_seconds_after_issue(database: TestDatabase) {
    let timeline = [ISSUED, (60, "accepted", "CON")];
    row(9002, &timeline, &[PEN, (60, "CON")]).holds(database).await;
}

async fn amount_9003_is_paid_one_kwanza_less_and_held(database: TestDatabase) {
    let quiet = row(9003, &[ISSUED, (5, "held", "PEN")], &[PEN]);
    // Not even its deadline ends an order that waits for an operator.
    Row { exceptions: &[("mismatch", 900_200)], until_s: 90_000, ..quiet }.holds(database).await;
}

async fn amount_9004_is_paid_one_kwanza_more_and_held(database: TestDatabase) {
    let quiet = row(9004, &[ISSUED, (5, "held", "PEN")], &[PEN]);
    Row { exceptions: &[("mismatch", 900_500)], until_s: 90_000, ..quiet }.holds(database).await;
}

async fn amount_9005_is_paid_twice_and_the_second_is_excess(database: TestDatabase) {
    let timeline = [ISSUED, (5, "accepted", "CON")];
    let quiet = row(9005, &timeline, &[PEN, (5, "CON")]);
    Row { exceptions: &[("excess", 900_500)], notices: 2, ..quiet }.holds(database).await;
}

async fn amount_9006_lives_2_minutes_and_is_cancelled_after_the_grace(database: TestDatabase) {
    let timeline = [ISSUED, (125, "expired", "CAN")];
    let quiet = row(9006, &timeline, &[PEN, (125, "CAN")]);
    Row { notices: 0, ..quiet }.holds(database).await;
}

async fn amount_9007_is_paid_a_minute_after_expiry_and_is_late(database: TestDatabase) {
    let timeline = [ISSUED, (125, "expired", "CAN")];
    let quiet = row(9007, &timeline, &[PEN, (125, "CAN")]);
    Row { exceptions: &[("late", 900_700)], ..quiet }.holds(database).await;
}

async fn amount_9008_is_found_paid_at_second_120(database: TestDatabase) {
    let timeline = [ISSUED, (120, "accepted", "CON")];
    row(9008, &timeline, &[PEN, (120, "CON")]).holds(database).await;
}

async fn amount_9009_is_not_issued(database: TestDatabase) {
    let quiet = row(9009, &[(0, "rejected", "PEN")], &[]);
    Row { reason: Some("rail_down"), notices: 0, ..quiet }.holds(database).await;
}

fn number(attempt: &PaymentAttempt) -> BankReference {
    match &attempt.instrument {
        Instrument::Reference(Some(bank)) => bank.clone(),
        other => panic!("no reference: {other:?}"),
    }
}

async fn a_payer_who_comes_back_is_shown_the_same_reference_and_deadline(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 15_000).await;
    let first = paying.pay(&order, &reference(60)).await;
    let bank = number(&first.attempts[0]);
    assert_eq!((bank.entity(), bank.number().len()), ("00000", 9), "nobody can pay it for real");
    assert!(!bank.number().starts_with('0'));
    paying.pass_s(1_800).await;
    // Another life span, and a way round by the wallet: the reference is what it was.
    paying.pay(&order, &svc_service::orders::Choice::Code).await;
    let again = paying.pay(&order, &reference(1_440)).await;
    assert_eq!(again.attempts.len(), 2);
    assert_eq!(again.attempts[0], first.attempts[0]);
    assert_eq!(again.order.expires_at, first.attempts[0].deadline, "the order lives as long");
    assert_eq!(paying.events(&order).await, ["PEN"], "told once");
}

async fn a_number_that_is_taken_is_drawn_again(database: TestDatabase) {
    // The first three numbers are somebody else's.
    let statement = match &database {
        TestDatabase::Sqlite(_) => {
            "create table draws (n integer);
             create trigger taken before insert on bank_references
             when (select count(*) from draws) < 3
             begin insert into draws values (1); select raise(ignore); end"
        }
        TestDatabase::Postgres { .. } => {
            "create sequence draws;
             create function taken() returns trigger language plpgsql as
             $$ begin if nextval('draws') <= 3 then return null; end if; return new; end $$;
             create trigger taken before insert on bank_references
             for each row execute function taken()"
        }
    };
    let paying = TestPaying::start(database).await;
    paying.database.sql(statement).await;
    let order = paying.order("order_1", 15_000).await;
    let dossier = paying.pay(&order, &reference(60)).await;
    assert_eq!(paying.stands(&order).await, ("issued", "PEN"));
    assert_eq!(dossier.attempts.len(), 1, "a try that drew a taken number leaves nothing");
    assert_eq!(paying.database.count("bank_references").await, 1);
    assert_eq!(paying.database.count("audit where action = 'attempt.start'").await, 1);
}

/// Another order's attempt that wants this very number now.
async fn wants(paying: &TestPaying, id: &str, bank: &BankReference) -> Started {
    let order = paying.order(id, 15_000).await;
    let now = paying.app.clock.now();
    let attempt = PaymentAttempt {
        id: AttemptId::assign(paying.app.random.bytes()),
        application: order.application,
        reference_number: order.reference_number,
        rail: "simulator".into(),
        instrument: Instrument::Reference(Some(bank.clone())),
        state: AttemptState::Submitted,
        reason: None,
        rail_id: None,
        created_at: now,
        deadline: now.saturating_add(SignedDuration::from_hours(1)).unwrap(),
        due_at: None,
        polls: 0,
    };
    let new = NewAttempt { attempt, request_id: String::new() };
    paying.app.store.start_attempt(new).await.unwrap()
}

async fn a_number_rests_for_180_days_after_its_death(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let order = paying.order("order_1", 9_006).await;
    let bank = number(&paying.pay(&order, &reference(60)).await.attempts[0]);
    assert_eq!(wants(&paying, "while_it_lives", &bank).await, Started::ReferenceTaken);
    paying.pass_s(125).await;
    assert_eq!(paying.stands(&order).await, ("expired", "CAN"));
    assert_eq!(wants(&paying, "when_it_died", &bank).await, Started::ReferenceTaken);
    let rest = SignedDuration::from_hours(180 * 24);
    paying.app.clock.advance(rest - SignedDuration::from_millis(1));
    assert_eq!(wants(&paying, "a_moment_early", &bank).await, Started::ReferenceTaken);
    paying.app.clock.advance(SignedDuration::from_millis(1));
    assert_eq!(wants(&paying, "after_180_days", &bank).await, Started::New);
    // From now on money for it is the new order's.
    let owner = paying.app.store.order_of(&About::Reference(bank.clone())).await.unwrap();
    assert_ne!(owner.unwrap().0, order.reference_number);
    assert_eq!(wants(&paying, "and_taken_again", &bank).await, Started::ReferenceTaken);
}

async fn two_live_references_never_have_the_same_number(database: TestDatabase) {
    let paying = TestPaying::start(database).await;
    let mut numbers = std::collections::HashSet::new();
    for n in 0..30 {
        let order = paying.order(&format!("order_{n}"), 15_000).await;
        let dossier = paying.pay(&order, &reference(60)).await;
        assert!(numbers.insert(number(&dossier.attempts[0])));
    }
    assert_eq!(paying.database.count("bank_references where free_at_ms is null").await, 30);
}
