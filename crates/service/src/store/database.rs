//! Where the data lives: its address, the lock of the one service on it, copies and the way back.

use std::fmt;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use secrecy::SecretString;

use super::files::{beside, not_opened, private_file, where_it_leads};
use super::{Result, StoreError, sqlite};
use crate::domain::Environment;

/// Where the data lives.
#[derive(Clone, Debug)]
pub enum Database {
    Sqlite(PathBuf),
    /// A connection URL; it may hold a password.
    Postgres(SecretString),
}

/// Held by the one service that may run on an embedded database; other commands need none.
#[derive(Debug)]
pub struct ServiceLock(#[expect(dead_code, reason = "the open files are the lock")] Vec<File>);

impl Database {
    /// `sqlite:PATH` or `postgres://…`.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(StoreError::Refused(
                    "the database is sqlite:PATH; the path is missing".into(),
                ));
            }
            return Ok(Self::Sqlite(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned().into()));
        }
        let mut told = "the database is sqlite:PATH or postgres://USER@HOST/NAME".to_owned();
        // What is no path may hold a password.
        if !text.is_empty() && !text.contains([':', '@']) {
            told = format!("{told}: write sqlite:{text}");
        }
        Err(StoreError::Refused(told))
    }

    /// Whether there is nothing yet, as far as that can be seen from here.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Sqlite(path) => !path.exists(),
            Self::Postgres(_) => false,
        }
    }

    /// Two services on one SQLite file would both deliver its events: the second is refused.
    pub fn lock_for_service(&self) -> Result<ServiceLock> {
        let Self::Sqlite(path) = self else { return Ok(ServiceLock(Vec::new())) };
        let path = where_it_leads(path);
        let name = beside(&path, ".lock");
        let lock = |name: &Path, file: std::io::Result<File>| {
            let file = file.map_err(|fault| not_opened("lock", name, &fault))?;
            match file.try_lock() {
                Ok(()) => Ok(file),
                Err(TryLockError::WouldBlock) => Err(StoreError::Refused(format!(
                    "another svc is using {}: stop it first, or name another database",
                    path.display()
                ))),
                Err(TryLockError::Error(fault)) => Err(not_opened("lock", name, &fault)),
            }
        };
        let mut held = vec![lock(&name, private_file(&name))?];
        // The file itself too, which may have a second name, unless it is still to be made. On Linux SQLite's own
        // locks are of another kind; they would end with the first of our files that is closed, so this one stays
        // open as long as the service.
        if cfg!(target_os = "linux") && path.metadata().is_ok_and(|file| file.len() > 0) {
            held.push(lock(&path, File::open(&path))?);
        }
        Ok(ServiceLock(held))
    }

    /// A consistent copy, also while the service runs; nothing is brought up to date for it. PostgreSQL has its
    /// own tools for that.
    pub fn backup(&self, to: &Path, environment: Option<Environment>) -> Result<()> {
        match self {
            Self::Sqlite(path) => sqlite::backup_sqlite(path, to, environment),
            Self::Postgres(_) => Err(StoreError::Refused(
                "svc backup copies the embedded database; for PostgreSQL use pg_dump or pg_basebackup".into(),
            )),
        }
    }

    /// Puts a copy made by `backup` in this database's place, while nobody serves it. What was there is
    /// kept under another name, which is told.
    pub fn restore(
        &self,
        from: &Path,
        environment: Option<Environment>,
    ) -> Result<Option<PathBuf>> {
        let Self::Sqlite(path) = self else {
            return Err(StoreError::Refused(
                "svc restore is for the embedded database; for PostgreSQL use its own tools".into(),
            ));
        };
        let _lock = self.lock_for_service()?;
        // Where a link leads, not in its place.
        sqlite::restore_sqlite(from, &where_it_leads(path), environment)
    }
}

impl fmt::Display for Database {
    /// Without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => {
                let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                write!(f, "{}", whole.display())
            }
            Self::Postgres(_) => f.write_str("PostgreSQL"),
        }
    }
}
