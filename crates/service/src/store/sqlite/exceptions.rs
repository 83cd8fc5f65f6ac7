//! Exceptions on SQLite: money that fits no order, and what operators did about it.

use rusqlite::{Connection, Row, params};

use super::{Sqlite, execute, row, rows};
use crate::domain::{ExceptionKind, ReferenceNumber};
use crate::store::outbox::as_limit;
use crate::store::paying::ExceptionRow;
use crate::store::{ExceptionFilter, ExceptionRecord, Resolved, Result};

impl Sqlite {
    pub(in crate::store) async fn exceptions(
        &self,
        filter: ExceptionFilter,
        limit: usize,
    ) -> Result<Vec<ExceptionRecord>> {
        let sql = format!(
            "select {} from exceptions
             where (?1 is null or id = ?1) and (?2 is null or kind = ?2)
                 and (?3 is null or reference_number = ?3) and (?4 or resolved_at_ms is null)
             order by id desc limit ?5",
            ExceptionRow::COLUMNS
        );
        self.reader
            .run(move |db| {
                let given = params![
                    filter.id,
                    filter.kind.map(ExceptionKind::as_str),
                    filter.reference_number.as_ref().map(ReferenceNumber::as_str),
                    filter.resolved_too,
                    as_limit(limit),
                ];
                let found = rows(db, &sql, given, exception_row)?;
                found.into_iter().map(ExceptionRow::read).collect()
            })
            .await
    }

    pub(in crate::store) async fn resolve_exception(
        &self,
        id: i64,
        resolved: Resolved,
    ) -> Result<bool> {
        self.writer.run_compound(move |db| resolve(db, id, &resolved)).await
    }
}

pub(super) fn is_open(db: &Connection, id: i64) -> Result<bool> {
    let sql = "select 1 from exceptions where id = ?1 and resolved_at_ms is null";
    Ok(row(db, sql, [id], |row| row.get::<_, i64>(0))?.is_some())
}

/// Whether it was still open.
pub(super) fn resolve(db: &Connection, id: i64, resolved: &Resolved) -> Result<bool> {
    let at_ms = resolved.at.as_millisecond();
    let changed = execute(
        db,
        "update exceptions set resolved_at_ms = ?2, resolved_by = ?3, resolution = ?4
         where id = ?1 and resolved_at_ms is null",
        params![id, at_ms, resolved.by, resolved.resolution],
    )?;
    if changed == 0 {
        return Ok(false);
    }
    execute(
        db,
        "insert into audit (at_ms, actor, action, subject, cause, request_id)
         select ?2, ?3, 'exception.resolve', coalesce(reference_number, rail_payment_id), ?4, ''
         from exceptions where id = ?1",
        params![id, at_ms, resolved.by, resolved.resolution],
    )?;
    Ok(true)
}

fn exception_row(row: &Row<'_>) -> rusqlite::Result<ExceptionRow> {
    Ok(ExceptionRow {
        id: row.get(0)?,
        kind: row.get(1)?,
        reference_number: row.get(2)?,
        rail: row.get(3)?,
        rail_payment_id: row.get(4)?,
        amount_centimos: row.get(5)?,
        detail: row.get(6)?,
        created_at_ms: row.get(7)?,
        resolved_at_ms: row.get(8)?,
        resolved_by: row.get(9)?,
        resolution: row.get(10)?,
    })
}
