//! How orders end on PostgreSQL: many changes and notices in one transaction.
//!
//! The rows of their orders are held first, in the order of their references, so that two nodes
//! cannot wait for each other; what is read after that is the truth until the commit.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::{Client, GenericClient};

use super::batch::{Batch, column};
use super::exceptions::resolve;
use super::paying::{free_references, lock_order, withdraw};
use super::receipts::{self, Key, StoredReceipt, key};
use super::stepping::step;
use super::{Fault, Postgres, Told, change, many};
use crate::domain::{
    AttemptId, AttemptState, Change, Effect, ExceptionKind, ReferenceNumber, Status, Step, Word,
};
use crate::store::paying::{
    APPLIED, Heard, Known, deadline_ms, free_at_ms, has_changed, unsettled,
};
use crate::store::records::read_status;
use crate::store::{
    Committed, Receipt, Received, Reception, Resolved, Result, Stepped, StoreError, Unreceived,
};

impl Postgres {
    pub(in crate::store) async fn commit(&self, change: Change) -> Result<Committed> {
        match self.settlements.run(Settlement::Commit(Box::new(change))).await?? {
            Outcome::Committed(committed) => Ok(committed),
            Outcome::Received(_) => Err(StoreError::Corrupt("a change became a notice".into())),
        }
    }

    pub(in crate::store) async fn receive(&self, receipt: Receipt) -> Result<Reception> {
        if let Effect::Step(change) = &receipt.effect {
            return self.receive_step(&receipt, change).await;
        }
        match self.settlements.run(Settlement::Receive(Box::new(receipt))).await?? {
            Outcome::Received(reception) => Ok(reception),
            Outcome::Committed(_) => Err(StoreError::Corrupt("a notice became a change".into())),
        }
    }

    /// News of an attempt, alone: whether it still applies is known only when it is written.
    async fn receive_step(&self, receipt: &Receipt, change: &Step) -> Result<Reception> {
        let mut db = self.client().await?;
        let transaction = db.transaction().await.map_err(Fault::from)?;
        lock_order(&transaction, &change.reference_number).await?;
        if !receipts::insert(&transaction, &[(receipt, APPLIED)]).await? {
            let known = receipts::stored(&transaction, &[receipt]).await?;
            let known = known.get(&key(receipt)).map(|stored| &stored.known);
            if let Heard::Otherwise = receipt.was_heard(known, false) {
                return Ok(Err(Unreceived::IdReused));
            }
            receipts::count_duplicates(&transaction, &[receipt]).await?;
            transaction.commit().await.map_err(Fault::from)?;
            return Ok(Ok(Received::Duplicate));
        }
        if !matches!(step(&transaction, change).await?, Stepped::Done { .. }) {
            // Dropped with all it wrote.
            return Ok(Err(Unreceived::Changed));
        }
        transaction.commit().await.map_err(Fault::from)?;
        Ok(Ok(Received::Noted))
    }
}

pub(super) enum Settlement {
    Commit(Box<Change>),
    Receive(Box<Receipt>),
}

pub(super) enum Outcome {
    Committed(Committed),
    Received(Reception),
}

impl Settlement {
    fn reference(&self) -> Option<&ReferenceNumber> {
        match self {
            Self::Commit(change) => Some(&change.reference_number),
            Self::Receive(receipt) => receipt.reference_number.as_ref(),
        }
    }

    fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Commit(_) => None,
            Self::Receive(receipt) => Some(receipt),
        }
    }

    fn cancels_at_ms(&self) -> Option<i64> {
        match self {
            Self::Commit(change) if change.to == Status::Cancelled => {
                Some(change.stamp.at.as_millisecond())
            }
            Self::Commit(_) | Self::Receive(_) => None,
        }
    }

    fn accepts(&self) -> Option<i64> {
        match self {
            Self::Commit(change) => change.accepts,
            Self::Receive(_) => None,
        }
    }
}

pub(super) struct Settlements;

impl Batch for Settlements {
    type Item = Settlement;
    type Answer = Result<Outcome>;

    async fn run(db: &mut Client, items: &[Settlement]) -> Told<Vec<Result<Outcome>>> {
        let transaction = db.transaction().await?;
        let mut books = Books::open(&transaction, items).await?;
        let mut outcomes = Vec::with_capacity(items.len());
        for item in items {
            outcomes.push(match item {
                Settlement::Commit(change) => books.commit(change).map(Outcome::Committed),
                Settlement::Receive(receipt) => books.receive(receipt).map(Outcome::Received),
            });
        }
        books.write(&transaction).await?;
        crate::faults::pass("before the commit")?;
        transaction.commit().await?;
        Ok(outcomes)
    }
}

/// What is known while the orders are held, and what is to be written before they are let go.
#[derive(Default)]
struct Books<'a> {
    status: HashMap<String, Status>,
    /// Orders with money that may be moving, or waits for an operator.
    unsettled: HashSet<String>,
    /// Of the exceptions that are to be accepted, those nobody has resolved.
    acceptable: HashSet<i64>,
    /// Changes that were decided on what is not so any more, by their events.
    changed: HashSet<String>,
    /// Events stored before: changes of this very batch, when it is repeated.
    stored_events: HashSet<String>,
    receipts: HashMap<Key, StoredReceipt>,
    settled: Vec<&'a Change>,
    exceptions: Vec<(&'a Receipt, ExceptionKind, String)>,
    received: Vec<(&'a Receipt, &'static str)>,
    duplicates: Vec<&'a Receipt>,
}

async fn changed(db: &impl GenericClient, items: &[Settlement]) -> Told<HashSet<String>> {
    let (mut events, mut references, mut deadlines) = (vec![], vec![], vec![]);
    for item in items {
        if let Settlement::Commit(change) = item
            && let Some(only_if) = change.only_if
        {
            events.push(change.event.id.as_str());
            references.push(change.reference_number.as_str());
            deadlines.push(deadline_ms(only_if));
        }
    }
    if events.is_empty() {
        return Ok(HashSet::new());
    }
    let sql = format!(
        "select c.event from unnest($1::text[], $2::text[], $3::bigint[])
             as c (event, reference_number, deadline_ms)
         join orders o using (reference_number) where {}",
        has_changed("o", "c.deadline_ms")
    );
    let rows = many(db, &sql, &[&events, &references, &deadlines]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

impl<'a> Books<'a> {
    async fn open(db: &impl GenericClient, items: &'a [Settlement]) -> Told<Self> {
        let references: Vec<&str> =
            items.iter().filter_map(Settlement::reference).map(ReferenceNumber::as_str).collect();
        let lock = "select reference_number, status from orders
                    where reference_number = any($1) order by reference_number for update";
        let mut books = Self::default();
        for row in many(db, lock, &[&references]).await? {
            books.status.insert(row.get(0), read_status(row.get(1))?);
        }
        if let Some(at_ms) = items.iter().filter_map(Settlement::cancels_at_ms).max() {
            let unsettled = format!(
                "select distinct reference_number from payment_attempts a
                 where reference_number = any($1) and {}",
                unsettled("a", "$2")
            );
            let rows = many(db, &unsettled, &[&references, &at_ms]).await?;
            books.unsettled = rows.iter().map(|row| row.get(0)).collect();
        }
        books.changed = changed(db, items).await?;
        let accepts: Vec<i64> = items.iter().filter_map(Settlement::accepts).collect();
        if !accepts.is_empty() {
            let open = "select id from exceptions where id = any($1) and resolved_at_ms is null
                        order by id for update";
            let rows = many(db, open, &[&accepts]).await?;
            books.acceptable = rows.iter().map(|row| row.get(0)).collect();
        }
        let lost: Vec<&str> = items.iter().filter_map(|item| books.event_if_lost(item)).collect();
        if !lost.is_empty() {
            let rows = many(db, "select id from outbox where id = any($1)", &[&lost]).await?;
            books.stored_events = rows.iter().map(|row| row.get(0)).collect();
        }
        let received: Vec<&Receipt> = items.iter().filter_map(Settlement::receipt).collect();
        if !received.is_empty() {
            books.receipts = receipts::stored(db, &received).await?;
        }
        Ok(books)
    }

    /// A change whose order is settled may be ours, stored by a call that nobody heard the end of.
    fn event_if_lost<'i>(&self, item: &'i Settlement) -> Option<&'i str> {
        let Settlement::Commit(change) = item else { return None };
        let status = self.status.get(change.reference_number.as_str())?;
        (*status != Status::Pending).then(|| change.event.id.as_str())
    }

    fn commit(&mut self, change: &'a Change) -> Result<Committed> {
        let reference = change.reference_number.as_str();
        let Some(status) = self.status.get(reference).copied() else {
            return Ok(Committed::NoSuchOrder);
        };
        if status != Status::Pending {
            let ours = self.stored_events.contains(change.event.id.as_str());
            return Ok(if ours { Committed::Done } else { Committed::Lost(status) });
        }
        let refused = match change.accepts {
            Some(exception) => !self.acceptable.contains(&exception),
            None => change.to == Status::Cancelled && self.unsettled.contains(reference),
        };
        if refused || self.changed.contains(change.event.id.as_str()) {
            return Ok(Committed::Refused);
        }
        self.status.insert(reference.to_owned(), change.to);
        self.settled.push(change);
        Ok(Committed::Done)
    }

    fn receive(&mut self, receipt: &'a Receipt) -> Result<Reception> {
        let call_id = receipt.stamp.event_id.as_str();
        let (rail, id, kind) = key(receipt);
        let was_reversed =
            self.receipts.contains_key(&(rail.clone(), id.clone(), Word::REVERSAL.to_owned()));
        let stored = self.receipts.get(&(rail, id, kind));
        if let Some(stored) = stored.filter(|stored| stored.call_id == call_id) {
            return Ok(Ok(receipt.as_stored(&stored.outcome, stored.exception.as_deref())));
        }
        match receipt.was_heard(stored.map(|stored| &stored.known), was_reversed) {
            Heard::Never => {}
            Heard::Otherwise => return Ok(Err(Unreceived::IdReused)),
            Heard::Before => {
                self.duplicates.push(receipt);
                return Ok(Ok(Received::Duplicate));
            }
        }
        let received = match &receipt.effect {
            Effect::Confirm(change) => match self.commit(change)? {
                Committed::Done => Received::Confirmed,
                Committed::Lost(status) => {
                    let (kind, detail) = ExceptionKind::of_lost(status);
                    self.except(receipt, kind, detail)
                }
                Committed::Refused | Committed::NoSuchOrder => {
                    return Err(StoreError::Unknown("the order of a payment"));
                }
            },
            Effect::Exception { kind, detail } => {
                let order = receipt.reference_number.as_ref().map(ReferenceNumber::as_str);
                let status = order.and_then(|order| self.status.get(order).copied());
                self.except(receipt, kind.weigh_again(status), detail.clone())
            }
            Effect::Nothing => Received::Noted,
            // Such a one is a transaction of its own.
            Effect::Step(_) => {
                return Err(StoreError::Corrupt("a step among settlements".into()));
            }
        };
        let outcome = received.outcome();
        self.received.push((receipt, outcome));
        let stored = StoredReceipt {
            call_id: String::new(),
            outcome: outcome.into(),
            exception: None,
            known: Known {
                amount: receipt.notice.word.amount(),
                reference_number: receipt.reference_number.as_ref().map(|r| r.as_str().to_owned()),
                attempt: receipt.attempt.as_ref().map(|id| id.as_str().to_owned()),
            },
        };
        self.receipts.insert(key(receipt), stored);
        Ok(Ok(received))
    }

    fn except(&mut self, receipt: &'a Receipt, kind: ExceptionKind, detail: String) -> Received {
        if let (Some(AttemptState::Held), Some(order)) = (kind.leaves(), &receipt.reference_number)
        {
            self.unsettled.insert(order.as_str().to_owned());
        }
        self.exceptions.push((receipt, kind, detail));
        Received::Exception(kind)
    }

    async fn write(&self, db: &impl GenericClient) -> Told<()> {
        // Money is held before its order is paid by other money, never after.
        leave_attempts(db, &self.exceptions, true).await?;
        if !self.settled.is_empty() {
            settle(db, &self.settled).await?;
        }
        if !self.exceptions.is_empty() {
            insert_exceptions(db, &self.exceptions).await?;
            leave_attempts(db, &self.exceptions, false).await?;
        }
        if !self.received.is_empty() {
            receipts::insert(db, &self.received).await?.then_some(()).ok_or(Fault::Raced)?;
        }
        if !self.duplicates.is_empty() {
            receipts::count_duplicates(db, &self.duplicates).await?;
        }
        Ok(())
    }
}

/// Audit and event rows exist only for orders that moved, and what still waited to be told of them
/// is told by their new event. The status is compared in a way that the index of pending orders does not
/// serve: by that the planner would read all that are pending, which may be millions.
async fn settle(db: &impl GenericClient, changes: &[&Change]) -> Told<()> {
    change(
        db,
        "with moved as (
             update orders o set status = t.status, settled_at_ms = t.at_ms
             from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[],
                 $6::text[], $7::text[], $8::text[], $9::bytea[], $10::text[], $11::text[])
                 as t (reference, application, status, at_ms, actor, cause, request, event, body,
                     url, origin)
             where o.reference_number = t.reference and o.status || '' = 'PEN'
             returning t.*
         ), audited as (
             insert into audit (at_ms, actor, action, subject, before, after, cause, request_id)
             select at_ms, actor, 'order.settle', reference, 'PEN', status, cause, request
             from moved
         ), older as materialized (
             select e.id, e.state from outbox e join moved on e.reference_number = moved.reference
             order by e.id for update of e
         ), superseded as (
             update outbox set latest = false,
                 state = case when older.state = 'queued' then 'superseded' else older.state end
             from older where outbox.id = older.id
         )
         insert into outbox (id, application_id, reference_number, status, body, webhook_url,
             origin, state, next_attempt_at_ms, queued_at_ms, created_at_ms)
         select event, application, reference, status, body, url, origin, 'queued', at_ms, at_ms,
             at_ms
         from moved",
        &[
            &column(changes, |c| c.reference_number.as_str()),
            &column(changes, |c| c.event.lane.application.0),
            &column(changes, |c| c.to.code()),
            &column(changes, |c| c.stamp.at.as_millisecond()),
            &column(changes, |c| c.stamp.actor.to_string()),
            &column(changes, |c| c.cause.as_str()),
            &column(changes, |c| c.stamp.request_id.as_str()),
            &column(changes, |c| c.event.id.as_str()),
            &column(changes, |c| c.event.body.as_slice()),
            &column(changes, |c| c.event.webhook_url.as_str()),
            &column(changes, |c| c.event.lane.origin.as_str()),
        ],
    )
    .await?;
    for (exception, resolved) in changes.iter().filter_map(|change| Resolved::with(change)) {
        resolve(db, exception, &resolved).await?;
    }
    close_attempts(db, changes).await
}

/// The attempt that brought the money is accepted (without one, the held one that an operator accepts);
/// whatever else could be paid is not any more.
async fn close_attempts(db: &impl GenericClient, changes: &[&Change]) -> Told<()> {
    let references = column(changes, |c| c.reference_number.as_str());
    let closed = change(
        db,
        "update payment_attempts p set updated_at_ms = t.at_ms,
             due_at_ms = case when p.state = 'unknown' and p.id is distinct from t.paid_by
                 then p.due_at_ms end,
             state = case when p.id = t.paid_by then 'accepted'
                 when p.state = 'issued' then t.closes_as
                 when p.state = 'held' and t.paid_by is null then 'accepted' else p.state end
         from unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
             as t (reference, paid_by, closes_as, at_ms)
         where p.reference_number = t.reference
             and (p.id = t.paid_by or p.state in ('issued', 'held', 'unknown'))",
        &[
            &references,
            &column(changes, |c| c.paid_by.as_ref().map(AttemptId::as_str)),
            &column(changes, |c| c.closes_as().as_str()),
            &column(changes, |c| c.stamp.at.as_millisecond()),
        ],
    )
    .await?;
    if closed > 0 {
        free_references(db, &references, &column(changes, |c| free_at_ms(c.stamp.at))).await?;
        withdraw(db, changes).await?;
    }
    Ok(())
}

async fn insert_exceptions(
    db: &impl GenericClient,
    exceptions: &[(&Receipt, ExceptionKind, String)],
) -> Told<()> {
    change(
        db,
        // In the sealed history, too: money that waits for a person cannot be made to vanish.
        "with given as (
             select * from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[],
                 $6::text[], $7::bigint[], $8::text[], $9::bigint[], $10::text[], $11::text[])
                 as t (kind, notice, application, reference, rail, id, amount, detail, at_ms, actor,
                     request)
         ), entered as (
             insert into exceptions (kind, notice, application_id, reference_number, rail,
                 rail_payment_id, amount_centimos, detail, created_at_ms)
             select kind, notice, application, reference, rail, id, amount, detail, at_ms
             from given order by rail, id, notice
             on conflict do nothing
             returning rail, rail_payment_id as id, notice
         )
         insert into audit (at_ms, actor, action, subject, after, cause, request_id)
         select at_ms, actor, 'exception.enter', coalesce(reference, id), kind, detail, request
         from given join entered using (rail, id, notice)",
        &[
            &column(exceptions, |(_, kind, _)| kind.as_str()),
            &column(exceptions, |(r, ..)| r.notice.word.kind()),
            &column(exceptions, |(r, ..)| r.application.map(|id| id.0)),
            &column(exceptions, |(r, ..)| r.reference_number.as_ref().map(ReferenceNumber::as_str)),
            &column(exceptions, |(r, ..)| r.notice.rail.as_str()),
            &column(exceptions, |(r, ..)| r.notice.rail_payment_id.as_str()),
            &column(exceptions, |(r, ..)| r.notice.word.amount().get()),
            &column(exceptions, |(_, _, detail)| detail.as_str()),
            &column(exceptions, |(r, ..)| r.stamp.at.as_millisecond()),
            &column(exceptions, |(r, ..)| r.stamp.actor.to_string()),
            &column(exceptions, |(r, ..)| r.stamp.request_id.as_str()),
        ],
    )
    .await
    .map(drop)
}

/// What becomes of the attempts whose money is excepted: of those that are held, or of the others.
async fn leave_attempts(
    db: &impl GenericClient,
    exceptions: &[(&Receipt, ExceptionKind, String)],
    held: bool,
) -> Told<()> {
    let left: Vec<_> = exceptions
        .iter()
        .filter_map(|(receipt, kind, _)| Some((receipt.attempt.as_ref()?, kind.leaves()?, receipt)))
        .filter(|(_, state, _)| (*state == AttemptState::Held) == held)
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    change(
        db,
        "update payment_attempts p set state = t.state, due_at_ms = null, updated_at_ms = t.at_ms
         from unnest($1::text[], $2::text[], $3::bigint[]) as t (id, state, at_ms)
         where p.id = t.id and (t.state = 'held'
             or p.state in ('submitted', 'awaiting_payer', 'unknown', 'issued'))",
        &[
            &column(&left, |(attempt, ..)| attempt.as_str()),
            &column(&left, |(_, state, _)| state.as_str()),
            &column(&left, |(.., receipt)| receipt.stamp.at.as_millisecond()),
        ],
    )
    .await
    .map(drop)
}
