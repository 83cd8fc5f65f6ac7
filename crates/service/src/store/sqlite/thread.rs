//! Threads that own SQLite connections: one writer that commits in groups, and some that read beside it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::statements::{Db, execute};
use super::{OrderIds, error};
use crate::faults;
use crate::store::{Options, QUEUE_MAX, Result, StoreError, has_waited_too_long, waited_too_long};

/// Of SQLite's machine: a question of so many takes seconds.
const STEPS_OF_A_LOOK: std::ffi::c_int = 100_000;
const LOOKS_MAX: u32 = 500;

/// The way to a thread: hand in a closure, get its result.
#[derive(Clone)]
pub(super) struct Calls(mpsc::Sender<Box<dyn Member>>);

/// One caller's part of a batch.
trait Member: Send {
    fn asked_at(&self) -> Instant;
    /// Whether its caller is still there.
    fn is_awaited(&self) -> bool;
    /// Whether a failure may leave something behind: one statement undoes itself when it fails.
    fn is_compound(&self) -> bool;
    /// Does the work, anew if its batch has to be repeated; an error is kept for the caller.
    fn run(&mut self, db: &Db<'_>) -> Result<()>;
    /// Whether the work was done and failed.
    fn has_failed(&self) -> bool;
    /// Tells the caller, once the fate of the batch is known.
    fn answer(self: Box<Self>, batch: &Result<()>);
}

struct Call<W, T> {
    asked_at: Instant,
    /// More than one statement, which must be taken back together.
    compound: bool,
    work: W,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<W, T> Member for Call<W, T>
where
    W: FnMut(&Db<'_>) -> Result<T> + Send,
    T: Send,
{
    fn asked_at(&self) -> Instant {
        self.asked_at
    }

    fn is_awaited(&self) -> bool {
        !self.reply.is_closed()
    }

    fn is_compound(&self) -> bool {
        self.compound
    }

    fn run(&mut self, db: &Db<'_>) -> Result<()> {
        let result = (self.work)(db);
        let outcome = result.as_ref().map(drop).map_err(Clone::clone);
        self.result = Some(result);
        outcome
    }

    fn has_failed(&self) -> bool {
        matches!(self.result, Some(Err(_)))
    }

    fn answer(self: Box<Self>, batch: &Result<()>) {
        let Self { work, result, reply, .. } = *self;
        // What the work held belongs to the caller alone again.
        drop(work);
        let result = match (batch, result) {
            (Ok(()), Some(result)) | (Err(_), Some(result @ Err(_))) => result,
            (Err(fault), _) => Err(fault.clone()),
            (Ok(()), None) => Err(StoreError::Unavailable("the batch ended early".into())),
        };
        // A caller that went away (its connection was cut) still had its work done.
        let _ = reply.send(result);
    }
}

impl Calls {
    /// Runs `work`, which changes rows with one statement at most, and answers when it is durable.
    pub(super) async fn run<T, W>(&self, work: W) -> Result<T>
    where
        W: FnMut(&Db<'_>) -> Result<T> + Send + 'static,
        T: Send + 'static,
    {
        self.call(false, work).await
    }

    /// As `run`, for work of several statements that stand or fall together.
    pub(super) async fn run_compound<T, W>(&self, work: W) -> Result<T>
    where
        W: FnMut(&Db<'_>) -> Result<T> + Send + 'static,
        T: Send + 'static,
    {
        self.call(true, work).await
    }

    async fn call<T, W>(&self, compound: bool, work: W) -> Result<T>
    where
        W: FnMut(&Db<'_>) -> Result<T> + Send + 'static,
        T: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let call = Call { asked_at: Instant::now(), compound, work, result: None, reply };
        self.0.try_send(Box::new(call)).map_err(|fault| {
            StoreError::Unavailable(match fault {
                mpsc::error::TrySendError::Full(_) => "too many calls are waiting".into(),
                mpsc::error::TrySendError::Closed(_) => "the database thread has ended".into(),
            })
        })?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the call was dropped".into())))
    }

    /// Resolves when the thread has ended.
    pub(super) async fn ended(&self) {
        self.0.closed().await;
    }
}

/// Group commit: whatever waits when a commit ends goes into the next one.
pub(super) fn spawn_writer(
    db: Connection,
    ids: Arc<OrderIds>,
    place: Place,
    under_way: UnderWay,
    options: &Options,
) -> Calls {
    let (batch_max, batch_size) = (options.batch_max, options.batch_size.clone());
    let (sender, mut waiting) = mpsc::channel::<Box<dyn Member>>(QUEUE_MAX);
    let body = move || {
        let db = Db::keeping(&db);
        let mut batch = Vec::with_capacity(batch_max);
        while waiting.blocking_recv_many(&mut batch, batch_max) > 0 {
            let late = batch.extract_if(.., |member| has_waited_too_long(member.asked_at()));
            late.for_each(|member| member.answer(&Err(waited_too_long())));
            if batch.is_empty() {
                continue;
            }
            batch_size.record(batch.len() as f64);
            under_way.begin();
            let outcome = place.is_ours().and_then(|()| commit_together(&db, &ids, &mut batch));
            under_way.end();
            let fatal = matches!(&outcome, Err(StoreError::Broken(_)));
            batch.drain(..).for_each(|member| member.answer(&outcome));
            if fatal {
                // A failed fsync leaves the file in a state nobody knows: never try again and
                // acknowledge. The process ends and recovers from the log on its next start.
                tracing::error!(?outcome, "no more writes to this database");
                return;
            }
        }
    };
    start_thread("svc-store-writer", body);
    Calls(sender)
}

/// The batch that is being written, and seen by nobody yet: a disk may take its time.
#[derive(Clone, Default)]
pub(super) struct UnderWay(Arc<Mutex<Option<Instant>>>);

impl UnderWay {
    fn begin(&self) {
        *self.since() = Some(Instant::now());
    }

    fn end(&self) {
        *self.since() = None;
    }

    pub(super) fn lasts(&self) -> Duration {
        self.since().map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the file was when it was opened. Whoever puts another in its place does not stop us from writing to
/// the old one, which nobody would find again.
#[derive(Clone)]
pub(super) struct Place(Option<(PathBuf, u64, u64)>);

impl Place {
    pub(super) fn of(db: &Connection) -> Self {
        let path = db.path().filter(|path| !path.is_empty()).map(PathBuf::from);
        Self(path.and_then(|path| identity(&path).map(|(device, file)| (path, device, file))))
    }

    pub(super) fn is_ours(&self) -> Result<()> {
        match &self.0 {
            Some((path, device, file)) if identity(path) != Some((*device, *file)) => {
                let told = "is not the file that was opened: it was replaced, moved or removed";
                Err(StoreError::Broken(format!("{} {told}", path.display())))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<(u64, u64)> {
    None
}

/// Sees the last commit and never waits for the writer.
pub(super) fn spawn_reader(db: Connection) -> Calls {
    spawn_reading(db, |_| Ok(()))
}

/// As a reader, for questions of any size. One that reads too much is given up: while it reads, the log
/// cannot be copied back and grows.
pub(super) fn spawn_looker(db: Connection) -> Calls {
    spawn_reading(db, |db| {
        let mut looks = 0;
        let too_many = move || {
            looks += 1;
            looks > LOOKS_MAX
        };
        db.progress_handler(STEPS_OF_A_LOOK, Some(too_many)).map_err(|fault| error(&fault))
    })
}

fn spawn_reading(
    mut db: Connection,
    before_each: impl Fn(&mut Connection) -> Result<()> + Send + 'static,
) -> Calls {
    let (sender, mut waiting) = mpsc::channel::<Box<dyn Member>>(QUEUE_MAX);
    let body = move || {
        while let Some(mut member) = waiting.blocking_recv() {
            // Whoever gave up waiting is not read for: those behind would give up too.
            if !member.is_awaited() {
                continue;
            }
            let ready = before_each(&mut db);
            // Its caller is told the result; there is nothing to undo.
            let _ = ready.as_ref().map(|()| member.run(&Db::of(&db)));
            member.answer(&ready);
        }
    };
    start_thread("svc-store-reader", body);
    Calls(sender)
}

fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(body)
        .expect("the system gives the process its few threads at start");
}

/// One transaction for all members. If one leaves half of its work behind, all is taken back and
/// done again without it: rare, and cheaper than a savepoint around every member, which would copy
/// each page before it is changed.
fn commit_together(db: &Db<'_>, ids: &OrderIds, batch: &mut [Box<dyn Member>]) -> Result<()> {
    loop {
        let outcome = try_together(db, ids, batch);
        if let Ok(true) = outcome {
            return Ok(());
        }
        ids.rolled_back();
        match outcome {
            Ok(_) => step(db, "rollback")?,
            Err(fault) => {
                if !db.is_autocommit() {
                    // Best effort: a connection that cannot roll back fails every later batch.
                    let _ = step(db, "rollback");
                }
                return Err(fault);
            }
        }
    }
}

/// Whether it was committed; if not, one more member has failed and the others stand to be repeated.
fn try_together(db: &Db<'_>, ids: &OrderIds, batch: &mut [Box<dyn Member>]) -> Result<bool> {
    // What is to be learnt after a start is much, and not for others to wait for.
    ids.catch_up(db)?;
    step(db, "begin immediate")?;
    ids.begun(db)?;
    for member in batch {
        if member.is_compound() && member.has_failed() {
            continue;
        }
        match member.run(db) {
            // SQLite gave up the whole transaction over it (disk full, I/O error): nobody's work
            // is there, and going on would commit one by one.
            Err(fault) if db.is_autocommit() || matches!(fault, StoreError::Broken(_)) => {
                return Err(fault);
            }
            Err(_) if member.is_compound() => return Ok(false),
            Err(_) | Ok(()) => {}
        }
    }
    ids.put_away(db)?;
    faults::pass("before the commit")?;
    step(db, "commit")?;
    ids.committed();
    faults::pass("after the commit")?;
    Ok(true)
}

fn step(db: &Db<'_>, sql: &'static str) -> Result<()> {
    execute(db, sql, []).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer() -> (Calls, UnderWay) {
        let mut db = Connection::open_in_memory().unwrap();
        super::super::migrate(&mut db).unwrap();
        let ids = Arc::new(OrderIds::open(&Db::of(&db), 1).unwrap());
        let (place, under_way) = (Place::of(&db), UnderWay::default());
        let options = Options::new(None, 10, true);
        (spawn_writer(db, ids, place, under_way.clone(), &options), under_way)
    }

    #[tokio::test]
    async fn a_batch_is_under_way_until_its_callers_are_told() {
        let (calls, under_way) = writer();
        assert_eq!(under_way.lasts(), Duration::ZERO);
        let (begun, has_begun) = oneshot::channel();
        let (go_on, to_go_on) = std::sync::mpsc::channel::<()>();
        let mut begun = Some(begun);
        let slow = calls.run(move |_| {
            let _ = begun.take().unwrap().send(());
            let _ = to_go_on.recv();
            Ok(())
        });
        let looked = async {
            has_begun.await.unwrap();
            assert!(under_way.lasts() > Duration::ZERO);
            go_on.send(()).unwrap();
        };
        let (done, ()) = tokio::join!(slow, looked);
        done.unwrap();
        assert_eq!(under_way.lasts(), Duration::ZERO);
    }

    #[tokio::test]
    async fn nothing_is_read_for_whoever_has_left() {
        let calls = spawn_reader(Connection::open_in_memory().unwrap());
        let left = Call {
            asked_at: Instant::now(),
            compound: false,
            work: |_: &Db<'_>| -> Result<()> { panic!("it is read after all") },
            result: None,
            reply: oneshot::channel().0,
        };
        calls.0.try_send(Box::new(left)).map_err(|_| "full").unwrap();
        calls.run(|_| Ok(())).await.unwrap();
    }

    #[tokio::test]
    async fn a_call_that_waited_too_long_is_not_begun() {
        let (calls, _) = writer();
        let (reply, answer) = oneshot::channel();
        let late = Call {
            asked_at: Instant::now() - 2 * crate::store::WAITED_MAX,
            compound: false,
            work: |_: &Db<'_>| -> Result<()> { panic!("it is done after all") },
            result: None,
            reply,
        };
        calls.0.try_send(Box::new(late)).map_err(|_| "full").unwrap();
        let told = answer.await.unwrap().unwrap_err();
        assert!(told.to_string().contains("waited too long"), "{told}");
        calls.run(|_| Ok(())).await.unwrap();
    }

    #[tokio::test]
    async fn a_question_without_end_is_given_up_and_the_next_is_answered() {
        let looker = spawn_looker(Connection::open_in_memory().unwrap());
        let ask = |sql: &'static str| {
            looker.run(move |db| {
                db.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(|fault| error(&fault))
            })
        };
        let endless = "with recursive n (i) as (select 1 union all select i + 1 from n)
                       select count(*) from n";
        let told = ask(endless).await.unwrap_err();
        assert!(told.to_string().contains("reads too much"), "{told}");
        assert_eq!(ask("select 7").await.unwrap(), 7);
    }
}
