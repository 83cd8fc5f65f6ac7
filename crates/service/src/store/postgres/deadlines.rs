//! Deadlines that are moved, on PostgreSQL: many orders expire at the same moment, and take one connection.

use std::collections::HashSet;

use deadpool_postgres::Client;
use jiff::Timestamp;

use super::batch::{Batch, column};
use super::paying::withdraw_issued;
use super::{Postgres, Told, many};
use crate::domain::ReferenceNumber;
use crate::store::Result;

impl Postgres {
    pub(in crate::store) async fn postpone(
        &self,
        reference: &ReferenceNumber,
        seen: Option<Timestamp>,
        until: Timestamp,
        closing_since: Option<Timestamp>,
    ) -> Result<()> {
        let reference = reference.clone();
        self.deadlines.run(Postponed { reference, seen, until, closing_since }).await
    }
}

pub(super) struct Postponed {
    reference: ReferenceNumber,
    seen: Option<Timestamp>,
    until: Timestamp,
    closing_since: Option<Timestamp>,
}

impl Postponed {
    fn closing(&self) -> Option<(&str, Timestamp)> {
        self.closing_since.map(|at| (self.reference.as_str(), at))
    }
}

pub(super) struct Deadlines;

impl Batch for Deadlines {
    type Item = Postponed;
    type Answer = ();

    async fn run(db: &mut Client, orders: &[Postponed]) -> Told<Vec<()>> {
        // Rows are taken in the order of their references, as by whoever settles them; of an order that is
        // moved twice the earlier time counts. Written so that the index of all pending orders looks of
        // no use.
        let update = "update orders o
                 set expires_at_ms = t.until, closing_at_ms = coalesce(o.closing_at_ms, t.closing)
                 from (select reference, seen, min(until) as until, min(closing) as closing
                       from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[])
                           as given (reference, seen, until, closing)
                       group by reference, seen order by reference) t
                 where o.reference_number = t.reference and o.status || '' = 'PEN'
                     and o.expires_at_ms = coalesce(t.seen, o.expires_at_ms)
                 returning o.reference_number";
        let transaction = db.transaction().await?;
        let moved = many(
            &transaction,
            update,
            &[
                &column(orders, |order| order.reference.as_str()),
                &column(orders, |order| order.seen.map(Timestamp::as_millisecond)),
                &column(orders, |order| order.until.as_millisecond()),
                &column(orders, |order| order.closing_since.map(Timestamp::as_millisecond)),
            ],
        )
        .await?;
        let moved: HashSet<&str> = moved.iter().map(|row| row.get(0)).collect();
        let closing = orders.iter().filter_map(Postponed::closing);
        let closing: Vec<_> = closing.filter(|(order, _)| moved.contains(order)).collect();
        if !closing.is_empty() {
            let references = column(&closing, |(reference, _)| *reference);
            let since_ms = column(&closing, |(_, at)| at.as_millisecond());
            withdraw_issued(&transaction, &references, &since_ms).await?;
        }
        transaction.commit().await?;
        Ok(vec![(); orders.len()])
    }
}
