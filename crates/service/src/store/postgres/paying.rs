//! Attempts to pay on PostgreSQL. Whatever touches an attempt holds the row of its order first.

use deadpool_postgres::GenericClient;
use jiff::Timestamp;

use super::batch::column;
use super::stepping::{reserve, step};
use super::{Fault, Param, Postgres, Told, change, one};
use crate::domain::{
    AttemptId, CancelReason, Change, Instrument, PaymentAttempt, PaymentMethod, ReferenceNumber,
    Stamp, Step, TRIES_PER_METHOD_MAX,
};
use crate::store::as_limit;
use crate::store::paying::{InstrumentColumns, SOONER, free_at_ms, unsettled};
use crate::store::{NewAttempt, Result, Started, Stepped};

impl Postgres {
    pub(in crate::store) async fn start_attempt(&self, new: NewAttempt) -> Result<Started> {
        let mut db = self.client().await?;
        let transaction = db.transaction().await.map_err(Fault::from)?;
        let started = start(&transaction, &new).await?;
        // Nothing is kept of an attempt that could not be started.
        if started == Started::New {
            transaction.commit().await.map_err(Fault::from)?;
        }
        Ok(started)
    }

    pub(in crate::store) async fn step(&self, change: Step) -> Result<Stepped> {
        let mut db = self.client().await?;
        let transaction = db.transaction().await.map_err(Fault::from)?;
        lock_order(&transaction, &change.reference_number).await?;
        let stepped = step(&transaction, &change).await?;
        transaction.commit().await.map_err(Fault::from)?;
        Ok(stepped)
    }

    pub(in crate::store) async fn request_cancel(
        &self,
        reference: &ReferenceNumber,
        reason: CancelReason,
        stamp: Stamp,
    ) -> Result<bool> {
        let mut db = self.client().await?;
        let transaction = db.transaction().await.map_err(Fault::from)?;
        lock_order(&transaction, reference).await?;
        let noted = request_cancel(&transaction, reference, reason, &stamp).await?;
        transaction.commit().await.map_err(Fault::from)?;
        Ok(noted)
    }
}

/// Statements after this one see what its last holder did: each takes a new snapshot.
pub(super) async fn lock_order(db: &impl GenericClient, reference: &ReferenceNumber) -> Told<()> {
    let sql = "select 1 from orders where reference_number = $1 for update";
    one(db, sql, &[&reference.as_str()]).await.map(drop)
}

async fn start(db: &impl GenericClient, new: &NewAttempt) -> Told<Started> {
    let attempt = &new.attempt;
    let reference = attempt.reference_number.as_str();
    let (method, at_ms) = (attempt.instrument.method().code(), attempt.created_at.as_millisecond());
    lock_order(db, &attempt.reference_number).await?;
    if !may_begin(db, attempt).await? {
        return Ok(Started::Lost);
    }
    if let Instrument::Reference(Some(bank)) = &attempt.instrument
        && !reserve(db, bank, &attempt.id, attempt.created_at).await?
    {
        return Ok(Started::ReferenceTaken);
    }
    let columns = InstrumentColumns::of(&attempt.instrument);
    change(
        db,
        "insert into payment_attempts (id, application_id, reference_number, number, method, rail,
             state, phone_masked, phone_sealed, entity, bank_reference, created_at_ms,
             updated_at_ms, deadline_at_ms, due_at_ms)
         values ($1, $2, $3,
             (select count(*) + 1 from payment_attempts where reference_number = $3), $4, $5, $6, $7, $8, $9, $10, $11, $11, $12, $13)",
        &[
            &attempt.id.as_str(),
            &attempt.application.0,
            &reference,
            &method,
            &attempt.rail,
            &attempt.state.as_str(),
            &columns.phone_masked,
            &columns.phone_sealed,
            &columns.entity,
            &columns.bank_reference,
            &at_ms,
            &attempt.deadline.as_millisecond(),
            &attempt.due_at.map(Timestamp::as_millisecond),
        ],
    )
    .await?;
    change(
        db,
        "insert into audit (at_ms, actor, action, subject, after, cause, request_id)
         values ($1, 'payer', 'attempt.start', $2, $3, $4, $5)",
        &[
            &at_ms,
            &reference,
            &attempt.state.as_str(),
            &format!("{method} by {} as {}", attempt.rail, attempt.id.as_str()),
            &new.request_id,
        ],
    )
    .await?;
    Ok(Started::New)
}

/// Nothing else is under way for its order, and its method has tries left.
async fn may_begin(db: &impl GenericClient, attempt: &PaymentAttempt) -> Told<bool> {
    let sql = format!(
        "select 1 from orders o where reference_number = $1 and status = 'PEN'
             and cancel_requested is null and closing_at_ms is null and not exists (
                 select 1 from payment_attempts a
                 where a.reference_number = o.reference_number and ({}
                     or a.method = $2 and a.state = 'issued' and a.deadline_at_ms > $3))
             and (select count(*) from payment_attempts a
                 where a.reference_number = o.reference_number and a.method = $2) < $4",
        unsettled("a", "$3")
    );
    let given: [&Param<'_>; 4] = [
        &attempt.reference_number.as_str(),
        &attempt.instrument.method().code(),
        &attempt.created_at.as_millisecond(),
        &as_limit(TRIES_PER_METHOD_MAX),
    ];
    Ok(one(db, &sql, &given).await?.is_some())
}

/// Their rails are to be told that references of these orders in these states are dead.
pub(super) async fn withdraw(db: &impl GenericClient, changes: &[&Change]) -> Told<()> {
    let paid_by = column(changes, |c| c.paid_by.as_ref().map(AttemptId::as_str));
    // What was paid is not withdrawn in its time.
    let paid = "update withdrawals set due_at_ms = null where attempt_id = any ($1::text[])";
    change(db, paid, &[&paid_by]).await?;
    change(
        db,
        &format!(
            "insert into withdrawals (attempt_id, reference_number, since_ms, due_at_ms)
             select distinct on (a.id) a.id, a.reference_number, t.since, t.since
             from unnest($1::text[], $2::text[], $3::bigint[], $4::text[])
                 as t (reference, state, since, paid_by)
             join payment_attempts a on a.reference_number = t.reference
             where a.method = $5 and a.id is distinct from t.paid_by
                 and (a.state = t.state or a.rail_id is not null and a.state in ('held', 'unknown')
                     or a.state = 'accepted' and t.paid_by is null)
             {SOONER}"
        ),
        &[
            &column(changes, |c| c.reference_number.as_str()),
            &column(changes, |c| c.closes_as().as_str()),
            &column(changes, |c| c.stamp.at.as_millisecond()),
            &paid_by,
            &PaymentMethod::BankReference.code(),
        ],
    )
    .await
    .map(drop)
}

/// These orders are no longer offered, whatever may still come.
pub(super) async fn withdraw_issued(
    db: &impl GenericClient,
    references: &[&str],
    since_ms: &[i64],
) -> Told<()> {
    let sql = format!(
        "insert into withdrawals (attempt_id, reference_number, since_ms, due_at_ms)
         select distinct on (a.id) a.id, a.reference_number, t.since, t.since
         from unnest($1::text[], $2::bigint[]) as t (reference, since)
         join payment_attempts a on a.reference_number = t.reference
         where a.state = 'issued' and a.method = $3 {SOONER}"
    );
    let method = PaymentMethod::BankReference.code();
    change(db, &sql, &[&references, &since_ms, &method]).await.map(drop)
}

pub(super) async fn withdraw_one(db: &impl GenericClient, step: &Step) -> Told<()> {
    let sql = format!(
        "insert into withdrawals (attempt_id, reference_number, since_ms, due_at_ms)
         values ($1, $2, $3, $3) {SOONER}"
    );
    let (attempt, reference) = (step.attempt.as_str(), step.reference_number.as_str());
    change(db, &sql, &[&attempt, &reference, &step.at.as_millisecond()]).await.map(drop)
}

/// An order that lives on by something else does not keep its references alive: each is withdrawn in its time.
pub(super) async fn withdraw_in_time(db: &impl GenericClient, reference: &str) -> Told<()> {
    let sql = "insert into withdrawals (attempt_id, reference_number, since_ms, due_at_ms)
               select a.id, reference_number, a.deadline_at_ms, a.deadline_at_ms
               from payment_attempts a join orders o using (reference_number)
               where reference_number = $1 and a.method = $2 and a.state = 'issued'
                   and a.deadline_at_ms < o.expires_at_ms
               on conflict do nothing";
    change(db, sql, &[&reference, &PaymentMethod::BankReference.code()]).await.map(drop)
}

/// In half a year somebody else may have its number.
pub(super) async fn free_reference(db: &impl GenericClient, step: &Step) -> Told<()> {
    let sql = "update bank_references set free_at_ms = $2
               where free_at_ms is null and attempt_id = $1";
    change(db, sql, &[&step.attempt.as_str(), &free_at_ms(step.at)]).await.map(drop)
}

/// The references of these orders are dead: in half a year somebody else may have them.
pub(super) async fn free_references(
    db: &impl GenericClient,
    references: &[&str],
    free_at_ms: &[i64],
) -> Told<()> {
    let sql = "update bank_references set free_at_ms = t.free
               from unnest($1::text[], $2::bigint[]) as t (reference, free)
               join payment_attempts a on a.reference_number = t.reference
               where bank_references.attempt_id = a.id and bank_references.free_at_ms is null";
    change(db, sql, &[&references, &free_at_ms]).await.map(drop)
}

async fn request_cancel(
    db: &impl GenericClient,
    reference: &ReferenceNumber,
    reason: CancelReason,
    stamp: &Stamp,
) -> Told<bool> {
    let note = format!(
        "update orders set cancel_requested = $2
         where reference_number = $1 and status = 'PEN' and cancel_requested is null
             and exists (select 1 from payment_attempts a
                 where a.reference_number = orders.reference_number and {})",
        unsettled("a", "$3")
    );
    let given: [&Param<'_>; 3] =
        [&reference.as_str(), &reason.as_str(), &stamp.at.as_millisecond()];
    if change(db, &note, &given).await? == 0 {
        return Ok(false);
    }
    change(
        db,
        "insert into audit (at_ms, actor, action, subject, cause, request_id)
         values ($1, $2, 'order.request_cancel', $3, $4, $5)",
        &[
            &stamp.at.as_millisecond(),
            &stamp.actor.to_string(),
            &reference.as_str(),
            &format!("waits for the attempt in flight: {}", reason.as_str()),
            &stamp.request_id,
        ],
    )
    .await?;
    Ok(true)
}
