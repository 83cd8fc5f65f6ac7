//! Windows of the checkout on PostgreSQL.

use jiff::Timestamp;

use super::Postgres;
use super::{Param, change, one};
use crate::domain::ReferenceNumber;
use crate::store::{CheckoutVisit, Result};

impl Postgres {
    pub(in crate::store) async fn visit(
        &self,
        reference: &ReferenceNumber,
        nonce: &str,
    ) -> Result<Option<CheckoutVisit>> {
        let sql = "select seen_at_ms, alive, left_at_ms from checkout_visits
                   where reference_number = $1 and nonce = $2";
        let found = one(&self.client().await?, sql, &[&reference.as_str(), &nonce]).await?;
        found.map(|row| CheckoutVisit::read(row.get(0), row.get(1), row.get(2))).transpose()
    }

    pub(in crate::store) async fn is_open_elsewhere(
        &self,
        reference: &ReferenceNumber,
        nonce: &str,
        heard_since: Timestamp,
        loaded_since: Timestamp,
    ) -> Result<bool> {
        let sql = "select 1 from checkout_visits where reference_number = $1 and nonce <> $2
                       and left_at_ms is null
                       and seen_at_ms >= case when alive then $3::bigint else $4::bigint end limit 1";
        let db = self.client().await?;
        let since = (heard_since.as_millisecond(), loaded_since.as_millisecond());
        let given: [&Param<'_>; 4] = [&reference.as_str(), &nonce, &since.0, &since.1];
        Ok(one(&db, sql, &given).await?.is_some())
    }

    pub(in crate::store) async fn visit_seen(
        &self,
        reference: &ReferenceNumber,
        nonce: &str,
        alive: bool,
        at: Timestamp,
    ) -> Result<()> {
        let sql = "insert into checkout_visits as v (reference_number, nonce, seen_at_ms, alive)
                   values ($1, $2, $3, $4)
                   on conflict (reference_number, nonce) do update
                   set seen_at_ms = excluded.seen_at_ms, alive = v.alive or excluded.alive,
                       left_at_ms = null, due_at_ms = null";
        let db = self.client().await?;
        change(&db, sql, &[&reference.as_str(), &nonce, &at.as_millisecond(), &alive]).await?;
        Ok(())
    }
}
