//! Attempts to pay on SQLite.

use std::sync::LazyLock;

use jiff::Timestamp;
use rusqlite::params;

use super::Sqlite;
use super::portable::cells;
use super::statements::{Db, execute, row, rows};
use super::stepping::{reserve, step};
use crate::domain::{
    AttemptId, CancelReason, Change, Dossier, Instrument, PaymentAttempt, PaymentMethod,
    ReferenceNumber, Stamp, Status, Step, TRIES_PER_METHOD_MAX,
};
use crate::store::as_limit;
use crate::store::paying::{
    ATTEMPT_COLUMNS, DOSSIER_COLUMNS, InstrumentColumns, SOONER, attempt, dossier, free_at_ms,
    unsettled,
};
use crate::store::records::{ORDER_COLUMNS, read_status};
use crate::store::{NewAttempt, Result, Started, Stepped};

impl Sqlite {
    pub(in crate::store) async fn dossier(
        &self,
        reference: &ReferenceNumber,
    ) -> Result<Option<Dossier>> {
        self.lookups.run(|db| read_dossier(db, reference))
    }

    pub(in crate::store) async fn start_attempt(&self, new: NewAttempt) -> Result<Started> {
        self.writer.run_compound(move |db| start(db, &new)).await
    }

    pub(in crate::store) async fn step(&self, change: Step) -> Result<Stepped> {
        self.writer.run_compound(move |db| step(db, &change)).await
    }

    pub(in crate::store) async fn request_cancel(
        &self,
        reference: &ReferenceNumber,
        reason: CancelReason,
        stamp: Stamp,
    ) -> Result<bool> {
        let reference = reference.clone();
        self.writer.run_compound(move |db| request_cancel(db, &reference, reason, &stamp)).await
    }
}

static SELECT_DOSSIER: LazyLock<String> = LazyLock::new(|| {
    format!("select {ORDER_COLUMNS}, {DOSSIER_COLUMNS} from orders where reference_number = ?1")
});

static SELECT_ATTEMPTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "select {ATTEMPT_COLUMNS} from payment_attempts where reference_number = ?1
         order by number"
    )
});

pub(super) fn read_dossier(db: &Db<'_>, reference: &ReferenceNumber) -> Result<Option<Dossier>> {
    let found = row(db, SELECT_DOSSIER.as_str(), [reference.as_str()], |row| {
        // While the first statement is open, the second sees the same state of the database.
        let attempts = rows(db, SELECT_ATTEMPTS.as_str(), [reference.as_str()], cells);
        Ok((cells(row)?, attempts))
    })?;
    let Some((order, attempts)) = found else { return Ok(None) };
    let mut dossier = order.read(dossier)?;
    for cells in attempts? {
        dossier.attempts.extend(cells.read(attempt)?);
    }
    Ok(Some(dossier))
}

fn start(db: &Db<'_>, new: &NewAttempt) -> Result<Started> {
    let attempt = &new.attempt;
    if !may_begin(db, attempt)? {
        return Ok(Started::Lost);
    }
    if let Instrument::Reference(Some(bank)) = &attempt.instrument
        && !reserve(db, bank, &attempt.id, attempt.created_at)?
    {
        return Ok(Started::ReferenceTaken);
    }
    let columns = InstrumentColumns::of(&attempt.instrument);
    execute(
        db,
        "insert into payment_attempts (id, application_id, reference_number, number, method, rail,
             state, phone_masked, phone_sealed, entity, bank_reference, created_at_ms,
             updated_at_ms, deadline_at_ms, due_at_ms)
         values (?1, ?2, ?3,
             (select count(*) + 1 from payment_attempts where reference_number = ?3), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?12, ?13)",
        params![
            attempt.id.as_str(),
            attempt.application.0,
            attempt.reference_number.as_str(),
            attempt.instrument.method().code(),
            attempt.rail,
            attempt.state.as_str(),
            columns.phone_masked,
            columns.phone_sealed,
            columns.entity,
            columns.bank_reference,
            attempt.created_at.as_millisecond(),
            attempt.deadline.as_millisecond(),
            attempt.due_at.map(Timestamp::as_millisecond),
        ],
    )?;
    execute(
        db,
        "insert into audit (at_ms, actor, action, subject, after, cause, request_id)
         values (?1, 'payer', 'attempt.start', ?2, ?3, ?4, ?5)",
        params![
            attempt.created_at.as_millisecond(),
            attempt.reference_number.as_str(),
            attempt.state.as_str(),
            format!(
                "{} by {} as {}",
                attempt.instrument.method().code(),
                attempt.rail,
                attempt.id.as_str()
            ),
            new.request_id,
        ],
    )?;
    Ok(Started::New)
}

/// Nothing else is under way for its order, and its method has tries left.
fn may_begin(db: &Db<'_>, attempt: &PaymentAttempt) -> Result<bool> {
    let sql = format!(
        "select 1 from orders o where reference_number = ?1 and status = 'PEN'
             and cancel_requested is null and closing_at_ms is null and not exists (
                 select 1 from payment_attempts a
                 where a.reference_number = o.reference_number and ({}
                     or a.method = ?2 and a.state = 'issued' and a.deadline_at_ms > ?3))
             and (select count(*) from payment_attempts a
                 where a.reference_number = o.reference_number and a.method = ?2) < ?4",
        unsettled("a", "?3")
    );
    let given = params![
        attempt.reference_number.as_str(),
        attempt.instrument.method().code(),
        attempt.created_at.as_millisecond(),
        as_limit(TRIES_PER_METHOD_MAX),
    ];
    Ok(row(db, &sql, given, |row| row.get::<_, i64>(0))?.is_some())
}

pub(super) fn status(db: &Db<'_>, reference: &str) -> Result<Option<Status>> {
    let sql = "select status from orders where reference_number = ?1";
    let found: Option<String> = row(db, sql, [reference], |row| row.get(0))?;
    found.as_deref().map(read_status).transpose()
}

/// Its rail is to be told that a reference in this state is dead.
pub(super) fn withdraw(db: &Db<'_>, change: &Change) -> Result<()> {
    if let Some(paid) = &change.paid_by {
        // What was paid is not withdrawn in its time.
        let sql = "update withdrawals set due_at_ms = null where attempt_id = ?1";
        execute(db, sql, [paid.as_str()])?;
    }
    execute(
        db,
        &format!(
            "insert into withdrawals (attempt_id, reference_number, since_ms, due_at_ms)
         select id, reference_number, ?3, ?3 from payment_attempts
         where reference_number = ?1 and method = ?4 and id is not ?5
             and (state = ?2 or rail_id is not null and state in ('held', 'unknown')
                 or state = 'accepted' and ?5 is null)
         {SOONER}"
        ),
        params![
            change.reference_number.as_str(),
            change.closes_as().as_str(),
            change.stamp.at.as_millisecond(),
            PaymentMethod::BankReference.code(),
            change.paid_by.as_ref().map(AttemptId::as_str),
        ],
    )
    .map(drop)
}

/// The order is no longer offered, whatever may still come.
pub(super) fn withdraw_issued(db: &Db<'_>, reference: &str, at: Timestamp) -> Result<()> {
    execute(
        db,
        &format!(
            "insert into withdrawals (attempt_id, reference_number, since_ms, due_at_ms)
             select id, reference_number, ?2, ?2 from payment_attempts
             where reference_number = ?1 and method = ?3 and state = 'issued' {SOONER}"
        ),
        params![reference, at.as_millisecond(), PaymentMethod::BankReference.code()],
    )
    .map(drop)
}

pub(super) fn withdraw_one(db: &Db<'_>, step: &Step) -> Result<()> {
    execute(
        db,
        &format!(
            "insert into withdrawals (attempt_id, reference_number, since_ms, due_at_ms)
             values (?1, ?2, ?3, ?3) {SOONER}"
        ),
        params![step.attempt.as_str(), step.reference_number.as_str(), step.at.as_millisecond()],
    )
    .map(drop)
}

/// An order that lives on by something else does not keep its references alive: each is withdrawn in its time.
pub(super) fn withdraw_in_time(db: &Db<'_>, reference: &str) -> Result<()> {
    execute(
        db,
        "insert into withdrawals (attempt_id, reference_number, since_ms, due_at_ms)
         select a.id, reference_number, a.deadline_at_ms, a.deadline_at_ms
         from payment_attempts a join orders o using (reference_number)
         where reference_number = ?1 and a.method = ?2 and a.state = 'issued'
             and a.deadline_at_ms < o.expires_at_ms
         on conflict do nothing",
        [reference, PaymentMethod::BankReference.code()],
    )
    .map(drop)
}

/// In half a year somebody else may have its number.
pub(super) fn free_reference(db: &Db<'_>, attempt: &AttemptId, at: Timestamp) -> Result<()> {
    execute(
        db,
        "update bank_references set free_at_ms = ?2 where free_at_ms is null and attempt_id = ?1",
        params![attempt.as_str(), free_at_ms(at)],
    )
    .map(drop)
}

/// The references of an order are dead: in half a year somebody else may have them.
pub(super) fn free_references(db: &Db<'_>, reference: &str, at: Timestamp) -> Result<()> {
    execute(
        db,
        "update bank_references set free_at_ms = ?2
         where free_at_ms is null and attempt_id in (
             select id from payment_attempts where reference_number = ?1)",
        params![reference, free_at_ms(at)],
    )
    .map(drop)
}

fn request_cancel(
    db: &Db<'_>,
    reference: &ReferenceNumber,
    reason: CancelReason,
    stamp: &Stamp,
) -> Result<bool> {
    let noted = execute(
        db,
        &format!(
            "update orders set cancel_requested = ?2
             where reference_number = ?1 and status = 'PEN' and cancel_requested is null
                 and exists (select 1 from payment_attempts a
                     where a.reference_number = orders.reference_number and {})",
            unsettled("a", "?3")
        ),
        params![reference.as_str(), reason.as_str(), stamp.at.as_millisecond()],
    )?;
    if noted == 1 {
        execute(
            db,
            "insert into audit (at_ms, actor, action, subject, cause, request_id)
             values (?1, ?2, 'order.request_cancel', ?3, ?4, ?5)",
            params![
                stamp.at.as_millisecond(),
                stamp.actor.to_string(),
                reference.as_str(),
                format!("waits for the attempt in flight: {}", reason.as_str()),
                stamp.request_id,
            ],
        )?;
    }
    Ok(noted == 1)
}
