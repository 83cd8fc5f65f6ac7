//! Exceptions on PostgreSQL: money that fits no order, and what operators did about it.

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;

use super::paying::{change, many};
use super::{Fault, Postgres};
use crate::domain::{ExceptionKind, ReferenceNumber};
use crate::store::outbox::as_limit;
use crate::store::paying::ExceptionRow;
use crate::store::{ExceptionFilter, ExceptionRecord, Resolved, Result};

impl Postgres {
    pub(in crate::store) async fn exceptions(
        &self,
        filter: ExceptionFilter,
        limit: usize,
    ) -> Result<Vec<ExceptionRecord>> {
        let sql = format!(
            "select {} from exceptions
             where ($1::bigint is null or id = $1) and ($2::text is null or kind = $2)
                 and ($3::text is null or reference_number = $3)
                 and ($4::bool or resolved_at_ms is null)
             order by id desc limit $5",
            ExceptionRow::COLUMNS
        );
        let found = many(
            &self.client().await?,
            &sql,
            &[
                &filter.id,
                &filter.kind.map(ExceptionKind::as_str),
                &filter.reference_number.as_ref().map(ReferenceNumber::as_str),
                &filter.resolved_too,
                &as_limit(limit),
            ],
        )
        .await?;
        found.iter().map(|row| exception_row(row).read()).collect()
    }

    pub(in crate::store) async fn resolve_exception(
        &self,
        id: i64,
        resolved: Resolved,
    ) -> Result<bool> {
        Ok(resolve(&self.client().await?, id, &resolved).await?)
    }
}

/// Whether it was still open.
pub(super) async fn resolve(
    db: &impl GenericClient,
    id: i64,
    resolved: &Resolved,
) -> std::result::Result<bool, Fault> {
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

fn exception_row(row: &Row) -> ExceptionRow {
    ExceptionRow {
        id: row.get(0),
        kind: row.get(1),
        reference_number: row.get(2),
        rail: row.get(3),
        rail_payment_id: row.get(4),
        amount_centimos: row.get(5),
        detail: row.get(6),
        created_at_ms: row.get(7),
        resolved_at_ms: row.get(8),
        resolved_by: row.get(9),
        resolution: row.get(10),
    }
}
