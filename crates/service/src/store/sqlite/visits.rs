//! Windows of the checkout on SQLite.

use jiff::Timestamp;
use rusqlite::params;

use super::Sqlite;
use super::statements::{execute, row};
use crate::domain::ReferenceNumber;
use crate::store::{CheckoutVisit, Result};

impl Sqlite {
    pub(in crate::store) async fn visit(
        &self,
        reference: &ReferenceNumber,
        nonce: &str,
    ) -> Result<Option<CheckoutVisit>> {
        let sql = "select seen_at_ms, alive, left_at_ms from checkout_visits
                   where reference_number = ?1 and nonce = ?2";
        let read = |row: &rusqlite::Row<'_>| {
            Ok(CheckoutVisit::read(row.get(0)?, row.get(1)?, row.get(2)?))
        };
        self.lookups.run(|db| row(db, sql, [reference.as_str(), nonce], read))?.transpose()
    }

    pub(in crate::store) async fn is_open_elsewhere(
        &self,
        reference: &ReferenceNumber,
        nonce: &str,
        heard_since: Timestamp,
        loaded_since: Timestamp,
    ) -> Result<bool> {
        let sql = "select 1 from checkout_visits where reference_number = ?1 and nonce <> ?2
                       and left_at_ms is null
                       and seen_at_ms >= case when alive then ?3 else ?4 end limit 1";
        let since = (heard_since.as_millisecond(), loaded_since.as_millisecond());
        let given = params![reference.as_str(), nonce, since.0, since.1];
        let found = self.lookups.run(|db| row(db, sql, given, |row| row.get::<_, i64>(0)))?;
        Ok(found.is_some())
    }

    pub(in crate::store) async fn visit_seen(
        &self,
        reference: &ReferenceNumber,
        nonce: &str,
        alive: bool,
        at: Timestamp,
    ) -> Result<()> {
        let sql = "insert into checkout_visits (reference_number, nonce, seen_at_ms, alive)
                   values (?1, ?2, ?3, ?4)
                   on conflict (reference_number, nonce) do update
                   set seen_at_ms = excluded.seen_at_ms, alive = max(alive, excluded.alive),
                       left_at_ms = null, due_at_ms = null";
        let (reference, nonce) = (reference.clone(), nonce.to_owned());
        self.writer
            .run(move |db| {
                let at_ms = at.as_millisecond();
                execute(db, sql, params![reference.as_str(), nonce, at_ms, alive]).map(drop)
            })
            .await
    }
}
