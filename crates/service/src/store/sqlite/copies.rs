//! Copies of the embedded database, and the way back from one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::inspect::{is_missing, missing};
use super::statements::{Db, execute, row};
use super::{
    connect, create_private_file, empty_log, error, inspect, refuse_strangers, schema_latest,
};
use crate::domain::Environment;
use crate::store::files::{beside, folder_of};
use crate::store::{Result, StoreError};

/// Copies the database page by page while it is in use, then checks the copy.
pub(in crate::store) fn backup_sqlite(
    database: &Path,
    to: &Path,
    environment: Option<Environment>,
) -> Result<()> {
    if is_missing(database)? {
        return Err(missing(database));
    }
    if to.exists() {
        return Err(StoreError::Refused(format!(
            "{} exists already; choose another name",
            to.display()
        )));
    }
    let db = connect(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    refuse_strangers(&db, database)?;
    refuse_other_environment(&db, database, environment.map(Environment::as_str))?;
    whole_copy(database, to, |partial| rename(partial, to))
}

/// Puts a copy in the database's place. What was there is kept under another name, which is told.
pub(in crate::store) fn restore_sqlite(
    from: &Path,
    database: &Path,
    environment: Option<Environment>,
) -> Result<Option<PathBuf>> {
    if !from.is_file() {
        return Err(StoreError::Refused(format!("there is no copy at {}", from.display())));
    }
    if matches!((from.canonicalize(), database.canonicalize()), (Ok(from), Ok(to)) if from == to) {
        return Err(StoreError::Refused(format!("{} is the database itself", from.display())));
    }
    // What is there may be damaged, and then says nothing.
    let replaced = connect(database, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .and_then(|replaced| environment_of(&replaced))
        .unwrap_or_default();
    let wanted = environment.map(|given| given.as_str().to_owned()).or(replaced);
    let mut kept = None;
    whole_copy(from, database, |partial| {
        may_serve(&connect(partial, OpenFlags::SQLITE_OPEN_READ_ONLY)?, from, wanted.as_deref())?;
        end_access(&connect(partial, OpenFlags::SQLITE_OPEN_READ_WRITE)?)?;
        give_to_owner(partial, database);
        kept = keep_old(database)?;
        rename(partial, database).map_err(|fault| match &kept {
            Some(kept) => {
                StoreError::Refused(format!("{fault}; the data is in {}", kept.display()))
            }
            None => fault,
        })
    })?;
    give_to_owner(&beside(database, ".lock"), database);
    Ok(kept)
}

/// Whether a service could start from this copy.
fn may_serve(copy: &Connection, from: &Path, wanted: Option<&str>) -> Result<()> {
    refuse_strangers(copy, from)?;
    let Some(schema) = inspect::schema(copy)? else {
        return Err(StoreError::Refused(format!("{} is an empty database", from.display())));
    };
    schema.refuse_newer(schema_latest())?;
    refuse_other_environment(copy, from, wanted)
}

fn refuse_other_environment(db: &Connection, path: &Path, wanted: Option<&str>) -> Result<()> {
    match (wanted, environment_of(db)?) {
        (Some(wanted), Some(stored)) if wanted != stored => Err(StoreError::Refused(format!(
            "{} is of a {stored} service, not of a {wanted} one: say --environment {stored} if that is meant",
            path.display(),
        ))),
        _ => Ok(()),
    }
}

fn environment_of(db: &Connection) -> Result<Option<String>> {
    row(&Db::of(db), "select value from settings where key = 'environment'", [], |row| row.get(0))
}

/// Who was let in when the copy was made may have been shut out since: everybody proves anew who they are.
fn end_access(copy: &Connection) -> Result<()> {
    // Higher than any number of changes: no token of another day is good again.
    let copy = &Db::of(copy);
    let tokens = "update partners set epoch = max(epoch + 1, unixepoch())";
    for (table, end) in [
        ("partners", tokens),
        ("sessions", "delete from sessions"),
        ("invitations", "delete from invitations"),
    ] {
        // An older copy has no console.
        let exists = "select 1 from sqlite_schema where type = 'table' and name = ?1";
        if row(copy, exists, [table], |row| row.get::<_, i64>(0))?.is_some() {
            execute(copy, end, [])?;
        }
    }
    Ok(())
}

/// Whoever restores may be root; the service is not.
fn give_to_owner(partial: &Path, database: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, lchown};
        let owner = fs::metadata(database).or_else(|_| fs::metadata(folder_of(database)));
        if let Ok(owner) = owner {
            // Nobody but root can, and for nobody else it is needed. Of the file itself, never of what a link
            // in its place leads to.
            let _ = lchown(partial, Some(owner.uid()), Some(owner.gid()));
        }
    }
    #[cfg(not(unix))]
    let _ = (partial, database);
}

/// A second name for what is there, so that there is no moment without a database, and its logs beside it:
/// an old one would be played into the new file.
fn keep_old(database: &Path) -> Result<Option<PathBuf>> {
    if !["", "-wal", "-journal"].iter().any(|suffix| beside(database, suffix).exists()) {
        return Ok(None);
    }
    // A damaged one keeps its log as it is.
    let emptied =
        connect(database, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|db| empty_log(&db));
    if let Ok(false) = emptied {
        return Err(StoreError::Refused(format!(
            "another process still reads {}; wait for it, or end it",
            database.display()
        )));
    }
    let kept = free_name(database);
    if database.exists() {
        fs::hard_link(database, &kept).map_err(|fault| refused("keep", &kept, &fault))?;
    }
    for suffix in ["-wal", "-journal"] {
        let log = beside(database, suffix);
        if log.exists() {
            rename(&log, &beside(&kept, suffix))?;
        }
    }
    let _ = fs::remove_file(beside(database, "-shm"));
    Ok(Some(kept))
}

/// One that neither a file nor a log has.
fn free_name(database: &Path) -> PathBuf {
    (1..)
        .map(|number| beside(database, &format!(".before-restore-{number}")))
        .find(|name| !name.exists() && !beside(name, "-wal").exists())
        .expect("numbers do not end")
}

/// Under its name when it is whole: nobody takes half a copy for one.
fn whole_copy(from: &Path, to: &Path, keep: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let partial = beside(to, ".partial");
    if is_same(from, &partial) {
        return Err(StoreError::Refused(format!(
            "{} is where a copy is made; give it another name first",
            from.display()
        )));
    }
    let clear = || {
        for suffix in ["", "-wal", "-shm", "-journal"] {
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

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// All pages in one step: a copy in several steps begins anew whenever the service commits.
fn copy_and_check(from: &Path, to: &Path) -> Result<()> {
    const ALL_PAGES: i32 = -1;
    let source = connect(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut target = connect(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let copied = Backup::new(&source, &mut target)
        .and_then(|backup| backup.step(ALL_PAGES))
        .map_err(|fault| match fault.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => no_room(to),
            _ => error(&fault),
        })?;
    if copied != StepResult::Done {
        return Err(StoreError::Unavailable("somebody holds the database, or the copy".into()));
    }
    let verdict: String = target
        .query_row("pragma integrity_check", [], |row| row.get(0))
        .map_err(|fault| error(&fault))?;
    if verdict != "ok" {
        return Err(StoreError::Corrupt(verdict));
    }
    // One file without a log beside it, which can be read from a medium that cannot be written.
    target.query_row("pragma journal_mode = delete", [], |_| Ok(())).map_err(|fault| error(&fault))
}

fn no_room(copy: &Path) -> StoreError {
    let folder = folder_of(copy).display();
    StoreError::Refused(format!(
        "the disk of {folder} has no room for the copy; nothing was changed: make room, or name another disk"
    ))
}

/// Also after a power cut.
fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to)
        .and_then(|()| File::open(folder_of(to)))
        .and_then(|folder| folder.sync_all())
        .map_err(|fault| refused("move", to, &fault))
}

fn refused(what: &str, path: &Path, fault: &io::Error) -> StoreError {
    StoreError::Refused(format!("cannot {what} {}: {fault}", path.display()))
}
