//! Exceptions on PostgreSQL: money that fits no order, and what operators did about it.

use deadpool_postgres::GenericClient;

use super::change;
use super::{Postgres, Told};
use crate::store::{Resolved, Result};

impl Postgres {
    pub(in crate::store) async fn resolve_exception(
        &self,
        id: i64,
        resolved: Resolved,
    ) -> Result<bool> {
        Ok(resolve(&self.client().await?, id, &resolved).await?)
    }
}

/// Whether it was still open.
pub(super) async fn resolve(db: &impl GenericClient, id: i64, resolved: &Resolved) -> Told<bool> {
    let sql = "with resolved as (
                   update exceptions
                   set resolved_at_ms = $2, resolved_by = $3, resolution = $4
                   where id = $1 and resolved_at_ms is null
                   returning reference_number, rail_payment_id
               )
               insert into audit (at_ms, actor, action, subject, cause, request_id)
               select $2, $3, 'exception.resolve', coalesce(reference_number, rail_payment_id),
                   $4, ''
               from resolved";
    let at_ms = resolved.at.as_millisecond();
    Ok(change(db, sql, &[&id, &at_ms, &resolved.by, &resolved.resolution]).await? == 1)
}
