//! The embedded engine: SQLite in WAL mode, one writer thread, readers beside it.

mod copies;
mod deadlines;
mod exceptions;
mod inspect;
mod order_ids;
mod orders;
mod outbox;
mod paying;
mod portable;
mod settling;
mod statements;
mod stepping;
mod thread;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::files::{not_opened, private_file, where_it_leads};
use super::inspect::{latest_of, may_step, not_migrated};
use super::{Options, Result, StoreError};
pub(super) use copies::{backup_sqlite, restore_sqlite};
pub(super) use inspect::inspect_sqlite;
use order_ids::{OrderIds, WAITING_MAX};
use statements::{Db, row};
use thread::{Calls, Place, UnderWay};

mod migrations {
    refinery::embed_migrations!("src/store/migrations/sqlite");
}

/// 3.51.3 mended a bug that could corrupt the file when the log is reset.
const VERSION_MIN: i32 = 3_051_003;
/// The writer looks for the id of every order on a page at random: most of the memory is its.
const WRITER_CACHE_KIB: i64 = 32 * 1024;
const READER_CACHE_KIB: i64 = 8 * 1024;
/// Pages in the log before it is copied back: fewer, larger copies than the default of 1,000.
const CHECKPOINT_PAGES: i64 = 16_000;
const LOG_BYTES_MAX: i64 = 2 * CHECKPOINT_PAGES * 4_096;
/// Files up to this size are checked page by page at every start.
const CHECKED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long to wait for another process (a CLI command) that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const STATEMENTS_CACHED: usize = 64;
/// A stop waits so long for whoever still reads.
const READERS_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct Sqlite {
    writer: Calls,
    lookups: Lookups,
    /// For whatever reads more than a row.
    reader: Calls,
    /// For partners who read their events: thousands of rows, and as often as they like.
    feeder: Calls,
    /// For people who look: their pages may read a lot, and hold up no webhook.
    looker: Calls,
    under_way: UnderWay,
    order_ids: Arc<OrderIds>,
    path: PathBuf,
    place: Place,
}

/// Connections for one row by its key, used on the caller's own thread: that takes microseconds,
/// less than handing the question to another thread and the answer back.
struct Lookups(Vec<Mutex<Connection>>);

impl Lookups {
    fn run<T>(&self, work: impl FnOnce(&Db<'_>) -> Result<T>) -> Result<T> {
        let free = self.0.iter().find_map(|db| db.try_lock().ok());
        let db = free.unwrap_or_else(|| self.0[0].lock().unwrap_or_else(PoisonError::into_inner));
        work(&Db::of(&db))
    }
}

impl Sqlite {
    pub(super) fn open(path: &Path, options: &Options) -> Result<Self> {
        if rusqlite::version_number() < VERSION_MIN {
            return Err(StoreError::Refused(format!(
                "SQLite {} has a bug that can corrupt data; 3.51.3 or newer is needed",
                rusqlite::version()
            )));
        }
        if inspect::is_missing(path)? {
            if !options.create {
                return Err(inspect::missing(path));
            }
            create_private_file(&where_it_leads(path))?;
        }
        let mut writer = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // SQLite opens what it may not write as well.
        if writer.is_readonly("main").map_err(|fault| error(&fault))? {
            return Err(StoreError::Refused(format!(
                "{} cannot be written: it is somebody else's, or its disk is read-only; run this as the \
                 service's user",
                path.display()
            )));
        }
        refuse_strangers(&writer, path)?;
        check_pages(&writer, path)?;
        make_durable(&writer)?;
        migrate(&mut writer)?;
        // What a statement may have to take back is kept in memory, not in a file. A migration may sort
        // millions of rows: not before.
        writer.pragma_update(None, "temp_store", "memory").map_err(|fault| error(&fault))?;
        copy_log_back(&writer);
        let reader = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let feeder = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let looker = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let lookups = (0..cores)
            .map(|_| connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map(Mutex::new))
            .collect::<Result<_>>()?;
        let order_ids = Arc::new(OrderIds::open(&Db::of(&writer), WAITING_MAX)?);
        let (ids, place) = (Arc::clone(&order_ids), Place::of(&writer));
        let under_way = UnderWay::default();
        Ok(Self {
            writer: thread::spawn_writer(writer, ids, place.clone(), under_way.clone(), options),
            under_way,
            order_ids,
            lookups: Lookups(lookups),
            reader: thread::spawn_reader(reader),
            feeder: thread::spawn_reader(feeder),
            looker: thread::spawn_looker(looker),
            path: path.to_owned(),
            place,
        })
    }

    /// The writer takes the lock and answers: it lives and no other process blocks it.
    pub(super) async fn ping(&self) -> Result<()> {
        self.writer.run(|_| Ok(())).await
    }

    pub(super) async fn broken(&self) {
        tokio::select! {
            () = self.writer.ended() => {}
            () = self.reader.ended() => {}
            () = self.feeder.ended() => {}
            () = self.looker.ended() => {}
        }
    }

    /// After the last write everything is in the one file that people copy.
    pub(super) async fn put_away(&self) -> Result<()> {
        // Even to open another one would play our log into it.
        self.place.is_ours()?;
        let db = connect(&self.path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let emptied = tokio::task::spawn_blocking(move || empty_log(&db))
            .await
            .map_err(|fault| StoreError::Unavailable(fault.to_string()))??;
        match emptied {
            true => Ok(()),
            false => Err(StoreError::Unavailable("another process still reads from it".into())),
        }
    }
}

/// A file of something else is left as it is.
fn refuse_strangers(db: &Connection, path: &Path) -> Result<()> {
    let sql =
        "select count(*) > 0 and sum(name = 'refinery_schema_history') = 0 from sqlite_schema";
    match row(&Db::of(db), sql, [], |row| row.get::<_, Option<bool>>(0)) {
        Ok(Some(Some(true))) => Err(StoreError::Refused(format!(
            "{} is a SQLite database of something else; name ours with --database",
            path.display()
        ))),
        // A damaged one is refused by whoever reads its pages.
        _ => Ok(()),
    }
}

fn connect(path: &Path, mode: OpenFlags) -> Result<Connection> {
    let open = || -> rusqlite::Result<Connection> {
        let db = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        db.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
        db.pragma_update(None, "foreign_keys", true)?;
        // A statement keeps its plan: otherwise SQLite looks at each new parameter and may plan anew.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        let cache_kib = if mode == OpenFlags::SQLITE_OPEN_READ_WRITE {
            WRITER_CACHE_KIB
        } else {
            READER_CACHE_KIB
        };
        db.pragma_update(None, "cache_size", -cache_kib)?;
        Ok(db)
    };
    open().map_err(|fault| {
        let path = path.display();
        StoreError::Refused(match fault.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => format!(
                "{path} is damaged, or no database of this service: {fault}. If it was one, keep it with its -wal, \
                 look at the disk and put the last copy in its place: svc restore COPY"
            ),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => format!(
                "this user may not write {path}: {fault}; run this as the service's user"
            ),
            _ => format!(
                "cannot open the database {path}: {fault}; check the path, its permissions and that it is a \
                 database of this service"
            ),
        })
    })
}

/// The durability guard: every acknowledged commit has reached the disk, or we do not start.
fn make_durable(db: &Connection) -> Result<()> {
    let settings = || -> rusqlite::Result<(String, i64)> {
        let mode = db.query_row("pragma journal_mode = wal", [], |row| row.get(0))?;
        db.pragma_update(None, "synchronous", "full")?;
        db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        // A log that grew beside a long read gives its space back.
        db.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)?;
        let synchronous = db.query_row("pragma synchronous", [], |row| row.get(0))?;
        Ok((mode, synchronous))
    };
    const FULL: i64 = 2;
    match settings().map_err(|fault| error(&fault))? {
        (mode, FULL) if mode == "wal" => Ok(()),
        (mode, level) => Err(StoreError::Refused(format!(
            "the database would lose commits at a power cut (journal_mode {mode}, synchronous \
             {level}); put it on a local file system that supports SQLite's WAL mode"
        ))),
    }
}

/// What a life left in the log goes into the file before the next one adds to it: a service that is killed
/// again and again would otherwise read an ever longer log at every start, and never get to copy it.
fn copy_log_back(db: &Connection) {
    // Passive: a command beside a running service waits for nobody.
    let copied = db.query_row("pragma wal_checkpoint(passive)", [], |_| Ok(()));
    if let Err(fault) = copied {
        // On a full disk, say: what is stored can still be read.
        tracing::warn!(%fault, "the log of the database could not be copied back; it is tried again");
    }
}

/// All that the log holds goes into the file; `false` if somebody still reads from the log.
fn empty_log(db: &Connection) -> Result<bool> {
    let emptied = db
        .busy_timeout(READERS_TIMEOUT)
        .and_then(|()| db.query_row("pragma wal_checkpoint(truncate)", [], |row| row.get(0)));
    emptied.map(|busy: i64| busy == 0).map_err(|fault| error(&fault))
}

/// A damaged file is refused before it is trusted with more. Reading all of a large one would keep
/// the service from starting; `svc backup` checks those.
fn check_pages(db: &Connection, path: &Path) -> Result<()> {
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    if bytes > CHECKED_BYTES_MAX {
        return Ok(());
    }
    let verdict = db.query_row("pragma quick_check(1)", [], |row| row.get::<_, String>(0));
    let damage = match verdict {
        Ok(verdict) if verdict == "ok" => return Ok(()),
        Ok(verdict) => verdict,
        Err(fault) => fault.to_string(),
    };
    Err(StoreError::Refused(format!(
        "the database {} is damaged ({damage}); restore a backup",
        path.display()
    )))
}

/// All in one transaction with the note of it: a step that was taken and not noted could not be taken again.
/// Two processes may start together: the loser finds the winner's tables, looks again and goes on.
fn migrate(db: &mut Connection) -> Result<()> {
    const TRIES: usize = 5;
    if !may_step(inspect::schema(db)?, schema_latest())? {
        return Ok(());
    }
    // Where rows are older than the column, a migration fills it in.
    let hash = |given: &Context<'_>| given.get::<String>(0).map(|id| order_ids::id_hash(&id));
    db.create_scalar_function("id_hash", 1, FunctionFlags::SQLITE_DETERMINISTIC, hash)
        .map_err(|fault| error(&fault))?;
    let mut last = String::new();
    for _ in 0..TRIES {
        match migrations::migrations::runner().set_grouped(true).run(db) {
            Ok(_) => return Ok(()),
            Err(fault) => last = fault.to_string(),
        }
    }
    Err(not_migrated(&last))
}

fn schema_latest() -> i64 {
    latest_of(&migrations::migrations::runner())
}

/// The database holds hashes and sealed secrets: nobody else on the machine may read it.
fn create_private_file(path: &Path) -> Result<()> {
    private_file(path).map(drop).map_err(|fault| not_opened("create", path, &fault))
}

fn error(fault: &rusqlite::Error) -> StoreError {
    match fault.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) => StoreError::Broken(fault.to_string()),
        Some(ErrorCode::OperationInterrupted) => {
            StoreError::Unavailable("the question reads too much; narrow it".into())
        }
        Some(ErrorCode::DatabaseBusy) => StoreError::Unavailable(
            "another process holds the database for writing (a sqlite3 shell, a backup tool?): find it with fuser and \
             end it".into(),
        ),
        _ => StoreError::Unavailable(fault.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::order_ids::IdKey;
    use super::*;
    use crate::domain::ApplicationId;

    #[test]
    fn a_migration_that_is_cut_off_is_done_by_the_next_start() {
        let mut cut_at = 0_usize;
        loop {
            let mut db = Connection::open_in_memory().unwrap();
            let (mut left, cut) = (cut_at, Arc::new(AtomicBool::new(false)));
            let hook = {
                let cut = Arc::clone(&cut);
                // Whatever is tried after the first cut fails too: this process is gone.
                move || {
                    cut.fetch_or(left == 0, Ordering::Relaxed);
                    left = left.saturating_sub(1);
                    cut.load(Ordering::Relaxed)
                }
            };
            db.commit_hook(Some(hook)).unwrap();
            let first = migrate(&mut db);
            if !cut.load(Ordering::Relaxed) {
                break;
            }
            assert!(first.is_err(), "cut at commit {cut_at}");
            db.commit_hook(None::<fn() -> bool>).unwrap();
            migrate(&mut db).unwrap_or_else(|fault| panic!("cut at commit {cut_at}: {fault}"));
            assert_eq!(inspect::schema(&db).unwrap().unwrap().version, schema_latest());
            cut_at += 1;
        }
        assert!(cut_at > 0, "nothing was cut off");
    }

    #[test]
    fn orders_of_an_older_version_stay_as_they_were_and_are_found_by_their_ids() {
        let mut db = Connection::open_in_memory().unwrap();
        let before = refinery::Target::Version(5);
        migrations::migrations::runner().set_target(before).run(&mut db).unwrap();
        let columns = "reference_number, application_id, external_transaction_id, status, amount,
            quantity, payer_id, name, additional_info, request_id, created_at_ms, expires_at_ms,
            settled_at_ms, cancel_requested, closing_at_ms";
        db.execute(
            &format!(
                "insert into orders ({columns})
                 values ('R1', 7, 'order_1', 'PEN', 15000, 2, 'p', 'n', '{{}}', 'q', 1, 2, 3, 'payer', 4)"
            ),
            [],
        )
        .unwrap();
        let read = |db: &Connection| -> String {
            let sql = format!("select concat_ws('|', {columns}) from orders");
            db.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        let old = read(&db);

        migrate(&mut db).unwrap();
        assert_eq!(read(&db), old);
        let ids = OrderIds::open(&Db::of(&db), WAITING_MAX).unwrap();
        let of = |application| IdKey::new(ApplicationId(application), "order_1");
        assert_eq!(ids.find(&Db::of(&db), &of(7)).unwrap(), Some(1));
        assert_eq!(ids.find(&Db::of(&db), &of(8)).unwrap(), None);
    }
}
