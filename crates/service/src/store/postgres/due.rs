//! What the clock brings, on PostgreSQL: deadlines, forecasts, queues of rails.

use jiff::Timestamp;
use tokio_postgres::Row;

use super::Postgres;
use super::{Param, many};
use crate::store::as_limit;
use crate::store::paying::ForecastRow;
use crate::store::{Due, Result};

impl Postgres {
    pub(in crate::store) async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<Due>> {
        let db = self.client().await?;
        let (until_ms, count) = (until.as_millisecond(), as_limit(limit));
        let given: [&Param<'_>; 2] = [&until_ms, &count];
        let forecasts = format!(
            "select {} from forecasts where due_at_ms <= $1 order by due_at_ms, id limit $2",
            ForecastRow::COLUMNS
        );
        let attempts = "select due_at_ms, id, reference_number from payment_attempts
                        where due_at_ms is not null and due_at_ms <= $1
                        order by due_at_ms limit $2";
        let orders = "select expires_at_ms, reference_number from orders
                      where status = 'PEN' and expires_at_ms <= $1
                      order by expires_at_ms limit $2";
        let queues = "select due_at_ms, rail from rail_queues where due_at_ms <= $1
                      order by due_at_ms limit $2";
        let mut lists: Vec<Vec<Due>> = Vec::new();
        let read = |rows: Vec<Row>, one: fn(&Row) -> Result<Due>| -> Result<Vec<Due>> {
            rows.iter().map(one).collect()
        };
        lists.push(read(many(&db, &forecasts, &given).await?, |row| forecast_row(row).read())?);
        lists.push(read(many(&db, attempts, &given).await?, |row| {
            Due::attempt(row.get(0), row.get(1), row.get(2))
        })?);
        let visits = "select due_at_ms, reference_number, nonce from checkout_visits
                      where due_at_ms is not null and due_at_ms <= $1
                      order by due_at_ms limit $2";
        lists.push(read(many(&db, visits, &given).await?, |row| {
            Due::visit(row.get(0), row.get(1), row.get(2))
        })?);
        lists.push(read(many(&db, orders, &given).await?, |row| {
            Due::order(row.get(0), row.get(1))
        })?);
        lists.push(read(many(&db, queues, &given).await?, |row| {
            Due::queue(row.get(0), row.get(1))
        })?);
        let withdrawals = "select due_at_ms, attempt_id, reference_number from withdrawals
                           where due_at_ms is not null and due_at_ms <= $1
                           order by due_at_ms limit $2";
        lists.push(read(many(&db, withdrawals, &given).await?, |row| {
            Due::withdrawal(row.get(0), row.get(1), row.get(2))
        })?);
        Ok(Due::merge(lists, limit))
    }
}

fn forecast_row(row: &Row) -> ForecastRow {
    ForecastRow {
        id: row.get(0),
        due_at_ms: row.get(1),
        rail: row.get(2),
        attempt_id: row.get(3),
        rail_payment_id: row.get(4),
        kind: row.get(5),
        amount_centimos: row.get(6),
        reason: row.get(7),
    }
}
