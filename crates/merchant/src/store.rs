//! The shop's own table `orders` (spec 2.4), its stock, and what is left to fulfil. SQLite, one lock.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::Serialize;
use svc_client::PaymentStatus;
use tokio::sync::broadcast;

use crate::catalogue::Product;
use crate::report::Report;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the shop's database failed: {0}")]
    Sql(#[from] rusqlite::Error),
    #[error("the shop's database cannot be made: {0}")]
    File(#[from] std::io::Error),
    #[error("{0} is sold out")]
    SoldOut(String),
}

type Result<T> = std::result::Result<T, StoreError>;

pub struct Store {
    db: Mutex<Connection>,
    /// For it.
    waiting: AtomicUsize,
    /// Which order changed, told after the commit.
    changes: broadcast::Sender<Arc<str>>,
}

/// An order as the shop keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MerchantOrder {
    pub external_transaction_id: String,
    pub status: PaymentStatus,
    pub reference_number: Option<String>,
    pub amount: i64,
    /// Why nothing is sent although it is paid.
    pub held: Option<String>,
    pub fulfilled: bool,
}

impl MerchantOrder {
    /// Nothing more will happen by itself.
    pub fn is_over(&self) -> bool {
        self.status == PaymentStatus::Cancelled || self.held.is_some() || self.fulfilled
    }
}

/// One thing that happened to an order, for its page.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub(crate) struct Happening {
    pub at_ms: i64,
    pub what: String,
    pub detail: String,
}

/// What a report of the service did (spec 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    Confirmed,
    /// Confirmed, but in something it is not what was asked for.
    Held(String),
    Cancelled,
    /// The same again, or after the end: nothing is done twice.
    Unchanged,
    /// Not an order of this shop.
    Unknown,
}

/// Whoever writes from outside for longer makes webhooks come again: 503, well within their 5 s.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);
/// Changes that a slow listener may be behind; then it looks for itself.
const CHANGES_MAX: usize = 256;
const PAGE_ROWS: i64 = 100;

const SCHEMA: &str = "
    create table if not exists stock (
        product text not null primary key,
        free integer not null check (free >= 0)
    ) strict;
    create table if not exists orders (
        external_transaction_id text not null primary key,
        status text not null check (status in ('PEN', 'CON', 'CAN')),
        reference_number text,
        amount integer not null,
        -- Paid, but not as asked for: a person looks before anything is sent.
        held text,
        fulfilled_at_ms integer,
        created_at_ms integer not null
    ) strict;
    create index if not exists orders_pending on orders (created_at_ms) where status = 'PEN';
    -- What an order took from the stock; given back when it is cancelled.
    create table if not exists items (
        external_transaction_id text not null,
        product text not null,
        quantity integer not null,
        primary key (external_transaction_id, product)
    ) strict;
    -- Paid orders that are not sent yet. A row goes in with the confirmation and goes when it is done,
    -- so that an end of the process in between loses nothing.
    create table if not exists to_fulfil (
        external_transaction_id text not null primary key
    ) strict;
    create table if not exists story (
        id integer primary key,
        external_transaction_id text not null,
        at_ms integer not null,
        what text not null,
        detail text not null
    ) strict;
    create index if not exists story_of on story (external_transaction_id);";

impl Store {
    pub(crate) fn open(path: &Path, products: &[Product]) -> Result<Self> {
        make_private(path)?;
        let db = Connection::open(path)?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        db.pragma_update(None, "journal_mode", "wal")?;
        db.pragma_update(None, "synchronous", "full")?;
        db.execute_batch(SCHEMA)?;
        for product in products {
            db.execute(
                "insert into stock (product, free) values (?1, ?2) on conflict do nothing",
                params![product.id, product.stock],
            )?;
        }
        let changes = broadcast::channel(CHANGES_MAX).0;
        Ok(Self { db: Mutex::new(db), waiting: AtomicUsize::new(0), changes })
    }

    /// Which orders change from now on.
    pub(crate) fn changes(&self) -> broadcast::Receiver<Arc<str>> {
        self.changes.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let db = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        db
    }

    /// All of it or nothing; whoever follows the order hears of it once it is committed.
    fn change<T>(&self, id: &str, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let mut db = self.lock();
        let result = commit(&mut db, work);
        // Once one has waited in vain, those behind it do not wait as well: each has its own five seconds.
        let busy = matches!(&result, Err(StoreError::Sql(fault)) if is_busy(fault));
        let in_vain = busy && self.waiting.load(Ordering::Relaxed) > 0;
        db.busy_timeout(if in_vain { Duration::ZERO } else { BUSY_TIMEOUT })?;
        drop(db);
        let result = result?;
        // Nobody listens: that is no fault.
        let _ = self.changes.send(id.into());
        Ok(result)
    }

    fn look<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        work(&self.lock().transaction()?)
    }

    /// The order and what it takes from the stock, before anybody else is asked (spec 4.6 A 2).
    pub(crate) fn insert(
        &self,
        id: &str,
        amount: i64,
        items: &[(&str, i64)],
        at_ms: i64,
    ) -> Result<()> {
        self.change(id, |db| {
            for (product, quantity) in items {
                let taken = db.execute(
                    "update stock set free = free - ?2 where product = ?1 and free >= ?2",
                    params![product, quantity],
                )?;
                if taken == 0 {
                    return Err(StoreError::SoldOut((*product).to_owned()));
                }
                db.execute(
                    "insert into items (external_transaction_id, product, quantity)
                     values (?1, ?2, ?3)",
                    params![id, product, quantity],
                )?;
            }
            db.execute(
                "insert into orders (external_transaction_id, status, amount, created_at_ms)
                 values (?1, 'PEN', ?2, ?3)",
                params![id, amount, at_ms],
            )?;
            tell(db, id, at_ms, "created", &format!("{amount} Kz"))
        })
    }

    pub(crate) fn set_reference(&self, id: &str, reference: &str, at_ms: i64) -> Result<()> {
        self.change(id, |db| {
            db.execute(
                "update orders set reference_number = ?2 where external_transaction_id = ?1",
                params![id, reference],
            )?;
            tell(db, id, at_ms, "reference", reference)
        })
    }

    /// The service did not take the order: nothing stays reserved for it.
    pub(crate) fn give_up(&self, id: &str, why: &str, at_ms: i64) -> Result<()> {
        self.change(id, |db| {
            if end(db, id, PaymentStatus::Cancelled)? {
                release(db, id)?;
                tell(db, id, at_ms, "failed", why)?;
            }
            Ok(())
        })
    }

    /// The table of spec 3, in one transaction.
    pub(crate) fn apply(&self, report: &Report<'_>, at_ms: i64) -> Result<Applied> {
        let id = report.external_transaction_id;
        self.change(id, |db| {
            let Some(order) = read(db, id)? else { return Ok(Applied::Unknown) };
            if order.status != PaymentStatus::Pending || report.status == PaymentStatus::Pending {
                tell(db, id, at_ms, report.by, report.status.code())?;
                return Ok(Applied::Unchanged);
            }
            end(db, id, report.status)?;
            tell(db, id, at_ms, report.by, report.status.code())?;
            if report.status == PaymentStatus::Cancelled {
                release(db, id)?;
                return Ok(Applied::Cancelled);
            }
            if let Some(why) = difference(&order, report) {
                let sql = "update orders set held = ?2 where external_transaction_id = ?1";
                db.execute(sql, params![id, why])?;
                tell(db, id, at_ms, "held", &why)?;
                return Ok(Applied::Held(why));
            }
            db.execute("insert into to_fulfil (external_transaction_id) values (?1)", [id])?;
            Ok(Applied::Confirmed)
        })
    }

    /// Orders that are paid and not sent.
    pub(crate) fn to_fulfil(&self) -> Result<Vec<String>> {
        self.look(|db| {
            let mut statement = db
                .prepare("select external_transaction_id from to_fulfil order by rowid limit ?1")?;
            let found = statement.query_map([PAGE_ROWS], |row| row.get(0))?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Sent, once: the note that it is to be sent goes with it.
    pub(crate) fn fulfilled(&self, id: &str, at_ms: i64) -> Result<()> {
        self.change(id, |db| {
            let first = db.execute(
                "update orders set fulfilled_at_ms = ?2
                 where external_transaction_id = ?1 and fulfilled_at_ms is null",
                params![id, at_ms],
            )?;
            db.execute("delete from to_fulfil where external_transaction_id = ?1", [id])?;
            if first == 1 {
                tell(db, id, at_ms, "fulfilled", "")?;
            }
            Ok(())
        })
    }

    /// Orders from before then that nobody reported the end of, after one of them.
    pub(crate) fn pending(
        &self,
        created_before_ms: i64,
        after: &(i64, String),
    ) -> Result<Vec<(i64, String)>> {
        self.look(|db| {
            let mut statement = db.prepare(
                "select created_at_ms, external_transaction_id from orders
                 where status = 'PEN' and created_at_ms < ?1
                 and (created_at_ms, external_transaction_id) > (?2, ?3)
                 order by created_at_ms, external_transaction_id limit ?4",
            )?;
            let found = statement
                .query_map(params![created_before_ms, after.0, after.1, PAGE_ROWS], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            Ok(found.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub fn order(&self, id: &str) -> Result<Option<MerchantOrder>> {
        self.look(|db| read(db, id))
    }

    /// An order and what happened to it, of one moment.
    pub(crate) fn story(&self, id: &str) -> Result<Option<(MerchantOrder, Vec<Happening>)>> {
        self.look(|db| {
            let Some(order) = read(db, id)? else { return Ok(None) };
            let mut statement = db.prepare(
                "select at_ms, what, detail from story where external_transaction_id = ?1 order by id",
            )?;
            let found = statement.query_map([id], |row| {
                Ok(Happening { at_ms: row.get(0)?, what: row.get(1)?, detail: row.get(2)? })
            })?;
            Ok(Some((order, found.collect::<rusqlite::Result<_>>()?)))
        })
    }

    pub fn free_stock(&self, product: &str) -> Result<i64> {
        self.look(|db| {
            let sql = "select free from stock where product = ?1";
            Ok(db.query_row(sql, [product], |row| row.get(0)).optional()?.unwrap_or(0))
        })
    }
}

/// Nobody else on the machine reads what payers bought; the files beside it get the mode of this one.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn commit<T>(db: &mut Connection, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
    // A writer from the start: one that reads first can be refused halfway.
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let result = work(&transaction)?;
    transaction.commit()?;
    Ok(result)
}

fn is_busy(fault: &rusqlite::Error) -> bool {
    fault.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

fn read(db: &Transaction<'_>, id: &str) -> Result<Option<MerchantOrder>> {
    let sql = "select status, reference_number, amount, held, fulfilled_at_ms from orders
               where external_transaction_id = ?1";
    let found = db
        .query_row(sql, [id], |row| {
            let status: String = row.get(0)?;
            Ok(MerchantOrder {
                external_transaction_id: id.to_owned(),
                status: PaymentStatus::from_code(&status).unwrap_or(PaymentStatus::Pending),
                reference_number: row.get(1)?,
                amount: row.get(2)?,
                held: row.get(3)?,
                fulfilled: row.get::<_, Option<i64>>(4)?.is_some(),
            })
        })
        .optional()?;
    Ok(found)
}

/// `CON` and `CAN` are final: only a pending order ends, and once.
fn end(db: &Transaction<'_>, id: &str, status: PaymentStatus) -> Result<bool> {
    let sql = "update orders set status = ?2 where external_transaction_id = ?1 and status = 'PEN'";
    Ok(db.execute(sql, params![id, status.code()])? == 1)
}

fn release(db: &Transaction<'_>, id: &str) -> Result<()> {
    db.execute(
        "update stock set free = free + (select quantity from items
             where items.product = stock.product and external_transaction_id = ?1)
         where product in (select product from items where external_transaction_id = ?1)",
        [id],
    )?;
    db.execute("delete from items where external_transaction_id = ?1", [id])?;
    Ok(())
}

fn tell(db: &Transaction<'_>, id: &str, at_ms: i64, what: &str, detail: &str) -> Result<()> {
    let sql = "insert into story (external_transaction_id, at_ms, what, detail)
               values (?1, ?2, ?3, ?4)";
    db.execute(sql, params![id, at_ms, what, detail])?;
    Ok(())
}

/// In what a report differs from what the shop asked for. What it does not say cannot be what was asked for.
fn difference(order: &MerchantOrder, report: &Report<'_>) -> Option<String> {
    if report.amount != Some(order.amount) {
        let reported = report.amount.map_or("nothing".to_owned(), |amount| amount.to_string());
        return Some(format!("{} Kz were asked for, {reported} are reported", order.amount));
    }
    let (known, reported) = (order.reference_number.as_deref()?, report.reference_number);
    (reported != Some(known))
        .then(|| format!("the reference is {known}, {} is reported", reported.unwrap_or("none")))
}
