//! Orders with all that was tried to pay them, for many callers at once.

use std::collections::HashMap;

use deadpool_postgres::Client;
use tokio_postgres::Row;

use super::batch::{Batch, column};
use super::portable::cells;
use super::{Postgres, Told, many};
use crate::domain::{Dossier, ReferenceNumber};
use crate::store::Result;
use crate::store::paying::{ATTEMPT_COLUMNS, DOSSIER_COLUMNS, attempt, dossier};
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
            let mut whole: Option<Dossier> = None;
            for row in found.get(reference.as_str()).into_iter().flatten() {
                let mut cells = cells(row)?;
                let order = dossier(&mut cells)?;
                whole.get_or_insert(order).attempts.extend(attempt(&mut cells)?);
            }
            Ok(whole)
        };
        Ok(references.iter().map(answer).collect())
    }
}
