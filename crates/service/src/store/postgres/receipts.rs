//! What rails said, on PostgreSQL: each notice once, with a count of how often it came again.

use std::collections::HashMap;

use deadpool_postgres::GenericClient;

use super::batch::column;
use super::{Told, change, many};
use crate::domain::{AttemptId, Centimos, ReferenceNumber};
use crate::store::Receipt;
use crate::store::paying::Known;

/// Rail, the rail's id and the kind of notice.
pub(super) type Key = (String, String, String);

pub(super) fn key(receipt: &Receipt) -> Key {
    let notice = &receipt.notice;
    (notice.rail.clone(), notice.rail_payment_id.clone(), notice.word.kind().to_owned())
}

pub(super) struct StoredReceipt {
    pub(super) call_id: String,
    pub(super) outcome: String,
    pub(super) exception: Option<String>,
    pub(super) known: Known,
}

/// What is stored under the ids of these, of whatever kind.
pub(super) async fn stored(
    db: &impl GenericClient,
    given: &[&Receipt],
) -> Told<HashMap<Key, StoredReceipt>> {
    let sql = "select r.rail, r.rail_payment_id, r.kind, r.call_id, r.outcome, e.kind,
                   r.amount_centimos, r.reference_number, r.attempt_id
               from unnest($1::text[], $2::text[]) as t (rail, id)
               join receipts r on r.rail = t.rail and r.rail_payment_id = t.id
               left join exceptions e on e.rail = r.rail
                   and e.rail_payment_id = r.rail_payment_id and e.notice = r.kind";
    let rows = many(
        db,
        sql,
        &[
            &column(given, |r| r.notice.rail.as_str()),
            &column(given, |r| r.notice.rail_payment_id.as_str()),
        ],
    )
    .await?;
    let read = |row: &tokio_postgres::Row| {
        let stored = StoredReceipt {
            call_id: row.get(3),
            outcome: row.get(4),
            exception: row.get(5),
            known: Known {
                amount: Centimos::new(row.get(6)),
                reference_number: row.get(7),
                attempt: row.get(8),
            },
        };
        ((row.get(0), row.get(1), row.get(2)), stored)
    };
    Ok(rows.iter().map(read).collect())
}

/// Whether all of them were new: another node may store one between our look and this. By everybody in the
/// same order, so that no two wait for each other.
pub(super) async fn insert(
    db: &impl GenericClient,
    received: &[(&Receipt, &'static str)],
) -> Told<bool> {
    let inserted = change(
        db,
        "insert into receipts (rail, rail_payment_id, kind, attempt_id, reference_number,
             amount_centimos, outcome, raw, call_id, received_at_ms)
         select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[],
             $6::bigint[], $7::text[], $8::bytea[], $9::text[], $10::bigint[])
         order by 1, 2, 3
         on conflict do nothing",
        &[
            &column(received, |(r, _)| r.notice.rail.as_str()),
            &column(received, |(r, _)| r.notice.rail_payment_id.as_str()),
            &column(received, |(r, _)| r.notice.word.kind()),
            &column(received, |(r, _)| r.attempt.as_ref().map(AttemptId::as_str)),
            &column(received, |(r, _)| r.reference_number.as_ref().map(ReferenceNumber::as_str)),
            &column(received, |(r, _)| r.notice.word.amount().get()),
            &column(received, |(_, outcome)| *outcome),
            &column(received, |(r, _)| r.notice.raw.as_slice()),
            &column(received, |(r, _)| r.stamp.event_id.as_str()),
            &column(received, |(r, _)| r.stamp.at.as_millisecond()),
        ],
    )
    .await?;
    Ok(inserted == received.len() as u64)
}

pub(super) async fn count_duplicates(db: &impl GenericClient, again: &[&Receipt]) -> Told<()> {
    change(
        db,
        "update receipts r set duplicates = duplicates + t.count
         from (select rail, id, kind, count(*) as count
               from unnest($1::text[], $2::text[], $3::text[]) as g (rail, id, kind)
               group by rail, id, kind) as t
         where r.rail = t.rail and r.rail_payment_id = t.id and r.kind = t.kind",
        &[
            &column(again, |r| r.notice.rail.as_str()),
            &column(again, |r| r.notice.rail_payment_id.as_str()),
            &column(again, |r| r.notice.word.kind()),
        ],
    )
    .await
    .map(drop)
}
