//! All SQL: two engines behind one set of coarse methods, each one transaction.
//!
//! Writes of all callers are gathered and committed together (on PostgreSQL those of which there are many); a
//! caller is answered only after the commit is durable. Nothing above this room sees a transaction.

mod audit;
mod database;
mod directory;
mod due;
mod exceptions;
mod figures;
mod files;
mod finding;
mod inspect;
mod looking;
mod outbox;
mod paying;
mod people;
mod portable;
mod postgres;
mod queues;
mod reconciling;
mod records;
mod rekeying;
mod request_log;
mod settings;
mod sqlite;
mod visits;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use secrecy::ExposeSecret;
use tokio::time::Instant;

use crate::domain::{
    About, ApplicationId, AttemptId, CancelReason, Change, Dossier, Environment,
    ExternalTransactionId, NewOrder, Order, ReferenceNumber, Stamp, Standing, Step,
};
use crate::faults::OnPurpose;
use crate::threads::Threads;
pub use audit::{AuditEntry, AuditFilter, AuditSeal, change_text};
pub use database::{Database, ServiceLock};
pub use due::{Due, DueWork};
pub use exceptions::{ExceptionFilter, ExceptionRecord, Resolved};
pub use figures::Figures;
pub use inspect::{Inspection, Schema, inspect};
pub use looking::{
    Attention, DestinationLine, EventKind, EventLine, OrderFilter, OrderLine, Page, RecentDelivery,
    Scope,
};
pub use outbox::{
    Claimed, DeliveryAttempt, DeliveryRecord, EventFilter, EventRecord, EventState, Feed, FeedPage,
    LEASE_MS, LaneDue, LeaseToken, Recorded, Verdict, Want,
};
pub use paying::{NewAttempt, Receipt, Received, Reception, Started, Stepped, Unreceived};
pub use people::{InvitationKind, NewInvitation, NewSession, Person, PersonChange};
pub use records::{
    Application, Committed, Created, Directory, NewApplication, NewPartner, Partner, PartnerState,
    PendingEvent, PreviousWebhookSecret, Rotation, WebhookRotation,
};

pub use rekeying::{SealedIn, SealedRow};
pub use request_log::LoggedRequest;
pub use visits::CheckoutVisit;

use paying::read_attempt_id;
use portable::{Cells, Statement, values};
use records::{Inserted, ORDER_COLUMNS, order, read_reference};

/// Calls waiting for the engine; more are refused, so that overload is told instead of hoarded.
const QUEUE_MAX: usize = 8_192;
/// A call that has waited longer is not begun any more: whoever made it has given up, and readers of the feed
/// no longer reckon with the ids it brings.
const WAITED_MAX: Duration = Duration::from_secs(15);

fn has_waited_too_long(since: Instant) -> bool {
    since.elapsed() > WAITED_MAX
}

fn waited_too_long() -> StoreError {
    StoreError::Unavailable("the call waited too long".into())
}

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the caller takes this database for; `None` asks the database, and a new one is a sandbox.
    pub environment: Option<Environment>,
    /// Most writes gathered into one commit; 1 switches group commit off, for comparison.
    pub batch_max: usize,
    /// Whether a missing SQLite file is made, or refused as a probable mistake.
    pub create: bool,
    /// Tells how many writes each commit held.
    pub batch_size: metrics::Histogram,
    /// Where PostgreSQL's batches are gathered.
    pub threads: Threads,
}

impl Options {
    pub fn new(environment: Option<Environment>, batch_max: usize, create: bool) -> Self {
        let (batch_size, threads) = (metrics::Histogram::noop(), Threads::default());
        Self { environment, batch_max, create, batch_size, threads }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing is known to have happened; the same call again tells the truth.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The disk failed; nothing more is written until the process starts again and recovers.
    #[error("the disk failed: {0}")]
    Broken(String),
    /// A settings or deployment fault that a person must mend.
    #[error("{0}")]
    Refused(String),
    /// A row holds what no code of ours writes.
    #[error("the database holds an impossible value: {0}")]
    Corrupt(String),
    /// A unique name is taken.
    #[error("{0} exists already")]
    Taken(&'static str),
    #[error("{0} is not known")]
    Unknown(&'static str),
}

impl From<OnPurpose> for StoreError {
    fn from(fault: OnPurpose) -> Self {
        Self::Unavailable(fault.to_string())
    }
}

pub type Result<T> = std::result::Result<T, StoreError>;

pub struct Store {
    engine: Engine,
    environment: Environment,
}

enum Engine {
    Sqlite(sqlite::Sqlite),
    Postgres(postgres::Postgres),
}

/// The same method on whichever engine this store has.
macro_rules! engine {
    ($self:ident.$method:ident($($argument:expr),*)) => {{
        $crate::faults::pass(concat!("before ", stringify!($method)))?;
        let done = match &$self.engine {
            Engine::Sqlite(engine) => engine.$method($($argument),*).await,
            Engine::Postgres(engine) => {
                $crate::store::postgres::in_time(engine.$method($($argument),*)).await
            }
        };
        $crate::faults::pass(concat!("after ", stringify!($method)))?;
        done
    }};
}
use engine;

impl Store {
    /// Connects, checks that a commit is durable here, and brings the tables up to date.
    pub async fn open(database: &Database, options: Options) -> Result<Self> {
        let wanted = options.environment;
        let engine = match database {
            Database::Sqlite(path) => Engine::Sqlite(sqlite::Sqlite::open(path, &options)?),
            Database::Postgres(url) => {
                Engine::Postgres(postgres::Postgres::open(url.expose_secret(), &options).await?)
            }
        };
        let mut store = Self { engine, environment: wanted.unwrap_or(Environment::Sandbox) };
        let stored = store.setting_or_insert("environment", store.environment.as_str()).await?;
        store.environment =
            stored.parse().map_err(|_| StoreError::Corrupt(format!("environment {stored}")))?;
        if wanted.is_some_and(|wanted| wanted != store.environment) {
            return Err(StoreError::Refused(format!(
                "this database belongs to a {stored} service; the other environment needs its own"
            )));
        }
        if let Engine::Postgres(engine) = &store.engine {
            engine.check_durability(store.environment).await?;
        }
        Ok(store)
    }

    /// To be called after the last write, at a stop.
    pub async fn put_away(&self) -> Result<()> {
        match &self.engine {
            Engine::Sqlite(engine) => engine.put_away().await,
            Engine::Postgres(_) => Ok(()),
        }
    }

    pub fn environment(&self) -> Environment {
        self.environment
    }

    /// What time it is where the data is, if that is a server.
    pub async fn server_time(&self) -> Result<Option<Timestamp>> {
        if let Engine::Sqlite(_) = self.engine {
            return Ok(None);
        }
        let sql = format!("select {}", postgres::REAL_NOW_MS);
        self.select_one(Statement::new(sql, values![]), Cells::time).await
    }

    pub fn engine_name(&self) -> &'static str {
        match self.engine {
            Engine::Sqlite(_) => "sqlite",
            Engine::Postgres(_) => "postgres",
        }
    }

    /// Stores the order, or finds the one that already has its id.
    /// The order goes to the heap at once: what waits for it, in queues and in futures, stays small.
    pub fn create_order(
        &self,
        order: NewOrder,
    ) -> impl Future<Output = Result<Created>> + Send + '_ {
        let order = Arc::new(order);
        async move {
            Ok(match engine!(self.create_order(Arc::clone(&order)))? {
                Inserted::New => Created::New(Arc::unwrap_or_clone(order).into()),
                Inserted::Existing(order) => Created::Existing(order),
                Inserted::ReferenceTaken => Created::ReferenceTaken,
            })
        }
    }

    /// How the order with this id of a merchant stands.
    pub async fn standing(
        &self,
        application: ApplicationId,
        id: &ExternalTransactionId,
    ) -> Result<Option<Standing>> {
        engine!(self.standing(application, id))
    }

    pub async fn order_by_reference(&self, reference: &ReferenceNumber) -> Result<Option<Order>> {
        let sql = format!("select {ORDER_COLUMNS} from orders where reference_number = ?1");
        self.look_up(Statement::new(sql, values![reference.as_str()]), order).await
    }

    /// An order and all that was tried to pay it.
    pub async fn dossier(&self, reference: &ReferenceNumber) -> Result<Option<Dossier>> {
        engine!(self.dossier(reference))
    }

    /// Which order a notice is about, and which of its attempts.
    pub async fn order_of(
        &self,
        about: &About,
    ) -> Result<Option<(ReferenceNumber, Option<AttemptId>)>> {
        let (sql, values) = match about {
            About::Order(reference) => return Ok(Some((reference.clone(), None))),
            About::Attempt(id) => (
                "select reference_number, id from payment_attempts where id = ?1",
                values![id.as_str()],
            ),
            About::Reference(bank) => (
                "select a.reference_number, a.id from bank_references r
                 join payment_attempts a on a.id = r.attempt_id
                 where r.entity = ?1 and r.number = ?2",
                values![bank.entity(), bank.number()],
            ),
        };
        let read = |cells: &mut Cells| {
            Ok((read_reference(&cells.text()?)?, Some(read_attempt_id(&cells.text()?)?)))
        };
        self.look_up(Statement::new(sql, values), read).await
    }

    pub async fn attempt_by_code(&self, code: &str) -> Result<Option<AttemptId>> {
        let sql = "select id from payment_attempts where code = ?1
                   order by created_at_ms desc limit 1";
        let read = |cells: &mut Cells| read_attempt_id(&cells.text()?);
        self.look_up(Statement::new(sql, values![code]), read).await
    }

    /// Stores an attempt, and its bank reference if it has one, before its rail is called.
    pub async fn start_attempt(&self, attempt: NewAttempt) -> Result<Started> {
        engine!(self.start_attempt(attempt))
    }

    /// Moves an attempt on, if it still is where the step begins.
    pub async fn step(&self, step: Step) -> Result<Stepped> {
        engine!(self.step(step))
    }

    /// Takes the work due for an attempt, so that no other node does it until then.
    pub async fn claim_attempt(
        &self,
        id: &AttemptId,
        due_at: Timestamp,
        until: Timestamp,
    ) -> Result<bool> {
        let sql = "update payment_attempts set due_at_ms = ?3 where id = ?1 and due_at_ms = ?2";
        self.transact_one(sql, values![id.as_str(), due_at, until]).await
    }

    /// State, audit row, outbox row and instruments in one transaction, if the order is still
    /// pending and, for a cancellation, no money may be moving.
    pub async fn commit(&self, change: Change) -> Result<Committed> {
        engine!(self.commit(change))
    }

    /// A notice, once, and what it does, in one transaction.
    pub async fn receive(&self, receipt: Receipt) -> Result<Reception> {
        engine!(self.receive(receipt))
    }

    /// Notes a cancellation that must wait; `false` if there is nothing to wait for any more, or
    /// one waits already.
    pub async fn request_cancel(
        &self,
        reference: &ReferenceNumber,
        reason: CancelReason,
        stamp: Stamp,
    ) -> Result<bool> {
        engine!(self.request_cancel(reference, reason, stamp))
    }

    /// Looks at a pending order again at `until`; it is no longer offered from `closing_since` on. Nothing, if
    /// its deadline was moved since it was `seen`.
    pub async fn postpone(
        &self,
        reference: &ReferenceNumber,
        seen: Option<Timestamp>,
        until: Timestamp,
        closing_since: Option<Timestamp>,
    ) -> Result<()> {
        engine!(self.postpone(reference, seen, until, closing_since))
    }

    /// Looks at a withdrawal again at `to`, or never; if it was due at `due` and not for longer than
    /// `since`. Of two nodes one does it.
    pub async fn move_withdrawal(
        &self,
        id: &AttemptId,
        due: Timestamp,
        to: Option<Timestamp>,
        since: Timestamp,
    ) -> Result<bool> {
        let sql = "update withdrawals set due_at_ms = ?3
                   where attempt_id = ?1 and due_at_ms = ?2 and since_ms >= ?4";
        self.transact_one(sql, values![id.as_str(), due, to, since]).await
    }

    pub async fn forget_forecast(&self, id: i64) -> Result<()> {
        self.transact_one("delete from forecasts where id = ?1", values![id]).await.map(drop)
    }

    /// What a simulated rail was going to say about this attempt is not said.
    pub async fn forget_forecasts(&self, attempt: &AttemptId) -> Result<()> {
        let sql = "delete from forecasts where attempt_id = ?1";
        self.transact_one(sql, values![attempt.as_str()]).await.map(drop)
    }

    /// `false` if it is not known, or dealt with already.
    pub async fn resolve_exception(&self, id: i64, resolved: Resolved) -> Result<bool> {
        engine!(self.resolve_exception(id, resolved))
    }

    /// Answers when the database takes calls.
    pub async fn ping(&self) -> Result<()> {
        engine!(self.ping())
    }

    /// Resolves when this store can never commit again and the process should end.
    pub async fn broken(&self) {
        match &self.engine {
            Engine::Sqlite(engine) => engine.broken().await,
            // A lost server comes back: this engine is never beyond repair.
            Engine::Postgres(_) => std::future::pending().await,
        }
    }
}

/// Whole milliseconds in, a time out; out of range means somebody else wrote the row.
fn time(at_ms: i64) -> Result<Timestamp> {
    Timestamp::from_millisecond(at_ms).map_err(|_| StoreError::Corrupt(format!("time {at_ms}")))
}

fn as_limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
