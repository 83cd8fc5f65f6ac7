//! Copies of the embedded database, and the way back from one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::OpenFlags;
use rusqlite::backup::{Backup, StepResult};

use super::{
    Sqlite, connect, copy_log_back, create_private_file, error, inspect, refuse_newer,
    refuse_strangers, schema_latest,
};
use crate::store::{Result, StoreError};

/// What SQLite keeps beside the file itself.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

impl Sqlite {
    /// Copies the database page by page while it is in use, then checks the copy.
    pub(in crate::store) async fn backup(&self, to: PathBuf) -> Result<()> {
        let from = self.path.clone();
        let copy = move || -> Result<()> {
            if to.exists() {
                return Err(StoreError::Refused(format!(
                    "{} exists already; choose another name",
                    to.display()
                )));
            }
            whole_copy(&from, &to, |partial| rename(partial, &to))
        };
        tokio::task::spawn_blocking(copy)
            .await
            .map_err(|fault| StoreError::Unavailable(fault.to_string()))?
    }
}

/// Puts a copy in the database's place. What was there is kept under a name with `mark`, which is told.
pub(in crate::store) fn restore_sqlite(
    from: &Path,
    database: &Path,
    mark: &str,
) -> Result<Option<PathBuf>> {
    if !from.exists() {
        return Err(StoreError::Refused(format!("there is no copy at {}", from.display())));
    }
    let mut kept = None;
    whole_copy(from, database, |partial| {
        let copy = connect(partial, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        refuse_strangers(&copy, from)?;
        let version = inspect::version(&copy)?;
        if version.is_none() {
            let told = format!("{} is an empty database", from.display());
            return Err(StoreError::Refused(told));
        }
        refuse_newer(version, schema_latest())?;
        drop(copy);
        if database.exists() {
            let aside = beside(database, mark);
            set_aside(database, &aside)?;
            kept = Some(aside);
        }
        rename(partial, database)
    })?;
    Ok(kept)
}

/// The file first: whoever starts between the two finds no database, never one without its log.
fn set_aside(database: &Path, aside: &Path) -> Result<()> {
    if let Ok(db) = connect(database, OpenFlags::SQLITE_OPEN_READ_WRITE) {
        copy_log_back(&db, "truncate");
    }
    rename(database, aside)?;
    for suffix in BESIDE {
        let old = beside(database, suffix);
        if old.exists() {
            rename(&old, &beside(aside, suffix))?;
        }
    }
    Ok(())
}

/// Under its name when it is whole: nobody takes half a copy for one.
fn whole_copy(from: &Path, to: &Path, keep: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let partial = beside(to, ".partial");
    let clear = || {
        let _ = fs::remove_file(&partial);
        for suffix in BESIDE {
            let _ = fs::remove_file(beside(&partial, suffix));
        }
    };
    clear();
    create_private_file(&partial)?;
    let sync = || File::open(&partial).and_then(|copy| copy.sync_all());
    let made = copy_and_check(from, &partial)
        .and_then(|()| sync().map_err(|fault| refused("keep", &partial, &fault)))
        .and_then(|()| keep(&partial));
    clear();
    made
}

/// All pages in one step: a copy in several steps begins anew whenever the service commits.
fn copy_and_check(from: &Path, to: &Path) -> Result<()> {
    const ALL_PAGES: i32 = -1;
    let source = connect(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut target = connect(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let copied = Backup::new(&source, &mut target)
        .and_then(|backup| backup.step(ALL_PAGES))
        .map_err(|fault| error(&fault))?;
    if copied != StepResult::Done {
        return Err(StoreError::Unavailable("somebody holds the database, or the copy".into()));
    }
    let verdict: String = target
        .query_row("pragma integrity_check", [], |row| row.get(0))
        .map_err(|fault| error(&fault))?;
    if verdict != "ok" {
        return Err(StoreError::Corrupt(verdict));
    }
    Ok(())
}

/// Also after a power cut.
fn rename(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    fs::rename(from, to)
        .and_then(|()| File::open(folder.unwrap_or(Path::new("."))))
        .and_then(|folder| folder.sync_all())
        .map_err(|fault| refused("move", to, &fault))
}

fn refused(what: &str, path: &Path, fault: &std::io::Error) -> StoreError {
    StoreError::Refused(format!("cannot {what} {}: {fault}", path.display()))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
