//! FPSOLPG, by amount: the code of the own wallet (rails.md 3).

use super::row::Row;
use crate::support::*;
use svc_service::orders::Choice;

on_both_engines! {
    amount_9101_is_approved_after_5_seconds,
    amount_9102_is_refused_after_5_seconds,
    amount_9103_is_ignored_until_its_code_expires_and_a_day_later_the_order,
    amount_9104_is_unknown_first_and_then_approved,
}

const PEN: (i64, &str) = (0, "PEN");
const ISSUED: Seen = (0, "issued", "PEN");

fn row<'a>(amount: i64, timeline: &'a [Seen], events: &'a [(i64, &'a str)]) -> Row<'a> {
    Row {
        amount,
        choice: Choice::Code,
        until_s: 3_600,
        timeline,
        reason: None,
        events,
        exceptions: &[],
        notices: 1,
    }
}

async fn amount_9101_is_approved_after_5_seconds(database: TestDatabase) {
    let timeline = [ISSUED, (5, "accepted", "CON")];
    row(9101, &timeline, &[PEN, (5, "CON")]).holds(database).await;
}

async fn amount_9102_is_refused_after_5_seconds(database: TestDatabase) {
    let quiet = row(9102, &[ISSUED, (5, "rejected", "PEN")], &[PEN]);
    Row { reason: Some("payer_refused"), ..quiet }.holds(database).await;
}

async fn amount_9103_is_ignored_until_its_code_expires_and_a_day_later_the_order(
    database: TestDatabase,
) {
    let timeline = [ISSUED, (900, "expired", "PEN"), (86_400, "expired", "CAN")];
    let quiet = row(9103, &timeline, &[PEN, (86_400, "CAN")]);
    Row { until_s: 90_000, notices: 0, ..quiet }.holds(database).await;
}

async fn amount_9104_is_unknown_first_and_then_approved(database: TestDatabase) {
    let timeline = [ISSUED, (5, "unknown", "PEN"), (60, "accepted", "CON")];
    let quiet = row(9104, &timeline, &[PEN, (60, "CON")]);
    Row { notices: 2, ..quiet }.holds(database).await;
}
