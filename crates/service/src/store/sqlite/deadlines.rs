//! Moving the deadlines of orders on SQLite.

use jiff::Timestamp;
use rusqlite::params;

use super::Sqlite;
use super::paying::withdraw_issued;
use super::statements::execute;
use crate::domain::ReferenceNumber;
use crate::store::Result;

impl Sqlite {
    pub(in crate::store) async fn postpone(
        &self,
        reference: &ReferenceNumber,
        seen: Option<Timestamp>,
        until: Timestamp,
        closing_since: Option<Timestamp>,
    ) -> Result<()> {
        let reference = reference.clone();
        let sql =
            "update orders set expires_at_ms = ?2, closing_at_ms = coalesce(closing_at_ms, ?3)
                   where reference_number = ?1 and status = 'PEN'
                       and expires_at_ms = coalesce(?4, expires_at_ms)";
        self.writer
            .run_compound(move |db| {
                let closing = closing_since.map(Timestamp::as_millisecond);
                let seen = seen.map(Timestamp::as_millisecond);
                let given = params![reference.as_str(), until.as_millisecond(), closing, seen];
                let moved = execute(db, sql, given)?;
                match closing_since {
                    Some(at) if moved > 0 => withdraw_issued(db, reference.as_str(), at),
                    _ => Ok(()),
                }
            })
            .await
    }
}
