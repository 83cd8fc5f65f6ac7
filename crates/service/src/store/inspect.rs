//! A look at a database that changes nothing: no migration, no setting, no lock.

use jiff::Timestamp;
use secrecy::ExposeSecret;

use super::postgres::inspect_postgres;
use super::sqlite::inspect_sqlite;
use super::{Database, Result, StoreError};

/// What a database says about itself.
#[derive(Clone, Debug)]
pub struct Inspection {
    pub engine: &'static str,
    /// `None` when there are no tables yet.
    pub schema: Option<Schema>,
    /// The last step this program knows.
    pub schema_latest: i64,
    pub environment: Option<String>,
    pub master_key_id: Option<String>,
    /// The ids of the master keys that the service began with since one took over from another.
    pub served_with: Vec<String>,
    /// As a sandbox does that was given none.
    pub keeps_master_key: bool,
    /// Settings that decide whether a commit survives a power cut, and whether it does.
    pub durability: Vec<(&'static str, String, bool)>,
    /// What keeps this user from writing to it, as a service does.
    pub unwritable: Option<String>,
    /// The server's time; the embedded database has none of its own.
    pub now: Option<Timestamp>,
}

/// How far the tables have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The last step that was taken.
    pub version: i64,
    /// The last that a program must know: those after it only add, as their names say, and leave all that an
    /// older program reads and writes as it was.
    pub needed: i64,
}

/// Nothing was taken yet: no version.
pub(super) const SCHEMA: &str = "select cast(max(version) as bigint),
        cast(coalesce(max(version) filter (where substr(name, 1, 5) <> 'adds_'), 0) as bigint)
    from refinery_schema_history";

/// Looks without touching; an error says what keeps a service from starting there.
pub async fn inspect(database: &Database) -> Result<Inspection> {
    match database {
        Database::Sqlite(path) => inspect_sqlite(path),
        Database::Postgres(url) => inspect_postgres(url.expose_secret()).await,
    }
}

/// The last step that this program knows.
pub(super) fn latest_of(known: &refinery::Runner) -> i64 {
    known.get_migrations().iter().map(|step| i64::from(step.version())).max().unwrap_or(0)
}

impl Schema {
    /// An older program would write what the newer one no longer understands.
    pub(super) fn refuse_newer(self, latest: i64) -> Result<()> {
        if self.needed <= latest {
            return Ok(());
        }
        Err(StoreError::Refused(format!(
            "the database is of a newer svc (schema {}, this one knows {latest}): run that one, or \
             restore the backup made before the upgrade",
            self.needed
        )))
    }
}

/// Whether there are steps to take; of a newer program's none are left.
pub(super) fn may_step(schema: Option<Schema>, latest: i64) -> Result<bool> {
    let Some(schema) = schema else { return Ok(true) };
    schema.refuse_newer(latest)?;
    Ok(schema.version <= latest)
}

/// Without the statement, which tells nobody what to do.
pub(super) fn not_migrated(fault: &str) -> StoreError {
    let fault = fault.lines().next().unwrap_or_default();
    StoreError::Refused(format!(
        "the database could not be brought up to date: {fault}; mend the cause and start again, \
         it goes on from where it was"
    ))
}
