//! One step of a payment attempt on PostgreSQL: its row, its number, its order, its history.

use deadpool_postgres::GenericClient;
use jiff::Timestamp;

use super::outbox::insert_event;
use super::paying::{free_reference, withdraw_in_time, withdraw_one};
use super::{Param, Told, change, one};
use crate::domain::{AttemptId, AttemptState, BankReference, Instrument, OrderLives, Reason, Step};
use crate::store::Stepped;
use crate::store::paying::{InstrumentColumns, reason_of};

/// Whether the number is free: never given out, or dead for long enough.
pub(super) async fn reserve(
    db: &impl GenericClient,
    bank: &BankReference,
    attempt: &AttemptId,
    at: Timestamp,
) -> Told<bool> {
    let sql = "insert into bank_references as b (entity, number, attempt_id) values ($1, $2, $3)
               on conflict (entity, number) do update
               set attempt_id = excluded.attempt_id, free_at_ms = null
               where b.free_at_ms <= $4 or b.attempt_id = excluded.attempt_id";
    let given: [&Param<'_>; 4] =
        [&bank.entity(), &bank.number(), &attempt.as_str(), &at.as_millisecond()];
    Ok(change(db, sql, &given).await? == 1)
}

/// The order's row is held by the caller.
pub(super) async fn step(db: &impl GenericClient, step: &Step) -> Told<Stepped> {
    if let Some(refused) = hold_number(db, step).await? {
        return Ok(refused);
    }
    if !move_on(db, step).await? {
        return Ok(Stepped::Lost);
    }
    give_number_back(db, step).await?;
    let_order_live(db, step).await?;
    wake_order(db, step).await?;
    note(db, step).await?;
    foretell(db, step).await?;
    Ok(Stepped::Done { announced: announce(db, step).await? })
}

/// The number of a reference is its own from now on. Who comes too late takes none.
async fn hold_number(db: &impl GenericClient, step: &Step) -> Told<Option<Stepped>> {
    if let Instrument::Reference(Some(bank)) = &step.instrument
        && !step.to.is_over()
    {
        let stands = "select 1 from payment_attempts where id = $1 and state = $2";
        if one(db, stands, &[&step.attempt.as_str(), &step.from.as_str()]).await?.is_none() {
            return Ok(Some(Stepped::Lost));
        }
        if !reserve(db, bank, &step.attempt, step.at).await? {
            return Ok(Some(Stepped::ReferenceTaken));
        }
    }
    Ok(None)
}

async fn move_on(db: &impl GenericClient, step: &Step) -> Told<bool> {
    let columns = InstrumentColumns::of(&step.instrument);
    let at_ms = step.at.as_millisecond();
    let moved = change(
        db,
        "update payment_attempts set state = $3, reason = $4, rail_id = $5, entity = $6,
             bank_reference = $7, code = $8, link = $9, deadline_at_ms = $10, due_at_ms = $11,
             polls = $12, updated_at_ms = $13
         where id = $1 and state = $2",
        &[
            &step.attempt.as_str(),
            &step.from.as_str(),
            &step.to.as_str(),
            &step.reason.as_ref().map(Reason::to_text),
            &step.rail_id,
            &columns.entity,
            &columns.bank_reference,
            &columns.code,
            &columns.link,
            &step.deadline.as_millisecond(),
            &step.due_at.map(Timestamp::as_millisecond),
            &i64::from(step.polls),
            &at_ms,
        ],
    )
    .await?;
    Ok(moved == 1)
}

/// Of a reference that is over, or that was issued too late: its order ended while its rail was called.
async fn give_number_back(db: &impl GenericClient, step: &Step) -> Told<()> {
    if matches!(step.instrument, Instrument::Reference(_)) && step.to.is_over() {
        free_reference(db, step).await?;
        if step.by_hand && step.rail_id.is_some() {
            withdraw_one(db, step).await?;
        }
    }
    let reference = step.reference_number.as_str();
    let pending = "select 1 from orders where reference_number = $1 and status = 'PEN'";
    if step.to == AttemptState::Issued && one(db, pending, &[&reference]).await?.is_none() {
        free_reference(db, step).await?;
        if matches!(step.instrument, Instrument::Reference(_)) {
            withdraw_one(db, step).await?;
        }
    }
    Ok(())
}

/// An order lives as long as what can be paid for it.
async fn let_order_live(db: &impl GenericClient, step: &Step) -> Told<()> {
    let reference = step.reference_number.as_str();
    let Some(lives) = step.order_lives() else { return Ok(()) };
    let at_least = match lives {
        OrderLives::UntilThen => {
            "(select max(deadline_at_ms) from payment_attempts
              where reference_number = $1 and state = 'issued')"
        }
        OrderLives::AtLeastUntilThen => "expires_at_ms",
    };
    let sql = format!(
        "update orders set expires_at_ms = greatest($2, {at_least})
         where reference_number = $1 and status = 'PEN' and closing_at_ms is null
             and cancel_requested is null"
    );
    change(db, &sql, &[&reference, &step.deadline.as_millisecond()]).await?;
    withdraw_in_time(db, reference).await
}

/// What waited for this attempt waits no longer.
async fn wake_order(db: &impl GenericClient, step: &Step) -> Told<()> {
    if step.to.is_in_flight() {
        return Ok(());
    }
    let reference = step.reference_number.as_str();
    let at_ms = step.at.as_millisecond();
    let sql = "update orders set expires_at_ms = $2
               where reference_number = $1 and status = 'PEN'
                   and (cancel_requested is not null or closing_at_ms is not null)";
    change(db, sql, &[&reference, &at_ms]).await?;
    Ok(())
}

async fn note(db: &impl GenericClient, step: &Step) -> Told<()> {
    if step.from == step.to {
        return Ok(());
    }
    let reference = step.reference_number.as_str();
    let at_ms = step.at.as_millisecond();
    let sql = "insert into audit (at_ms, actor, action, subject, before, after, cause,
                   request_id)
               values ($1, 'service', 'attempt.step', $2, $3, $4, $5, '')";
    let given: [&Param<'_>; 5] =
        [&at_ms, &reference, &step.from.as_str(), &step.to.as_str(), &step.cause()];
    change(db, sql, &given).await?;
    Ok(())
}

/// What a simulated rail is going to say.
async fn foretell(db: &impl GenericClient, step: &Step) -> Told<()> {
    for forecast in &step.forecast {
        change(
            db,
            "insert into forecasts (due_at_ms, rail, attempt_id, reference_number,
                 rail_payment_id, kind, amount_centimos, reason)
             select $1, rail, id, reference_number, $3, $4, $5, $6
             from payment_attempts where id = $2",
            &[
                &forecast.at.as_millisecond(),
                &step.attempt.as_str(),
                &forecast.rail_payment_id,
                &forecast.word.kind(),
                &forecast.word.amount().get(),
                &reason_of(&forecast.word),
            ],
        )
        .await?;
    }
    Ok(())
}

/// The `PEN` event, once per order and only while it is pending and nobody gave it up.
async fn announce(db: &impl GenericClient, step: &Step) -> Told<bool> {
    let Some(event) = &step.event else { return Ok(false) };
    let told = "select 1 from orders o where reference_number = $1 and (status <> 'PEN'
                    or cancel_requested is not null
                    or exists (select 1 from outbox e
                        where e.reference_number = o.reference_number))";
    if one(db, told, &[&step.reference_number.as_str()]).await?.is_some() {
        return Ok(false);
    }
    insert_event(db, &step.reference_number, event).await?;
    Ok(true)
}
