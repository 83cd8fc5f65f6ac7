//! What the clock brings, on SQLite: deadlines, forecasts, queues of rails.

use jiff::Timestamp;
use rusqlite::{Row, params};

use super::Sqlite;
use super::paying::withdraw_issued;
use super::statements::{Db, execute, rows};
use crate::domain::ReferenceNumber;
use crate::store::as_limit;
use crate::store::paying::ForecastRow;
use crate::store::{Due, Result};

impl Sqlite {
    pub(in crate::store) async fn postpone(
        &self,
        reference: &ReferenceNumber,
        seen: Option<Timestamp>,
        until: Timestamp,
        closing_since: Option<Timestamp>,
    ) -> Result<()> {
        let reference = reference.clone();
        let sql =
            "update orders set expires_at_ms = ?2, closing_at_ms = coalesce(closing_at_ms, ?3)
                   where reference_number = ?1 and status = 'PEN'
                       and expires_at_ms = coalesce(?4, expires_at_ms)";
        self.writer
            .run_compound(move |db| {
                let closing = closing_since.map(Timestamp::as_millisecond);
                let seen = seen.map(Timestamp::as_millisecond);
                let given = params![reference.as_str(), until.as_millisecond(), closing, seen];
                let moved = execute(db, sql, given)?;
                match closing_since {
                    Some(at) if moved > 0 => withdraw_issued(db, reference.as_str(), at),
                    _ => Ok(()),
                }
            })
            .await
    }

    pub(in crate::store) async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<Due>> {
        self.reader.run(move |db| due(db, until.as_millisecond(), limit)).await
    }
}

fn due(db: &Db<'_>, until_ms: i64, limit: usize) -> Result<Vec<Due>> {
    let given = params![until_ms, as_limit(limit)];
    let orders = rows(
        db,
        "select expires_at_ms, reference_number from orders
         where status = 'PEN' and expires_at_ms <= ?1 order by expires_at_ms limit ?2",
        given,
        |row| Ok(Due::order(row.get(0)?, row.get_ref(1)?.as_str()?)),
    )?;
    let attempts = rows(
        db,
        "select due_at_ms, id, reference_number from payment_attempts
         where due_at_ms is not null and due_at_ms <= ?1 order by due_at_ms limit ?2",
        given,
        |row| Ok(Due::attempt(row.get(0)?, row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?)),
    )?;
    let forecasts = rows(
        db,
        &format!(
            "select {} from forecasts where due_at_ms <= ?1 order by due_at_ms, id limit ?2",
            ForecastRow::COLUMNS
        ),
        given,
        |row| Ok(forecast_row(row)?.read()),
    )?;
    let queues = rows(
        db,
        "select due_at_ms, rail from rail_queues where due_at_ms <= ?1
         order by due_at_ms limit ?2",
        given,
        |row| Ok(Due::queue(row.get(0)?, row.get(1)?)),
    )?;
    let visits = rows(
        db,
        "select due_at_ms, reference_number, nonce from checkout_visits
         where due_at_ms is not null and due_at_ms <= ?1 order by due_at_ms limit ?2",
        given,
        |row| Ok(Due::visit(row.get(0)?, row.get_ref(1)?.as_str()?, row.get(2)?)),
    )?;
    let withdrawals = rows(
        db,
        "select due_at_ms, attempt_id, reference_number from withdrawals
         where due_at_ms is not null and due_at_ms <= ?1 order by due_at_ms limit ?2",
        given,
        |row| {
            let (id, reference) = (row.get_ref(1)?, row.get_ref(2)?);
            Ok(Due::withdrawal(row.get(0)?, id.as_str()?, reference.as_str()?))
        },
    )?;
    let lists = [forecasts, attempts, visits, orders, queues, withdrawals]
        .into_iter()
        .map(|list| list.into_iter().collect::<Result<Vec<Due>>>())
        .collect::<Result<Vec<_>>>()?;
    Ok(Due::merge(lists, limit))
}

fn forecast_row(row: &Row<'_>) -> rusqlite::Result<ForecastRow> {
    Ok(ForecastRow {
        id: row.get(0)?,
        due_at_ms: row.get(1)?,
        rail: row.get(2)?,
        attempt_id: row.get(3)?,
        rail_payment_id: row.get(4)?,
        kind: row.get(5)?,
        amount_centimos: row.get(6)?,
        reason: row.get(7)?,
    })
}
