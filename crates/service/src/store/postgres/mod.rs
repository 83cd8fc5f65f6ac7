//! PostgreSQL: the same tables, for many nodes.

mod batch;
mod connect;
mod deadlines;
mod dossiers;
mod exceptions;
mod inspect;
mod orders;
mod outbox;
mod paying;
mod portable;
mod receipts;
mod settling;
mod stepping;

use std::time::Duration;

use deadpool_postgres::{Client, GenericClient, Pool, PoolError};
use tokio::sync::Semaphore;
use tokio_postgres::Row;

use super::inspect::{latest_of, may_step, not_migrated};
use super::{Options, Result, StoreError};
use crate::domain::Environment;
use batch::Batched;
pub(super) use inspect::inspect_postgres;
pub(super) use orders::orders_with_id;

mod migrations {
    refinery::embed_migrations!("src/store/migrations/postgres");
}

/// Few writers make large batches: each commit then carries more orders.
const WRITERS: usize = 2;
const READERS: usize = 2;
/// Nobody waits for these.
const DEADLINE_WRITERS: usize = 1;
const STATEMENT_TIMEOUT_MS: u32 = 3_000;
/// Less than that: who is waited for is told from what is slow.
const LOCK_TIMEOUT_MS: u32 = 2_000;
/// The server's own time, by which leases run: the clocks of two nodes differ, and a sandbox moves its own.
pub(super) const REAL_NOW_MS: &str = "(extract(epoch from clock_timestamp()) * 1000)::bigint";
/// A step that waits for a table, of which a copy is being made perhaps, holds up everybody else who wants to read it.
const MIGRATION_LOCK_TIMEOUT_MS: u32 = 2_000;
/// For a whole call, whatever it waits for.
const CALL_TIMEOUT: Duration = Duration::from_secs(8);
/// Any number, the same on every node: whoever holds it migrates.
const MIGRATION_LOCK: i64 = 0x7376_635f_6d69_6772;

/// People who look get so many connections at once: their pages hold up no payment.
const LOOKERS: usize = 3;
/// So do partners who read their events.
const FEEDERS: usize = 2;

pub(super) struct Postgres {
    pool: Pool,
    lookers: Semaphore,
    feeders: Semaphore,
    creates: Batched<orders::CreateOrders>,
    settlements: Batched<settling::Settlements>,
    standings: Batched<orders::Standings>,
    dossiers: Batched<dossiers::Dossiers>,
    deadlines: Batched<deadlines::Deadlines>,
}

impl Postgres {
    pub(super) async fn open(url: &str, options: &Options) -> Result<Self> {
        let pool = connect::pool(url)?;
        let mut client = connect::first(&pool, url).await?;
        migrate(&mut client, options.create).await?;
        let noop = Options { batch_size: metrics::Histogram::noop(), ..options.clone() };
        Ok(Self {
            creates: Batched::spawn(&pool, WRITERS, options),
            settlements: Batched::spawn(&pool, WRITERS, options),
            standings: Batched::spawn(&pool, READERS, &noop),
            dossiers: Batched::spawn(&pool, READERS, &noop),
            deadlines: Batched::spawn(&pool, DEADLINE_WRITERS, options),
            pool,
            lookers: Semaphore::new(LOOKERS),
            feeders: Semaphore::new(FEEDERS),
        })
    }

    /// The durability guard: a server that acknowledges what it can lose is refused in production.
    pub(super) async fn check_durability(&self, environment: Environment) -> Result<()> {
        let db = self.client().await?;
        for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
            let row = db
                .query_one("select current_setting($1)", &[&setting])
                .await
                .map_err(Fault::from)?;
            if row.get::<_, &str>(0) != "off" {
                continue;
            }
            let told = format!(
                "PostgreSQL has {setting} off: a power cut would lose acknowledged orders; switch \
                 it on"
            );
            match environment {
                Environment::Production => return Err(StoreError::Refused(told)),
                Environment::Sandbox => tracing::warn!("{told}"),
            }
        }
        Ok(())
    }

    async fn client(&self) -> Result<Client> {
        self.pool.get().await.map_err(|fault| Fault::from(fault).into())
    }

    pub(super) async fn ping(&self) -> Result<()> {
        let db = self.client().await?;
        db.simple_query("select 1").await.map(drop).map_err(|fault| Fault::from(fault).into())
    }
}

/// A call ends, also when the network swallows the answer; its connection is tried before it is used
/// again.
pub(super) async fn in_time<T>(call: impl Future<Output = Result<T>>) -> Result<T> {
    let late = |_| Err(StoreError::Unavailable("the database did not answer in time".into()));
    tokio::time::timeout(CALL_TIMEOUT, call).await.unwrap_or_else(late)
}

/// Whatever can go wrong on the way to the database.
#[derive(Debug)]
enum Fault {
    Sql(tokio_postgres::Error),
    Pool(String),
    Store(StoreError),
    /// Another node stored first what this one was about to: it is seen at the next try.
    Raced,
}

impl From<tokio_postgres::Error> for Fault {
    fn from(fault: tokio_postgres::Error) -> Self {
        Self::Sql(fault)
    }
}

impl From<PoolError> for Fault {
    fn from(fault: PoolError) -> Self {
        Self::Pool(reason(&fault))
    }
}

impl From<StoreError> for Fault {
    fn from(fault: StoreError) -> Self {
        Self::Store(fault)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Sql(fault) => Self::Unavailable(chain(&fault)),
            Fault::Pool(reason) => Self::Unavailable(reason),
            Fault::Store(fault) => fault,
            Fault::Raced => Self::Unavailable("other nodes were quicker each time".into()),
        }
    }
}

fn reason(fault: &PoolError) -> String {
    match fault {
        PoolError::Backend(fault) => chain(fault),
        other => other.to_string(),
    }
}

/// The driver keeps the interesting part ("password authentication failed") in the cause. What the
/// server adds as detail may quote a row, which is nothing for a log.
fn chain(fault: &tokio_postgres::Error) -> String {
    if let Some(told) = fault.as_db_error() {
        return format!("{} ({})", told.message(), told.code().code());
    }
    match std::error::Error::source(fault) {
        Some(cause) => format!("{fault}: {cause}"),
        None => fault.to_string(),
    }
}

/// What a call says, before it is told outside.
type Told<T> = std::result::Result<T, Fault>;

/// What goes into a statement.
type Param<'a> = dyn tokio_postgres::types::ToSql + Sync + 'a;

async fn one(db: &impl GenericClient, sql: &str, given: &[&Param<'_>]) -> Told<Option<Row>> {
    Ok(db.query_opt(&db.prepare_cached(sql).await?, given).await?)
}

async fn many(db: &impl GenericClient, sql: &str, given: &[&Param<'_>]) -> Told<Vec<Row>> {
    Ok(db.query(&db.prepare_cached(sql).await?, given).await?)
}

async fn change(db: &impl GenericClient, sql: &str, given: &[&Param<'_>]) -> Told<u64> {
    Ok(db.execute(&db.prepare_cached(sql).await?, given).await?)
}

/// Nodes may start together: one migrates, the others wait and find the work done.
async fn migrate(client: &mut Client, create: bool) -> Result<()> {
    client
        .batch_execute(&format!(
            "set statement_timeout = 0; set lock_timeout = 0; select pg_advisory_lock({MIGRATION_LOCK});
             set lock_timeout = {MIGRATION_LOCK_TIMEOUT_MS}"
        ))
        .await
        .map_err(Fault::from)?;
    let outcome = match may_migrate(client, create).await {
        Ok(false) => Ok(()),
        Ok(true) => migrations::migrations::runner()
            .run_async(&mut ***client)
            .await
            .map(drop)
            .map_err(|fault| not_migrated(&cause(&fault))),
        Err(refused) => Err(refused),
    };
    client
        .batch_execute(&format!(
            "select pg_advisory_unlock({MIGRATION_LOCK}); set lock_timeout = {LOCK_TIMEOUT_MS};
             set statement_timeout = {STATEMENT_TIMEOUT_MS}"
        ))
        .await
        .map_err(Fault::from)?;
    outcome
}

async fn may_migrate(db: &Client, create: bool) -> Result<bool> {
    let schema = inspect::schema(db).await?;
    if schema.is_none() {
        inspect::refuse_strangers(db).await?;
        if !create {
            return Err(inspect::missing(db).await?);
        }
    }
    may_step(schema, schema_latest())
}

/// What the server said, where it said something.
fn cause(fault: &refinery::Error) -> String {
    let server = std::error::Error::source(fault).and_then(|cause| cause.downcast_ref());
    server.map_or_else(|| fault.to_string(), chain)
}

fn schema_latest() -> i64 {
    latest_of(&migrations::migrations::runner())
}
