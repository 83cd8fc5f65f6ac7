//! Group commit on PostgreSQL: what waits when a statement ends goes into the next one, as arrays.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Client, Pool};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::Instant;
use tokio_postgres::error::SqlState;

use super::{Fault, Told};
use crate::faults::{self, OnPurpose};
use crate::store::{Options, QUEUE_MAX, Result, StoreError, has_waited_too_long, waited_too_long};

/// Tries of one batch when the database says "again, please".
const TRIES_MAX: u32 = 5;
/// Members of one batch that are waited for, when others hold their rows.
const LOCKED_OUT_MAX: u32 = 2;
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// A little longer than the server gives a statement: a network that swallows answers, or a standby
/// that a commit waits for, must not hold a worker.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

/// One kind of call that can be made for many callers in one transaction.
///
/// `run` may be repeated after a cut connection, when nobody knows whether it committed: it must
/// answer the same the second time.
pub(super) trait Batch: Send + Sync + 'static {
    type Item: Send + Sync + 'static;
    type Answer: Send + 'static;

    fn run(
        db: &mut Client,
        items: &[Self::Item],
    ) -> impl Future<Output = Told<Vec<Self::Answer>>> + Send;
}

struct Call<B: Batch> {
    asked_at: Instant,
    item: B::Item,
    reply: oneshot::Sender<Result<B::Answer>>,
}

pub(super) struct Batched<B: Batch>(mpsc::Sender<Call<B>>);

impl<B: Batch> Batched<B> {
    pub(super) fn spawn(pool: &Pool, workers: usize, options: &Options) -> Self {
        let batch_max = options.batch_max;
        let (sender, waiting) = mpsc::channel::<Call<B>>(QUEUE_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..workers {
            let (pool, waiting, batch_size) =
                (pool.clone(), Arc::clone(&waiting), options.batch_size.clone());
            options.threads.spawn(async move {
                let (mut calls, mut held) = (Vec::with_capacity(batch_max), Held::default());
                while waiting.lock().await.recv_many(&mut calls, batch_max).await > 0 {
                    let late = calls.extract_if(.., |call| has_waited_too_long(call.asked_at));
                    late.for_each(|call| drop(call.reply.send(Err(waited_too_long()))));
                    if calls.is_empty() {
                        continue;
                    }
                    batch_size.record(calls.len() as f64);
                    let asked_at = calls[0].asked_at;
                    let (items, replies): (Vec<_>, Vec<_>) =
                        calls.drain(..).map(|call| (call.item, call.reply)).unzip();
                    let (pool, mut own) = (pool.clone(), held.take());
                    // In a task of its own: a panic costs this batch, not the worker.
                    let batch = tokio::spawn(async move {
                        answer_all::<B>(&pool, &mut own, asked_at, &items, replies).await;
                        own
                    });
                    held = batch.await.unwrap_or_default();
                }
            });
        }
        Self(sender)
    }

    pub(super) async fn run(&self, item: B::Item) -> Result<B::Answer> {
        let (reply, answer) = oneshot::channel();
        self.0
            .try_send(Call { asked_at: Instant::now(), item, reply })
            .map_err(|_| StoreError::Unavailable("too many calls are waiting".into()))?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the call was dropped".into())))
    }
}

/// One value of every member, as a parameter for `unnest`.
pub(super) fn column<'a, T, V>(items: &'a [T], value: impl Fn(&'a T) -> V) -> Vec<V> {
    items.iter().map(value).collect()
}

/// A worker's own connection, while it is good: one of the pool is asked for a sign of life first.
type Held = Option<Client>;

async fn answer_all<B: Batch>(
    pool: &Pool,
    held: &mut Held,
    asked_at: Instant,
    items: &[B::Item],
    replies: Vec<oneshot::Sender<Result<B::Answer>>>,
) {
    match run_until_told::<B>(pool, held, asked_at, items).await {
        Ok(answers) => {
            assert_eq!(answers.len(), items.len(), "a batch answers each of its members");
            for (reply, answer) in replies.into_iter().zip(answers) {
                let _ = reply.send(Ok(answer));
            }
        }
        // Statements are written not to fail on data, and locks are short. Should one do so, or somebody hold a row
        // all the same, only its own caller pays.
        Err(fault) if (fault.is_about_data() || fault.is_about_a_lock()) && items.len() > 1 => {
            let mut locked_out = 0;
            for (item, reply) in items.iter().zip(replies) {
                // Nobody was told that it happened, and it did not.
                if reply.is_closed() {
                    continue;
                }
                if locked_out == LOCKED_OUT_MAX || has_waited_too_long(asked_at) {
                    let _ = reply.send(Err(waited_too_long()));
                    continue;
                }
                let item = std::slice::from_ref(item);
                let alone = run_until_told::<B>(pool, held, asked_at, item).await;
                locked_out += u32::from(alone.as_ref().is_err_and(Fault::is_about_a_lock));
                let answer = alone.map(|mut answers| answers.remove(0)).map_err(StoreError::from);
                let _ = reply.send(answer);
            }
        }
        Err(fault) => {
            let fault = StoreError::from(fault);
            for reply in replies {
                let _ = reply.send(Err(fault.clone()));
            }
        }
    }
}

/// Again while the database says "again, please", but not with what has waited too long by then: readers of the
/// feed no longer reckon with its ids.
pub(super) async fn run_until_told<B: Batch>(
    pool: &Pool,
    held: &mut Held,
    asked_at: Instant,
    items: &[B::Item],
) -> Told<Vec<B::Answer>> {
    let mut tries = 1;
    loop {
        match run_once::<B>(pool, held, items).await {
            Err(fault)
                if fault.is_passing() && tries < TRIES_MAX && !has_waited_too_long(asked_at) =>
            {
                tokio::time::sleep(RETRY_PAUSE * tries).await;
                tries += 1;
            }
            told => return told,
        }
    }
}

async fn run_once<B: Batch>(
    pool: &Pool,
    held: &mut Held,
    items: &[B::Item],
) -> Told<Vec<B::Answer>> {
    let mut db = match held.take().filter(|db| !db.is_closed()) {
        Some(db) => db,
        None => pool.get().await?,
    };
    faults::pass("before a batch")?;
    let outcome = tokio::time::timeout(ANSWER_TIMEOUT, B::run(&mut db, items)).await;
    faults::pass("after a batch")?;
    match outcome {
        Ok(outcome) => {
            *held = Some(db);
            outcome
        }
        Err(_) => {
            // Whoever comes next must not wait for this one's answer.
            drop(Client::take(db));
            Err(StoreError::Unavailable("the database did not answer in time".into()).into())
        }
    }
}

impl From<OnPurpose> for Fault {
    fn from(fault: OnPurpose) -> Self {
        Self::Store(fault.into())
    }
}

impl Fault {
    /// Worth another try at once: a deadlock, a race, a serialisation failure, a connection that died.
    fn is_passing(&self) -> bool {
        match self {
            Self::Sql(fault) => {
                fault.is_closed()
                    || matches!(
                        fault.code(),
                        Some(
                            &SqlState::T_R_SERIALIZATION_FAILURE
                                | &SqlState::T_R_DEADLOCK_DETECTED
                                | &SqlState::ADMIN_SHUTDOWN
                                | &SqlState::CRASH_SHUTDOWN
                        )
                    )
            }
            Self::Raced => true,
            Self::Pool(_) | Self::Store(_) => false,
        }
    }

    /// Somebody holds a row and does not let go: a node that stands still in the middle of a transaction, say.
    fn is_about_a_lock(&self) -> bool {
        matches!(self, Self::Sql(fault) if fault.code() == Some(&SqlState::LOCK_NOT_AVAILABLE))
    }

    /// Of two rows with the same key the second was refused.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self, Self::Sql(fault) if fault.code() == Some(&SqlState::UNIQUE_VIOLATION))
    }

    /// Classes 22, 23 and 54: a value, a constraint or a size, not the state of the server.
    fn is_about_data(&self) -> bool {
        let Self::Sql(fault) = self else { return false };
        let class = fault.code().and_then(|code| code.code().get(..2));
        matches!(class, Some("22" | "23" | "54"))
    }
}
