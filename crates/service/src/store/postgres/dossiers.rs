//! Orders with all that was tried to pay them, for many callers at once.

use std::collections::HashMap;

use deadpool_postgres::Client;
use tokio_postgres::Row;

use super::batch::{Batch, column};
use super::orders::order_row;
use super::paying::attempt_row;
use super::{Postgres, Told, many};
use crate::domain::{Dossier, ReferenceNumber};
use crate::store::Result;
use crate::store::paying::{ATTEMPT_COLUMNS, DOSSIER_COLUMNS, PaymentAttemptRow, dossier};
use crate::store::records::ORDER_COLUMNS;

impl Postgres {
    pub(in crate::store) async fn dossier(
        &self,
        reference: &ReferenceNumber,
    ) -> Result<Option<Dossier>> {
        self.dossiers.run(reference.clone()).await?
    }
}

pub(super) struct Dossiers;

/// Behind the columns of the order.
const ATTEMPT_AT: usize = 14;

impl Batch for Dossiers {
    type Item = ReferenceNumber;
    type Answer = Result<Option<Dossier>>;

    async fn run(db: &mut Client, references: &[ReferenceNumber]) -> Told<Vec<Self::Answer>> {
        // One statement sees one moment: an order still pending beside its accepted attempt is no state.
        let sql = format!(
            "select o.*, a.* from (
                 select {ORDER_COLUMNS}, {DOSSIER_COLUMNS} from orders
                 where reference_number = any($1::text[])) o
             left join (select {ATTEMPT_COLUMNS}, number from payment_attempts) a
                 on a.reference_number = o.reference_number
             order by a.number"
        );
        let asked = column(references, |reference| reference.as_str());
        let rows = many(&*db, &sql, &[&asked]).await?;
        let mut found: HashMap<&str, Vec<&Row>> = HashMap::new();
        for row in &rows {
            found.entry(row.get(0)).or_default().push(row);
        }
        let answer = |reference: &ReferenceNumber| -> Result<Option<Dossier>> {
            let Some(rows) = found.get(reference.as_str()) else { return Ok(None) };
            let attempts = rows.iter().filter_map(|row| attempt_row(row, ATTEMPT_AT));
            let attempts = attempts.map(PaymentAttemptRow::read).collect::<Result<_>>()?;
            let (order, row) = (order_row(rows[0]).read()?, rows[0]);
            dossier(order, row.get(11), row.get(12), row.get(13), attempts).map(Some)
        };
        Ok(references.iter().map(answer).collect())
    }
}
