//! Exceptions on SQLite: money that fits no order, and what operators did about it.

use rusqlite::params;

use super::Sqlite;
use super::statements::{Db, execute, row};
use crate::store::{Resolved, Result};

impl Sqlite {
    pub(in crate::store) async fn resolve_exception(
        &self,
        id: i64,
        resolved: Resolved,
    ) -> Result<bool> {
        self.writer.run_compound(move |db| resolve(db, id, &resolved)).await
    }
}

pub(super) fn is_open(db: &Db<'_>, id: i64) -> Result<bool> {
    let sql = "select 1 from exceptions where id = ?1 and resolved_at_ms is null";
    Ok(row(db, sql, [id], |row| row.get::<_, i64>(0))?.is_some())
}

/// Whether it was still open.
pub(super) fn resolve(db: &Db<'_>, id: i64, resolved: &Resolved) -> Result<bool> {
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
