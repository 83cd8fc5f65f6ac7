//! Which order has which id of its merchant: the idempotency key of spec 2.3.
//!
//! Merchants' ids are random. An index of them would write a page somewhere else for every order; so the
//! table of them is filled in lots, in its own order, where a page takes many at once. Orders that are not in
//! it yet are known here: memory holds nothing that the orders themselves do not say.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use aws_lc_rs::digest::{SHA256, digest};
use rusqlite::{Row, params};

use super::statements::{Db, execute, row, rows};
use crate::domain::ApplicationId;
use crate::store::Result;

/// Ids that wait for the table: some megabytes of memory. A start reads up to four times as many.
pub(super) const WAITING_MAX: usize = 65_536;
/// Ids that one commit puts into the table at most, so that nobody waits long for it.
const LOT_MAX: usize = 2_048;
/// Fewer would be spread over as many pages.
const LOT_MIN: usize = 256;

/// Ten bytes of its SHA-256 stand for a merchant's id; whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IdKey {
    pub hash: [u8; 10],
    pub application: i64,
}

impl IdKey {
    pub(super) fn new(application: ApplicationId, id: &str) -> Self {
        Self { hash: id_hash(id), application: application.0 }
    }
}

pub(super) fn id_hash(id: &str) -> [u8; 10] {
    let digest = digest(&SHA256, id.as_bytes());
    *digest.as_ref().first_chunk().expect("a SHA-256 has 32 bytes")
}

/// The number of an order in this database.
type OrderId = i64;

pub(super) struct OrderIds {
    waiting: RwLock<Waiting>,
    waiting_max: usize,
}

/// What the table lacks.
struct Waiting {
    orders: BTreeMap<IdKey, OrderId>,
    /// The newest order that is here or in the table.
    newest: OrderId,
    filled: Filled,
    /// What the writer goes back to if its transaction is taken back.
    newest_before: Option<OrderId>,
    /// Put into the table by a transaction whose end is not known yet.
    lot: Option<Lot>,
}

/// How far the table is filled, from the lowest hash to the highest, again and again; stored with each lot,
/// so that the next life goes on from there.
#[derive(Clone, Copy)]
struct Filled {
    /// It has every order up to this one.
    until: OrderId,
    /// The newest order when this round began, and the last key that was put into the table since. Of the
    /// orders up to the one it has all up to the other.
    began_with: OrderId,
    at: Option<IdKey>,
}

impl Filled {
    fn has(&self, key: &IdKey, order: OrderId) -> bool {
        order <= self.until || order <= self.began_with && self.at.is_some_and(|at| *key <= at)
    }
}

struct Lot {
    keys: Vec<IdKey>,
    then: Filled,
}

/// What was known at some moment.
struct Known {
    newest: OrderId,
    filled: Filled,
}

impl Known {
    fn unknown(&self, db: &Db<'_>) -> Result<Unknown> {
        let sql = "select id, application_id, external_transaction_id from orders where id > ?1
                   order by id";
        let read = |row: &Row<'_>| {
            let id = row.get_ref(2)?.as_str()?;
            Ok((IdKey::new(ApplicationId(row.get(1)?), id), row.get(0)?))
        };
        let mut orders: Vec<(IdKey, OrderId)> = rows(db, sql, [self.newest], read)?;
        let newest = orders.last().map_or(self.newest, |(_, order)| *order);
        orders.retain(|(key, order)| !self.filled.has(key, *order));
        Ok(Unknown { after: self.newest, newest, orders })
    }
}

/// Orders that somebody else stored, or a life before this one.
struct Unknown {
    after: OrderId,
    newest: OrderId,
    /// Those that are not in the table.
    orders: Vec<(IdKey, OrderId)>,
}

impl OrderIds {
    pub(super) fn open(db: &Db<'_>, waiting_max: usize) -> Result<Self> {
        let sql = "select until, began_with, at_hash, at_application from order_ids_filled";
        let read = |row: &Row<'_>| {
            let (hash, application) = (row.get::<_, Option<_>>(2)?, row.get::<_, Option<_>>(3)?);
            let at = hash.zip(application).map(|(hash, application)| IdKey { hash, application });
            Ok(Filled { until: row.get(0)?, began_with: row.get(1)?, at })
        };
        let nothing = Filled { until: 0, began_with: 0, at: None };
        let filled = row(db, sql, [], read)?.unwrap_or(nothing);
        let waiting = Waiting {
            orders: BTreeMap::new(),
            newest: filled.until,
            filled,
            newest_before: None,
            lot: None,
        };
        Ok(Self { waiting: RwLock::new(waiting), waiting_max })
    }

    /// What `read` finds of the order with this id: by its number if it waits here, else by the table.
    pub(super) fn look_up<T>(
        &self,
        db: &Db<'_>,
        key: &IdKey,
        read: impl Fn(Option<OrderId>) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        if let Some(found) = read(self.waiting(key))? {
            return Ok(Some(found));
        }
        self.catch_up(db)?;
        read(self.waiting(key))
    }

    /// The order with this id, for the writer: it has caught up, and nobody else writes.
    pub(super) fn find(&self, db: &Db<'_>, key: &IdKey) -> Result<Option<OrderId>> {
        if let Some(order) = self.waiting(key) {
            return Ok(Some(order));
        }
        let sql = "select order_id from order_ids where id_hash = ?1 and application_id = ?2";
        row(db, sql, params![key.hash, key.application], |row| row.get(0))
    }

    fn waiting(&self, key: &IdKey) -> Option<OrderId> {
        self.read().orders.get(key).copied()
    }

    /// Orders with this id, whosever they are.
    pub(super) fn find_all(&self, db: &Db<'_>, id: &str) -> Result<Vec<OrderId>> {
        self.catch_up(db)?;
        let hash = id_hash(id);
        let (first, last) =
            (IdKey { hash, application: i64::MIN }, IdKey { hash, application: i64::MAX });
        let mut found: Vec<_> = self.read().orders.range(first..=last).map(|(_, id)| *id).collect();
        let sql = "select order_id from order_ids where id_hash = ?1";
        found.extend(rows(db, sql, [hash], |row| row.get::<_, OrderId>(0))?);
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Orders that somebody else stored since, or that a life before this one did.
    pub(super) fn catch_up(&self, db: &Db<'_>) -> Result<()> {
        while !self.learn(self.known().unknown(db)?) {}
        Ok(())
    }

    fn known(&self) -> Known {
        let waiting = self.read();
        Known { newest: waiting.newest, filled: waiting.filled }
    }

    /// False if the writer has taken back orders since: others may have their numbers now, and they are not
    /// among these.
    fn learn(&self, unknown: Unknown) -> bool {
        if unknown.newest == unknown.after {
            return true;
        }
        let mut waiting = self.write();
        if waiting.newest < unknown.after {
            return false;
        }
        waiting.orders.extend(unknown.orders);
        waiting.newest = waiting.newest.max(unknown.newest);
        true
    }

    /// The writer's transaction has begun: nobody else stores anything until it ends.
    pub(super) fn begun(&self, db: &Db<'_>) -> Result<()> {
        self.catch_up(db)?;
        let mut waiting = self.write();
        waiting.newest_before = Some(waiting.newest);
        Ok(())
    }

    /// An order that the writer has just added.
    pub(super) fn add(&self, key: IdKey, order: OrderId) {
        let mut waiting = self.write();
        waiting.orders.insert(key, order);
        waiting.newest = order;
    }

    /// Puts into the table what is too much to keep here; the last work of a transaction.
    pub(super) fn put_away(&self, db: &Db<'_>) -> Result<()> {
        let waiting = self.read();
        let surplus = waiting.orders.len().saturating_sub(self.waiting_max);
        if surplus < LOT_MIN.min(self.waiting_max) {
            return Ok(());
        }
        let filled = waiting.filled;
        let range = waiting.orders.range((filled.at.map_or(Unbounded, Excluded), Unbounded));
        let lot: Vec<_> = range.take(surplus.min(LOT_MAX)).map(|(key, id)| (*key, *id)).collect();
        let then = match lot.last() {
            Some((key, _)) => Filled { at: Some(*key), ..filled },
            None => Filled { until: filled.began_with, began_with: waiting.newest, at: None },
        };
        drop(waiting);

        let sql = "insert into order_ids (id_hash, application_id, order_id) values (?1, ?2, ?3)
                   on conflict do nothing";
        for (key, order) in &lot {
            execute(db, sql, params![key.hash, key.application, order])?;
        }
        let sql = "insert or replace into order_ids_filled
                       (only, until, began_with, at_hash, at_application)
                   values (1, ?1, ?2, ?3, ?4)";
        let (hash, application) = then.at.map(|at| (at.hash, at.application)).unzip();
        execute(db, sql, params![then.until, then.began_with, hash, application])?;
        let keys = lot.into_iter().map(|(key, _)| key).collect();
        self.write().lot = Some(Lot { keys, then });
        Ok(())
    }

    pub(super) fn committed(&self) {
        let mut waiting = self.write();
        waiting.newest_before = None;
        if let Some(Lot { keys, then }) = waiting.lot.take() {
            for key in keys {
                waiting.orders.remove(&key);
            }
            waiting.filled = then;
        }
    }

    /// Nothing, if none had begun.
    pub(super) fn rolled_back(&self) {
        let mut waiting = self.write();
        let Some(before) = waiting.newest_before.take() else { return };
        waiting.lot = None;
        waiting.newest = before;
        waiting.orders.retain(|_, order| *order <= before);
    }

    fn read(&self) -> RwLockReadGuard<'_, Waiting> {
        self.waiting.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Waiting> {
        self.waiting.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};

    use proptest::prelude::*;
    use rusqlite::{Connection, OpenFlags};

    use super::super::{connect, migrate};
    use super::*;

    const WHOSE: ApplicationId = ApplicationId(7);
    /// So few that the table is filled all the time.
    const FEW: usize = 4;

    /// A database of its own, which ends with this value.
    struct Place(PathBuf);

    impl Place {
        fn new() -> Self {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
            let directory = std::env::temp_dir().join(format!("svc_ids_{process}_{number}"));
            std::fs::create_dir_all(&directory).unwrap();
            Self(directory)
        }

        fn database(&self) -> PathBuf {
            self.0.join("svc.db")
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// A process with this database open.
    struct Life {
        db: Connection,
        ids: OrderIds,
    }

    impl Life {
        fn begin(path: &Path) -> Self {
            let mode = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
            let mut db = connect(path, mode).unwrap();
            db.pragma_update(None, "synchronous", "off").unwrap();
            migrate(&mut db).unwrap();
            let ids = OrderIds::open(&Db::of(&db), FEW).unwrap();
            Self { db, ids }
        }

        /// As the writer does; true for those that were new.
        fn begin_and_add(&self, batch: &[u8]) -> Vec<bool> {
            self.db.execute_batch("begin immediate").unwrap();
            self.ids.begun(&Db::of(&self.db)).unwrap();
            let new = batch.iter().map(|id| self.add(*id)).collect();
            self.ids.put_away(&Db::of(&self.db)).unwrap();
            new
        }

        fn commit(&self) {
            self.db.execute_batch("commit").unwrap();
            self.ids.committed();
        }

        fn roll_back(&self) {
            self.ids.rolled_back();
            self.db.execute_batch("rollback").unwrap();
        }

        fn stores(&self, batch: &[u8], stored: &mut BTreeSet<u8>) {
            let new: Vec<bool> = batch.iter().map(|id| stored.insert(*id)).collect();
            assert_eq!(self.begin_and_add(batch), new, "{batch:?}");
            self.commit();
        }

        fn add(&self, id: u8) -> bool {
            let key = IdKey::new(WHOSE, &id.to_string());
            if self.ids.find(&Db::of(&self.db), &key).unwrap().is_some() {
                return false;
            }
            self.db
                .execute(
                    "insert into orders (reference_number, application_id, external_transaction_id,
                         status, amount, quantity, payer_id, name, additional_info, request_id,
                         created_at_ms, expires_at_ms)
                     values (hex(randomblob(13)), ?1, ?2, 'PEN', 1, 1, 'p', 'n', '{}', 'q', 1, 2)",
                    params![WHOSE.0, id.to_string()],
                )
                .unwrap();
            self.ids.add(key, self.db.last_insert_rowid());
            true
        }

        /// Every order is found by its id, by everybody, and nothing else is.
        fn knows_exactly(&self, stored: &BTreeSet<u8>) {
            let all = (0..=u8::MAX).map(|id| {
                let sql = "select id from orders where external_transaction_id = ?1";
                let read = |row: &Row<'_>| row.get::<_, OrderId>(0);
                let order = row(&Db::of(&self.db), sql, [id.to_string()], read).unwrap();
                assert_eq!(order.is_some(), stored.contains(&id), "order {id}");
                (id.to_string(), order)
            });
            let all: Vec<_> = all.collect();
            for (id, order) in &all {
                let key = IdKey::new(WHOSE, id);
                let read = |waiting: Option<OrderId>| match waiting {
                    Some(order) => Ok(Some(order)),
                    None => self.ids.find(&Db::of(&self.db), &key),
                };
                let found = self.ids.look_up(&Db::of(&self.db), &key, read).unwrap();
                assert_eq!(found, *order, "id {id}");
            }
            for (id, order) in &all {
                let found = self.ids.find_all(&Db::of(&self.db), id).unwrap();
                assert_eq!(found, Vec::from_iter(*order), "id {id}");
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Commit(Vec<u8>),
        RollBack(Vec<u8>),
        /// The same, and a reader that looks for news meanwhile brings them later.
        RollBackWhileRead(Vec<u8>),
        Read,
        Learn,
        ByAnother(Vec<u8>),
        Restart,
    }

    fn step() -> impl Strategy<Value = Step> {
        let batch = || prop::collection::vec(any::<u8>(), 1..12);
        prop_oneof![
            6 => batch().prop_map(Step::Commit),
            2 => batch().prop_map(Step::RollBack),
            2 => batch().prop_map(Step::RollBackWhileRead),
            1 => Just(Step::Read),
            2 => Just(Step::Learn),
            2 => batch().prop_map(Step::ByAnother),
            1 => Just(Step::Restart),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn an_id_is_of_one_order_whoever_stored_it_and_whatever_was_taken_back(
            steps in prop::collection::vec(step(), 1..60)
        ) {
            let place = Place::new();
            let path = place.database();
            let (mut life, another) = (Life::begin(&path), Life::begin(&path));
            let reader = connect(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
            let mut stored = BTreeSet::new();
            let mut known = None;
            for step in steps {
                match step {
                    Step::Commit(batch) => life.stores(&batch, &mut stored),
                    Step::ByAnother(batch) => another.stores(&batch, &mut stored),
                    Step::RollBack(batch) => {
                        life.begin_and_add(&batch);
                        life.roll_back();
                    }
                    Step::RollBackWhileRead(batch) => {
                        life.begin_and_add(&batch);
                        known = Some(life.ids.known());
                        life.roll_back();
                    }
                    Step::Read => known = Some(life.ids.known()),
                    Step::Learn => {
                        let unknown = known.take().map(|known| known.unknown(&Db::of(&reader)).unwrap());
                        unknown.map(|unknown| life.ids.learn(unknown));
                    }
                    Step::Restart => (life, known) = (Life::begin(&path), None),
                }
            }
            life.knows_exactly(&stored);
            another.knows_exactly(&stored);
            Life::begin(&path).knows_exactly(&stored);
        }
    }

    #[test]
    fn memory_keeps_few_and_a_start_reads_few() {
        let place = Place::new();
        let path = place.database();
        let life = Life::begin(&path);
        let all = BTreeSet::from_iter(0..=u8::MAX);
        for id in &all {
            life.begin_and_add(&[*id]);
            life.commit();
            assert!(life.ids.read().orders.len() <= 2 * FEW, "after {id}");
        }
        let next = Life::begin(&path);
        next.ids.catch_up(&Db::of(&next.db)).unwrap();
        let read = next.ids.read().orders.len();
        assert!(read <= 8 * FEW, "{read} of {} orders were read", all.len());
        next.knows_exactly(&all);
    }

    /// Each of them too short for a round.
    #[test]
    fn many_short_lives_read_no_more_than_one_long_one() {
        let place = Place::new();
        let mut all = BTreeSet::new();
        for id in 0..=u8::MAX {
            let life = Life::begin(&place.database());
            life.stores(&[id], &mut all);
            let known = life.ids.read().orders.len();
            assert!(known <= 8 * FEW, "{known} at the end of life {id}");
        }
        Life::begin(&place.database()).knows_exactly(&all);
    }
}
