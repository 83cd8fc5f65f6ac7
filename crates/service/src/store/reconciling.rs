//! What a rail's statement is compared with.

use jiff::{SignedDuration, Timestamp};

use super::paying::Known;
use super::portable::{Cells, Statement, values};
use super::records::read_reference;
use super::{Result, Store};
use crate::domain::{Centimos, EventId, Notice, ReferenceNumber, after};

/// A day of a large merchant is read in parts, each well within the time a statement may take.
const PART: SignedDuration = SignedDuration::from_hours(1);

impl Store {
    /// What we have received by this id.
    pub async fn received(&self, notice: &Notice) -> Result<Option<Known>> {
        let sql = "select amount_centimos, reference_number, attempt_id from receipts
                   where rail = ?1 and rail_payment_id = ?2 and kind = ?3";
        let key = values![&*notice.rail, &*notice.rail_payment_id, notice.word.kind()];
        let read = |cells: &mut Cells| {
            Ok(Known {
                amount: Centimos::new(cells.integer()?),
                reference_number: cells.maybe_text()?,
                attempt: cells.maybe_text()?,
            })
        };
        self.select_one(Statement::new(sql, key), read).await
    }

    /// Orders whose payment by this rail confirmed them in that time.
    pub async fn paid_by_rail(
        &self,
        rail: &str,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<(ReferenceNumber, Centimos)>> {
        let sql = "select o.reference_number, o.amount from outbox e
                   join orders o on o.reference_number = e.reference_number
                   where e.id >= ?1 and e.id < ?2 and e.status = 'CON'
                       and exists (select 1 from payment_attempts p
                                   where p.reference_number = e.reference_number
                                       and p.rail = ?3 and p.state = 'accepted')";
        let read = |cells: &mut Cells| {
            Ok((read_reference(&cells.text()?)?, Centimos::new(100 * cells.integer()?)))
        };
        let (mut at, mut found) = (from, Vec::new());
        while at < until {
            let end = after(at, PART).min(until);
            let given = values![EventId::lowest_at(at), EventId::lowest_at(end), rail];
            found.extend(self.select(Statement::new(sql, given), read).await?);
            at = end;
        }
        Ok(found)
    }
}
