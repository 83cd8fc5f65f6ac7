//! One step of a payment attempt on SQLite: its row, its number, its order, its history.

use jiff::Timestamp;
use rusqlite::params;

use super::outbox::insert_event;
use super::paying::{free_reference, status, withdraw_in_time, withdraw_one};
use super::statements::{Db, execute, row};
use crate::domain::{
    AttemptId, AttemptState, BankReference, Instrument, OrderLives, Reason, Status, Step,
};
use crate::store::paying::{InstrumentColumns, reason_of};
use crate::store::{Result, Stepped};

/// Whether the number is free: never given out, or dead for long enough.
pub(super) fn reserve(
    db: &Db<'_>,
    bank: &BankReference,
    attempt: &AttemptId,
    at: Timestamp,
) -> Result<bool> {
    let sql = "insert into bank_references (entity, number, attempt_id) values (?1, ?2, ?3)
               on conflict (entity, number) do update
               set attempt_id = excluded.attempt_id, free_at_ms = null
               where free_at_ms <= ?4 or attempt_id = excluded.attempt_id";
    let given = params![bank.entity(), bank.number(), attempt.as_str(), at.as_millisecond()];
    Ok(execute(db, sql, given)? == 1)
}

pub(super) fn step(db: &Db<'_>, step: &Step) -> Result<Stepped> {
    if let Some(refused) = hold_number(db, step)? {
        return Ok(refused);
    }
    if !move_on(db, step)? {
        return Ok(Stepped::Lost);
    }
    give_number_back(db, step)?;
    let_order_live(db, step)?;
    wake_order(db, step)?;
    note(db, step)?;
    foretell(db, step)?;
    Ok(Stepped::Done { announced: announce(db, step)? })
}

/// The number of a reference is its own from now on. Who comes too late takes none.
fn hold_number(db: &Db<'_>, step: &Step) -> Result<Option<Stepped>> {
    if let Instrument::Reference(Some(bank)) = &step.instrument
        && !step.to.is_over()
    {
        let stands = "select 1 from payment_attempts where id = ?1 and state = ?2";
        let given = [step.attempt.as_str(), step.from.as_str()];
        if row(db, stands, given, |row| row.get::<_, i64>(0))?.is_none() {
            return Ok(Some(Stepped::Lost));
        }
        if !reserve(db, bank, &step.attempt, step.at)? {
            return Ok(Some(Stepped::ReferenceTaken));
        }
    }
    Ok(None)
}

fn move_on(db: &Db<'_>, step: &Step) -> Result<bool> {
    let columns = InstrumentColumns::of(&step.instrument);
    let at_ms = step.at.as_millisecond();
    let moved = execute(
        db,
        "update payment_attempts set state = ?3, reason = ?4, rail_id = ?5, entity = ?6,
             bank_reference = ?7, code = ?8, link = ?9, deadline_at_ms = ?10, due_at_ms = ?11,
             polls = ?12, updated_at_ms = ?13
         where id = ?1 and state = ?2",
        params![
            step.attempt.as_str(),
            step.from.as_str(),
            step.to.as_str(),
            step.reason.as_ref().map(Reason::to_text),
            step.rail_id,
            columns.entity,
            columns.bank_reference,
            columns.code,
            columns.link,
            step.deadline.as_millisecond(),
            step.due_at.map(Timestamp::as_millisecond),
            step.polls,
            at_ms,
        ],
    )?;
    Ok(moved == 1)
}

/// Of a reference that is over, or that was issued too late: its order ended while its rail was called.
fn give_number_back(db: &Db<'_>, step: &Step) -> Result<()> {
    if matches!(step.instrument, Instrument::Reference(_)) && step.to.is_over() {
        free_reference(db, &step.attempt, step.at)?;
        if step.by_hand && step.rail_id.is_some() {
            withdraw_one(db, step)?;
        }
    }
    let reference = step.reference_number.as_str();
    if step.to == AttemptState::Issued && status(db, reference)? != Some(Status::Pending) {
        free_reference(db, &step.attempt, step.at)?;
        if matches!(step.instrument, Instrument::Reference(_)) {
            withdraw_one(db, step)?;
        }
    }
    Ok(())
}

/// An order lives as long as what can be paid for it.
fn let_order_live(db: &Db<'_>, step: &Step) -> Result<()> {
    let reference = step.reference_number.as_str();
    let Some(lives) = step.order_lives() else { return Ok(()) };
    let at_least = match lives {
        OrderLives::UntilThen => {
            "(select max(deadline_at_ms) from payment_attempts
              where reference_number = ?1 and state = 'issued')"
        }
        OrderLives::AtLeastUntilThen => "expires_at_ms",
    };
    let sql = format!(
        "update orders set expires_at_ms = max(?2, coalesce({at_least}, 0))
         where reference_number = ?1 and status = 'PEN' and closing_at_ms is null
             and cancel_requested is null"
    );
    execute(db, &sql, params![reference, step.deadline.as_millisecond()])?;
    withdraw_in_time(db, reference)
}

/// What waited for this attempt waits no longer.
fn wake_order(db: &Db<'_>, step: &Step) -> Result<()> {
    if step.to.is_in_flight() {
        return Ok(());
    }
    let reference = step.reference_number.as_str();
    let at_ms = step.at.as_millisecond();
    execute(
        db,
        "update orders set expires_at_ms = ?2 where reference_number = ?1 and status = 'PEN'
             and (cancel_requested is not null or closing_at_ms is not null)",
        params![reference, at_ms],
    )?;
    Ok(())
}

fn note(db: &Db<'_>, step: &Step) -> Result<()> {
    if step.from == step.to {
        return Ok(());
    }
    let reference = step.reference_number.as_str();
    let at_ms = step.at.as_millisecond();
    execute(
        db,
        "insert into audit (at_ms, actor, action, subject, before, after, cause, request_id)
         values (?1, 'service', 'attempt.step', ?2, ?3, ?4, ?5, '')",
        params![at_ms, reference, step.from.as_str(), step.to.as_str(), step.cause()],
    )?;
    Ok(())
}

/// What a simulated rail is going to say.
fn foretell(db: &Db<'_>, step: &Step) -> Result<()> {
    for forecast in &step.forecast {
        execute(
            db,
            "insert into forecasts (due_at_ms, rail, attempt_id, reference_number,
                 rail_payment_id, kind, amount_centimos, reason)
             select ?1, rail, id, reference_number, ?3, ?4, ?5, ?6
             from payment_attempts where id = ?2",
            params![
                forecast.at.as_millisecond(),
                step.attempt.as_str(),
                forecast.rail_payment_id,
                forecast.word.kind(),
                forecast.word.amount().get(),
                reason_of(&forecast.word),
            ],
        )?;
    }
    Ok(())
}

/// The `PEN` event, once per order and only while it is pending and nobody gave it up.
fn announce(db: &Db<'_>, step: &Step) -> Result<bool> {
    let Some(event) = &step.event else { return Ok(false) };
    let told: Option<i64> = row(
        db,
        "select 1 from orders o where reference_number = ?1 and (status <> 'PEN'
             or cancel_requested is not null
             or exists (select 1 from outbox e where e.reference_number = o.reference_number))",
        [step.reference_number.as_str()],
        |row| row.get(0),
    )?;
    if told.is_some() {
        return Ok(false);
    }
    insert_event(db, &step.reference_number, event)?;
    Ok(true)
}
