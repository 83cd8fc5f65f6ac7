//! Threads that own SQLite connections: one writer that commits in groups, and readers beside it.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::error;
use crate::store::{Result, StoreError};

/// Calls waiting for a thread; more are refused, so that overload is told instead of hoarded.
const QUEUE_MAX: usize = 8_192;
/// Reads taken at once by one reader.
const READS_MAX: usize = 64;

/// The way to a thread: hand in a closure, get its result.
#[derive(Clone)]
pub(super) struct Calls(mpsc::Sender<Box<dyn Member>>);

/// One caller's part of a batch.
trait Member: Send {
    /// Does the work; `false` asks for what it did to be undone.
    fn run(&mut self, db: &Connection) -> bool;
    /// Tells the caller, once the fate of the batch is known.
    fn answer(self: Box<Self>, batch: &Result<()>);
}

struct Call<W, T> {
    work: Option<W>,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<W, T> Member for Call<W, T>
where
    W: FnOnce(&Connection) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, db: &Connection) -> bool {
        let work = self.work.take().expect("a member runs once");
        let result = work(db);
        let fine = result.is_ok();
        self.result = Some(result);
        fine
    }

    fn answer(self: Box<Self>, batch: &Result<()>) {
        let result = match (batch, self.result) {
            (Err(fault), _) => Err(fault.clone()),
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(StoreError::Unavailable("the batch ended early".into())),
        };
        // A caller that went away (its connection was cut) still had its work done.
        let _ = self.reply.send(result);
    }
}

impl Calls {
    /// Runs `work` on the thread and answers when its effect is durable.
    pub(super) async fn run<T, W>(&self, work: W) -> Result<T>
    where
        W: FnOnce(&Connection) -> Result<T> + Send + 'static,
        T: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let call = Call { work: Some(work), result: None, reply };
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
    mut db: Connection,
    batch_max: usize,
    batch_size: metrics::Histogram,
) -> Calls {
    let (sender, mut waiting) = mpsc::channel::<Box<dyn Member>>(QUEUE_MAX);
    let body = move || {
        let mut batch = Vec::with_capacity(batch_max);
        while waiting.blocking_recv_many(&mut batch, batch_max) > 0 {
            batch_size.record(batch.len() as f64);
            let outcome = commit_together(&mut db, &mut batch);
            let fatal = matches!(&outcome, Err(Fault::Fatal(_)));
            let outcome = outcome.map_err(Fault::into_inner);
            batch.drain(..).for_each(|member| member.answer(&outcome));
            if fatal {
                // A failed fsync leaves the file in a state nobody knows: never try again and
                // acknowledge. The process ends and recovers from the log on its next start.
                tracing::error!("the database could not be synced to disk; no more writes");
                return;
            }
        }
    };
    start_thread("svc-store-writer", body);
    Calls(sender)
}

/// Readers see the last commit and never wait for the writer.
pub(super) fn spawn_readers(connections: Vec<Connection>) -> Calls {
    let (sender, waiting) = mpsc::channel::<Box<dyn Member>>(QUEUE_MAX);
    let waiting = Arc::new(Mutex::new(waiting));
    for db in connections {
        let waiting = Arc::clone(&waiting);
        let body = move || {
            let mut batch = Vec::with_capacity(READS_MAX);
            loop {
                let taken = waiting
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .blocking_recv_many(&mut batch, READS_MAX);
                if taken == 0 {
                    return;
                }
                for mut member in batch.drain(..) {
                    member.run(&db);
                    member.answer(&Ok(()));
                }
            }
        };
        start_thread("svc-store-reader", body);
    }
    Calls(sender)
}

fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(body)
        .expect("the system gives the process its few threads at start");
}

enum Fault {
    /// This batch failed; the next may go well (disk full, another process holding the lock).
    Passing(StoreError),
    Fatal(StoreError),
}

impl Fault {
    fn of(fault: &rusqlite::Error) -> Self {
        let io = fault.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure);
        if io { Self::Fatal(error(fault)) } else { Self::Passing(error(fault)) }
    }

    fn into_inner(self) -> StoreError {
        match self {
            Self::Passing(fault) | Self::Fatal(fault) => fault,
        }
    }
}

/// One transaction for all members; each has a savepoint, so that a bad one takes back only its own.
fn commit_together(
    db: &mut Connection,
    batch: &mut [Box<dyn Member>],
) -> std::result::Result<(), Fault> {
    let outcome = (|| {
        step(db, "begin immediate")?;
        for member in batch {
            step(db, "savepoint member")?;
            if !member.run(db) && !db.is_autocommit() {
                step(db, "rollback to member")?;
            }
            step(db, "release member")?;
        }
        step(db, "commit")
    })();
    if outcome.is_err() && !db.is_autocommit() {
        // Best effort: a connection that cannot roll back answers every later batch with an error.
        let _ = step(db, "rollback");
    }
    outcome.map_err(|fault| Fault::of(&fault))
}

fn step(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute([]).map(drop)
}
