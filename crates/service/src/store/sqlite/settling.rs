//! How orders end on SQLite: changes, the notices that cause them, and what fits no order.

use rusqlite::params;

use super::Sqlite;
use super::exceptions::{is_open, resolve};
use super::outbox::{insert_event, supersede};
use super::paying::{free_references, status, withdraw};
use super::statements::{Db, execute, row, rows};
use super::stepping::step;
use crate::domain::{
    AttemptId, Centimos, Change, Effect, ExceptionKind, ReferenceNumber, Status, Word,
};
use crate::store::paying::{self, Heard, Known, unsettled};
use crate::store::{
    Committed, Receipt, Received, Reception, Resolved, Result, Stepped, StoreError, Unreceived,
};

impl Sqlite {
    pub(in crate::store) async fn commit(&self, change: Change) -> Result<Committed> {
        self.writer.run_compound(move |db| commit(db, &change)).await
    }

    pub(in crate::store) async fn receive(&self, receipt: Receipt) -> Result<Reception> {
        self.writer.run_compound(move |db| receive(db, &receipt)).await
    }
}

/// The compare-and-set decides: whoever finds the row pending wins, and brings audit and event along.
fn commit(db: &Db<'_>, change: &Change) -> Result<Committed> {
    let reference = change.reference_number.as_str();
    let at_ms = change.stamp.at.as_millisecond();
    let refused = match change.accepts {
        // Of an order that has ended there is nothing to refuse: it is lost.
        Some(exception) => {
            !is_open(db, exception)? && status(db, reference)? == Some(Status::Pending)
        }
        None => change.to == Status::Cancelled && is_unsettled(db, change)?,
    };
    if refused || has_changed(db, change)? {
        return Ok(Committed::Refused);
    }
    let moved = execute(
        db,
        "update orders set status = ?1, settled_at_ms = ?2
         where reference_number = ?3 and status = 'PEN'",
        params![change.to.code(), at_ms, reference],
    )?;
    if moved == 0 {
        return Ok(status(db, reference)?.map_or(Committed::NoSuchOrder, Committed::Lost));
    }
    execute(
        db,
        "insert into audit (at_ms, actor, action, subject, before, after, cause, request_id)
         values (?1, ?2, 'order.settle', ?3, 'PEN', ?4, ?5, ?6)",
        params![
            at_ms,
            change.stamp.actor.to_string(),
            reference,
            change.to.code(),
            change.cause,
            change.stamp.request_id,
        ],
    )?;
    supersede(db, &change.reference_number)?;
    insert_event(db, &change.reference_number, &change.event)?;
    close_attempts(db, change)?;
    if let Some((exception, resolved)) = Resolved::with(change) {
        resolve(db, exception, &resolved)?;
    }
    Ok(Committed::Done)
}

fn is_unsettled(db: &Db<'_>, change: &Change) -> Result<bool> {
    let sql = format!(
        "select 1 from payment_attempts p join orders o using (reference_number)
         where reference_number = ?1 and o.status = 'PEN' and {}",
        unsettled("p", "?2")
    );
    let given = params![change.reference_number.as_str(), change.stamp.at.as_millisecond()];
    Ok(row(db, &sql, given, |row| row.get::<_, i64>(0))?.is_some())
}

fn has_changed(db: &Db<'_>, change: &Change) -> Result<bool> {
    let Some(only_if) = change.only_if else { return Ok(false) };
    let sql = format!(
        "select 1 from orders o where reference_number = ?1 and status = 'PEN' and {}",
        paying::has_changed("o", "?2")
    );
    let given = params![change.reference_number.as_str(), paying::deadline_ms(only_if)];
    Ok(row(db, &sql, given, |row| row.get::<_, i64>(0))?.is_some())
}

/// The attempt that brought the money is accepted (without one, the held one that an operator accepts);
/// whatever else could be paid is not any more.
fn close_attempts(db: &Db<'_>, change: &Change) -> Result<()> {
    let reference = change.reference_number.as_str();
    let closed = execute(
        db,
        "update payment_attempts set updated_at_ms = ?4,
             due_at_ms = case when state = 'unknown' and id is not ?2 then due_at_ms end,
             state = case when id is ?2 then 'accepted' when state = 'issued' then ?3
                 when state = 'held' and ?2 is null then 'accepted' else state end
         where reference_number = ?1 and (id is ?2 or state in ('issued', 'held', 'unknown'))",
        params![
            reference,
            change.paid_by.as_ref().map(AttemptId::as_str),
            change.closes_as().as_str(),
            change.stamp.at.as_millisecond(),
        ],
    )?;
    if closed > 0 {
        free_references(db, reference, change.stamp.at)?;
        withdraw(db, change)?;
    }
    Ok(())
}

fn receive(db: &Db<'_>, receipt: &Receipt) -> Result<Reception> {
    match heard(db, receipt)? {
        (Heard::Never, _) => {}
        (Heard::Otherwise, _) => return Ok(Err(Unreceived::IdReused)),
        (Heard::Before, stored) => {
            let sql = "update receipts set duplicates = duplicates + 1 where rowid = ?1";
            execute(db, sql, [stored])?;
            return Ok(Ok(Received::Duplicate));
        }
    }
    let reception = take_effect(db, receipt)?;
    if let Ok(received) = reception {
        insert_receipt(db, receipt, received)?;
    }
    Ok(reception)
}

/// Whether we have heard of this payment, and the row that says so.
fn heard(db: &Db<'_>, receipt: &Receipt) -> Result<(Heard, Option<i64>)> {
    let notice = &receipt.notice;
    let of_this_id = rows(
        db,
        "select kind, rowid, amount_centimos, reference_number, attempt_id from receipts
         where rail = ?1 and rail_payment_id = ?2",
        [notice.rail.as_str(), &notice.rail_payment_id],
        |row| {
            let known = Known {
                amount: Centimos::new(row.get(2)?),
                reference_number: row.get(3)?,
                attempt: row.get(4)?,
            };
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, known))
        },
    )?;
    let stored = of_this_id.iter().find(|(kind, ..)| kind == notice.word.kind());
    let was_reversed = of_this_id.iter().any(|(kind, ..)| kind == Word::REVERSAL);
    let heard = receipt.was_heard(stored.map(|(.., known)| known), was_reversed);
    Ok((heard, stored.map(|(_, rowid, _)| *rowid)))
}

fn take_effect(db: &Db<'_>, receipt: &Receipt) -> Result<Reception> {
    Ok(Ok(match &receipt.effect {
        Effect::Confirm(change) => match commit(db, change)? {
            Committed::Done => Received::Confirmed,
            Committed::Lost(status) => {
                let (kind, detail) = ExceptionKind::of_lost(status);
                except(db, receipt, kind, &detail)?
            }
            Committed::Refused | Committed::NoSuchOrder => {
                return Err(StoreError::Unknown("the order of a payment"));
            }
        },
        Effect::Step(change) => match step(db, change)? {
            Stepped::Done { .. } => Received::Noted,
            // Nothing is written yet.
            Stepped::Lost | Stepped::ReferenceTaken => return Ok(Err(Unreceived::Changed)),
        },
        Effect::Exception { kind, detail } => {
            let status = match &receipt.reference_number {
                Some(order) => status(db, order.as_str())?,
                None => None,
            };
            except(db, receipt, kind.weigh_again(status), detail)?
        }
        Effect::Nothing => Received::Noted,
    }))
}

fn insert_receipt(db: &Db<'_>, receipt: &Receipt, received: Received) -> Result<()> {
    let notice = &receipt.notice;
    execute(
        db,
        "insert into receipts (rail, rail_payment_id, kind, attempt_id, reference_number,
             amount_centimos, outcome, raw, call_id, received_at_ms)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            notice.rail,
            notice.rail_payment_id,
            notice.word.kind(),
            receipt.attempt.as_ref().map(AttemptId::as_str),
            receipt.reference_number.as_ref().map(ReferenceNumber::as_str),
            notice.word.amount().get(),
            received.outcome(),
            notice.raw,
            receipt.stamp.event_id.as_str(),
            receipt.stamp.at.as_millisecond(),
        ],
    )?;
    Ok(())
}

fn except(db: &Db<'_>, receipt: &Receipt, kind: ExceptionKind, detail: &str) -> Result<Received> {
    let (notice, at_ms) = (&receipt.notice, receipt.stamp.at.as_millisecond());
    let order = receipt.reference_number.as_ref().map(ReferenceNumber::as_str);
    let entered = execute(
        db,
        "insert into exceptions (kind, notice, application_id, reference_number, rail,
             rail_payment_id, amount_centimos, detail, created_at_ms)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) on conflict do nothing",
        params![
            kind.as_str(),
            notice.word.kind(),
            receipt.application.map(|id| id.0),
            order,
            notice.rail,
            notice.rail_payment_id,
            notice.word.amount().get(),
            detail,
            at_ms,
        ],
    )?;
    if entered > 0 {
        // In the sealed history: money that waits for a person cannot be made to vanish.
        execute(
            db,
            "insert into audit (at_ms, actor, action, subject, after, cause, request_id)
             values (?1, ?2, 'exception.enter', ?3, ?4, ?5, ?6)",
            params![
                at_ms,
                receipt.stamp.actor.to_string(),
                order.unwrap_or(&notice.rail_payment_id),
                kind.as_str(),
                detail,
                receipt.stamp.request_id,
            ],
        )?;
    }
    if let (Some(state), Some(attempt)) = (kind.leaves(), &receipt.attempt) {
        execute(
            db,
            "update payment_attempts set state = ?3, due_at_ms = null, updated_at_ms = ?2
             where id = ?1 and (?3 = 'held' or state in ('submitted', 'awaiting_payer', 'unknown',
                 'issued'))",
            params![attempt.as_str(), at_ms, state.as_str()],
        )?;
    }
    Ok(Received::Exception(kind))
}
