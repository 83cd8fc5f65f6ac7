//! Orders with all that was tried to pay them, for many callers at once.

use std::collections::HashMap;

use deadpool_postgres::Client;
use tokio_postgres::Row;

use super::batch::{Batch, column};
use super::orders::order_row;
use super::paying::attempt_row;
use super::{Fault, Postgres};
use crate::domain::{Dossier, ReferenceNumber};
use crate::store::Result;
use crate::store::paying::{ATTEMPT_COLUMNS, DOSSIER_COLUMNS, dossier};
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

impl Batch for Dossiers {
    type Item = ReferenceNumber;
    type Answer = Result<Option<Dossier>>;

    async fn run(
        db: &mut Client,
        references: &[ReferenceNumber],
    ) -> std::result::Result<Vec<Self::Answer>, Fault> {
        let orders = format!(
            "select {ORDER_COLUMNS}, {DOSSIER_COLUMNS} from orders
             where reference_number = any($1::text[])"
        );
        let attempts = format!(
            "select {ATTEMPT_COLUMNS} from payment_attempts
             where reference_number = any($1::text[]) order by reference_number, number"
        );
        let orders = db.prepare_cached(&orders).await?;
        let attempts = db.prepare_cached(&attempts).await?;
        let asked = column(references, |reference| reference.as_str());
        let orders = db.query(&orders, &[&asked]).await?;
        let attempts = db.query(&attempts, &[&asked]).await?;
        let found: HashMap<&str, &Row> = orders.iter().map(|row| (row.get(0), row)).collect();
        let mut tried: HashMap<&str, Vec<&Row>> = HashMap::new();
        for row in &attempts {
            tried.entry(row.get(2)).or_default().push(row);
        }
        let answer = |reference: &ReferenceNumber| -> Result<Option<Dossier>> {
            let Some(order) = found.get(reference.as_str()) else { return Ok(None) };
            let attempts = tried.get(reference.as_str()).map_or(&[][..], Vec::as_slice);
            let attempts =
                attempts.iter().map(|row| attempt_row(row).read()).collect::<Result<_>>()?;
            let read = order_row(order).read()?;
            dossier(read, order.get(11), order.get(12), order.get(13), attempts).map(Some)
        };
        Ok(references.iter().map(answer).collect())
    }
}
