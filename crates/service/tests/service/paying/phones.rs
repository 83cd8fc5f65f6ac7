//! FPMCXEXPRSS, by phone number (rails.md 3).

use super::row::Row;
use crate::support::*;

on_both_engines! {
    number_900000000_pays_after_3_seconds,
    number_900000001_pays_after_30_seconds,
    number_900000002_pays_at_second_88,
    number_900000003_never_answers_and_times_out_at_second_90,
    number_900000004_is_unknown_at_90_and_paid_at_180,
    number_900000005_is_unknown_at_90_and_refused_at_180,
    number_900000006_pays_once_however_often_it_says_so,
    number_900000007_pays_one_kwanza_less_and_is_held,
    number_900000008_pays_and_a_minute_later_only_the_ledger_knows_it_was_reversed,
    number_900000009_is_not_taken_by_the_rail,
    number_900000010_is_found_paid_by_asking_at_second_120,
    number_900001001_is_a_timeout_of_the_gateway,
    number_900002001_has_no_funds,
    number_900002002_is_refused_by_its_issuer,
    number_900002003_is_over_its_daily_limit,
    number_900002004_is_a_timeout_of_the_processor,
    number_900002005_finds_the_terminal_closed,
    number_900003000_is_refused_by_the_payer,
    any_other_number_pays_after_4_seconds,
}

const PEN: (i64, &str) = (0, "PEN");
const WAITING: Seen = (0, "awaiting_payer", "PEN");

/// A quiet row: nothing in the ledger, watched for ten minutes.
fn row<'a>(phone: &str, timeline: &'a [Seen], events: &'a [(i64, &'a str)]) -> Row<'a> {
    Row {
        amount: 15_000,
        choice: push(phone),
        until_s: 600,
        timeline,
        reason: None,
        events,
        exceptions: &[],
        notices: 1,
    }
}

async fn pays_at(database: TestDatabase, phone: &str, second: i64) {
    let timeline = [WAITING, (second, "accepted", "CON")];
    row(phone, &timeline, &[PEN, (second, "CON")]).holds(database).await;
}

async fn number_900000000_pays_after_3_seconds(database: TestDatabase) {
    pays_at(database, "900000000", 3).await;
}

async fn number_900000001_pays_after_30_seconds(database: TestDatabase) {
    pays_at(database, "900000001", 30).await;
}

async fn number_900000002_pays_at_second_88(database: TestDatabase) {
    pays_at(database, "900000002", 88).await;
}

async fn any_other_number_pays_after_4_seconds(database: TestDatabase) {
    pays_at(database, "923456789", 4).await;
}

async fn number_900000003_never_answers_and_times_out_at_second_90(database: TestDatabase) {
    let timeline = [WAITING, (90, "timed_out", "PEN")];
    let quiet = row("900000003", &timeline, &[PEN]);
    Row { reason: Some("timeout"), notices: 0, ..quiet }.holds(database).await;
}

async fn number_900000004_is_unknown_at_90_and_paid_at_180(database: TestDatabase) {
    let timeline = [WAITING, (90, "unknown", "PEN"), (180, "accepted", "CON")];
    row("900000004", &timeline, &[PEN, (180, "CON")]).holds(database).await;
}

async fn number_900000005_is_unknown_at_90_and_refused_at_180(database: TestDatabase) {
    let timeline = [WAITING, (90, "unknown", "PEN"), (180, "rejected", "PEN")];
    let quiet = row("900000005", &timeline, &[PEN]);
    Row { reason: Some("payer_refused"), ..quiet }.holds(database).await;
}

async fn number_900000006_pays_once_however_often_it_says_so(database: TestDatabase) {
    let timeline = [WAITING, (3, "accepted", "CON")];
    let quiet = row("900000006", &timeline, &[PEN, (3, "CON")]);
    // The payment three times, and after the first the news that came before it.
    Row { notices: 4, ..quiet }.holds(database).await;
}

async fn number_900000007_pays_one_kwanza_less_and_is_held(database: TestDatabase) {
    let timeline = [WAITING, (3, "held", "PEN")];
    let quiet = row("900000007", &timeline, &[PEN]);
    Row { exceptions: &[("mismatch", 1_499_900)], ..quiet }.holds(database).await;
}

async fn number_900000008_pays_and_a_minute_later_only_the_ledger_knows_it_was_reversed(
    database: TestDatabase,
) {
    let timeline = [WAITING, (3, "accepted", "CON")];
    let quiet = row("900000008", &timeline, &[PEN, (3, "CON")]);
    Row { exceptions: &[("reversal", 1_500_000)], notices: 2, ..quiet }.holds(database).await;
}

async fn number_900000009_is_not_taken_by_the_rail(database: TestDatabase) {
    let quiet = row("900000009", &[(0, "rejected", "PEN")], &[]);
    Row { reason: Some("rail_down"), notices: 0, ..quiet }.holds(database).await;
}

async fn number_900000010_is_found_paid_by_asking_at_second_120(database: TestDatabase) {
    let timeline = [WAITING, (90, "unknown", "PEN"), (120, "accepted", "CON")];
    row("900000010", &timeline, &[PEN, (120, "CON")]).holds(database).await;
}

async fn refused(database: TestDatabase, phone: &str, reason: &str) {
    let timeline = [WAITING, (5, "rejected", "PEN")];
    let quiet = row(phone, &timeline, &[PEN]);
    Row { reason: Some(reason), ..quiet }.holds(database).await;
}

async fn number_900001001_is_a_timeout_of_the_gateway(database: TestDatabase) {
    refused(database, "900001001", "timeout").await;
}

async fn number_900002001_has_no_funds(database: TestDatabase) {
    refused(database, "900002001", "insufficient_funds").await;
}

async fn number_900002002_is_refused_by_its_issuer(database: TestDatabase) {
    refused(database, "900002002", "issuer_refused").await;
}

async fn number_900002003_is_over_its_daily_limit(database: TestDatabase) {
    refused(database, "900002003", "limit").await;
}

async fn number_900002004_is_a_timeout_of_the_processor(database: TestDatabase) {
    refused(database, "900002004", "timeout").await;
}

async fn number_900002005_finds_the_terminal_closed(database: TestDatabase) {
    refused(database, "900002005", "rail_down").await;
}

async fn number_900003000_is_refused_by_the_payer(database: TestDatabase) {
    refused(database, "900003000", "payer_refused").await;
}
