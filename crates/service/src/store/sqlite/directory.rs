//! Reading partners and applications on SQLite, beside whatever else is looked at.

use rusqlite::Row;

use super::Sqlite;
use super::statements::{Db, execute, row, rows};
use crate::store::directory::{APPLICATION_COLUMNS, ApplicationRow, PARTNER_COLUMNS, PartnerRow};
use crate::store::{Directory, Result};

impl Sqlite {
    pub(in crate::store) async fn directory_version(&self) -> Result<i64> {
        self.reader.run(version).await
    }

    pub(in crate::store) async fn directory(&self) -> Result<Directory> {
        self.reader
            .run(|db| {
                // One read transaction, so that version and rows belong together.
                let _snapshot = Snapshot::begin(db)?;
                let partners = format!("select {PARTNER_COLUMNS} from partners order by id");
                let applications =
                    format!("select {APPLICATION_COLUMNS} from applications order by id");
                Ok(Directory {
                    version: version(db)?,
                    partners: rows(db, &partners, [], partner_row)?
                        .into_iter()
                        .map(PartnerRow::read)
                        .collect::<Result<_>>()?,
                    applications: rows(db, &applications, [], application_row)?
                        .into_iter()
                        .map(ApplicationRow::read)
                        .collect::<Result<_>>()?,
                })
            })
            .await
    }
}

fn version(db: &Db<'_>) -> Result<i64> {
    let sql = "select cast(value as integer) from settings where key = 'directory_version'";
    Ok(row(db, sql, [], |row| row.get(0))?.unwrap_or(0))
}

fn partner_row(row: &Row<'_>) -> rusqlite::Result<PartnerRow> {
    Ok(PartnerRow {
        id: row.get(0)?,
        name: row.get(1)?,
        client_id: row.get(2)?,
        state: row.get(3)?,
        secret_hash: row.get(4)?,
        previous_secret_hash: row.get(5)?,
        previous_secret_until_ms: row.get(6)?,
        epoch: row.get(7)?,
        created_at_ms: row.get(8)?,
    })
}

fn application_row(row: &Row<'_>) -> rusqlite::Result<ApplicationRow> {
    Ok(ApplicationRow {
        id: row.get(0)?,
        partner_id: row.get(1)?,
        uuid: row.get(2)?,
        name: row.get(3)?,
        webhook_secret: row.get(4)?,
        previous_webhook_secret: row.get(5)?,
        previous_webhook_secret_until_ms: row.get(6)?,
        webhook_secret_switch_at_ms: row.get(7)?,
        pending_event: row.get(8)?,
        created_at_ms: row.get(9)?,
        chaos: row.get(10)?,
    })
}

/// A read transaction that ends with its scope.
struct Snapshot<'a, 'c>(&'a Db<'c>);

impl<'a, 'c> Snapshot<'a, 'c> {
    fn begin(db: &'a Db<'c>) -> Result<Self> {
        execute(db, "begin deferred", [])?;
        Ok(Self(db))
    }
}

impl Drop for Snapshot<'_, '_> {
    fn drop(&mut self) {
        let _ = execute(self.0, "rollback", []);
    }
}
