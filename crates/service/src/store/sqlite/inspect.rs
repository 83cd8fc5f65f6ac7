//! What `store::inspect` reads from the embedded database.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::statements::{Db, row, rows};
use super::{check_pages, connect, error, refuse_strangers, schema_latest};
use crate::store::files::beside;
use crate::store::inspect::{Inspection, SCHEMA, Schema};
use crate::store::rekeying::ALL_SERVED_WITH;
use crate::store::{Result, StoreError};

/// Only what a service may begin with makes a file: elsewhere a typing error would make an empty one.
pub(super) fn missing(path: &Path) -> StoreError {
    StoreError::Refused(format!(
        "there is no database at {}; if that is the right place, run svc migrate first, else name it \
         with --database (that of svc demo is sqlite:svc-demo/svc.db)",
        path.display()
    ))
}

pub(in crate::store) fn inspect_sqlite(path: &Path) -> Result<Inspection> {
    if is_missing(path)? {
        return Err(missing(path));
    }
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    refuse_strangers(&db, path)?;
    check_pages(&db, path)?;
    let mode: String =
        db.query_row("pragma journal_mode", [], |row| row.get(0)).map_err(|fault| error(&fault))?;
    let schema = schema(&db)?;
    let setting = |key: &'static str| match schema {
        None => Ok(None),
        Some(_) => {
            row(&Db::of(&db), "select value from settings where key = ?1", [key], |row| row.get(0))
        }
    };
    Ok(Inspection {
        engine: "sqlite",
        schema,
        schema_latest: schema_latest(),
        environment: setting("environment")?,
        master_key_id: setting("master_key_id")?,
        served_with: match schema {
            None => Vec::new(),
            Some(_) => rows(&Db::of(&db), ALL_SERVED_WITH, [], |row| row.get(0))?,
        },
        keeps_master_key: setting("sandbox_master_key")?.is_some(),
        durability: vec![("journal_mode", mode.clone(), mode == "wal")],
        unwritable: unwritable(path),
        now: None,
    })
}

/// Also an empty file, which is what a copy leaves that was cut off. A folder nobody may look into is told as
/// what it is.
pub(super) fn is_missing(path: &Path) -> Result<bool> {
    match std::fs::metadata(path) {
        Ok(file) => Ok(file.len() == 0),
        Err(fault) if fault.kind() == ErrorKind::NotFound => Ok(true),
        Err(fault) => Err(StoreError::Refused(format!(
            "cannot look at {}: {fault}; run this as the service's user",
            path.display()
        ))),
    }
}

/// Nothing is written: to be allowed to is enough.
fn unwritable(path: &Path) -> Option<String> {
    let lock = beside(path, ".lock");
    let closed = |path: &&Path| {
        File::options()
            .write(true)
            .open(path)
            .is_err_and(|fault| fault.kind() != ErrorKind::NotFound)
    };
    let closed = [path, &lock].into_iter().find(closed)?;
    Some(format!("this user may not write {}", closed.display()))
}

pub(super) fn schema(db: &Connection) -> Result<Option<Schema>> {
    let db = &Db::of(db);
    let there = "select count(*) from sqlite_master where name = 'refinery_schema_history'";
    let count: Option<i64> = row(db, there, [], |row| row.get(0))?;
    if count == Some(0) {
        return Ok(None);
    }
    let found = row(db, SCHEMA, [], |row| {
        let version: Option<i64> = row.get(0)?;
        version.map(|version| Ok(Schema { version, needed: row.get(1)? })).transpose()
    });
    Ok(found?.flatten())
}
