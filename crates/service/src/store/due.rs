//! What the clock brings: deadlines, attempts to follow, forecasts, windows that were left, queues of rails.

use jiff::Timestamp;

use super::paying::read_attempt_id;
use super::portable::{Cells, Statement, each, values};
use super::records::read_reference;
use super::{Result, Store, StoreError, as_limit};
use crate::domain::{About, AttemptId, Centimos, Notice, ReferenceNumber, Word};

/// Something whose time has come.
#[derive(Clone, Debug)]
pub struct Due {
    pub at: Timestamp,
    pub work: DueWork,
}

impl Due {
    /// The order whose deadline it is, if it is one.
    pub fn deadline(&self) -> Option<&ReferenceNumber> {
        match &self.work {
            DueWork::Order(reference) => Some(reference),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub enum DueWork {
    Order(ReferenceNumber),
    Attempt {
        id: AttemptId,
        reference_number: ReferenceNumber,
    },
    /// What a simulated rail says.
    Forecast {
        id: i64,
        notice: Notice,
    },
    /// A window the payer left.
    Visit {
        reference_number: ReferenceNumber,
        nonce: String,
    },
    /// A rail is to be told that a reference is dead.
    Withdrawal {
        id: AttemptId,
        reference_number: ReferenceNumber,
    },
    /// A rail's queue is to be read.
    Queue {
        rail: String,
    },
}

impl Store {
    /// What is due by then, by time.
    pub async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<Due>> {
        let list = |sql: &str| Statement::new(sql, values![until, as_limit(limit)]);
        let [forecasts, attempts, visits, orders, queues, withdrawals] = self
            .read([
                list(
                    "select due_at_ms, id, rail, attempt_id, rail_payment_id, kind, amount_centimos,
                         reason
                     from forecasts where due_at_ms <= ?1 order by due_at_ms, id limit ?2",
                ),
                list(
                    "select due_at_ms, id, reference_number from payment_attempts
                     where due_at_ms is not null and due_at_ms <= ?1 order by due_at_ms limit ?2",
                ),
                list(
                    "select due_at_ms, reference_number, nonce from checkout_visits
                     where due_at_ms is not null and due_at_ms <= ?1 order by due_at_ms limit ?2",
                ),
                list(
                    "select expires_at_ms, reference_number from orders
                     where status = 'PEN' and expires_at_ms <= ?1 order by expires_at_ms limit ?2",
                ),
                list(
                    "select due_at_ms, rail from rail_queues where due_at_ms <= ?1
                     order by due_at_ms limit ?2",
                ),
                list(
                    "select due_at_ms, attempt_id, reference_number from withdrawals
                     where due_at_ms is not null and due_at_ms <= ?1 order by due_at_ms limit ?2",
                ),
            ])
            .await?;
        let mut all = each(forecasts, |row| due(row, forecast))?;
        all.extend(each(attempts, |row| due(row, attempt))?);
        all.extend(each(visits, |row| due(row, visit))?);
        all.extend(each(orders, |row| due(row, order))?);
        all.extend(each(queues, |row| due(row, queue))?);
        all.extend(each(withdrawals, |row| due(row, withdrawal))?);
        all.sort_by_key(|due| due.at);
        all.truncate(limit);
        Ok(all)
    }
}

fn due(cells: &mut Cells, work: fn(&mut Cells) -> Result<DueWork>) -> Result<Due> {
    Ok(Due { at: cells.time()?, work: work(cells)? })
}

fn order(cells: &mut Cells) -> Result<DueWork> {
    Ok(DueWork::Order(read_reference(&cells.text()?)?))
}

fn attempt(cells: &mut Cells) -> Result<DueWork> {
    Ok(DueWork::Attempt {
        id: read_attempt_id(&cells.text()?)?,
        reference_number: read_reference(&cells.text()?)?,
    })
}

fn visit(cells: &mut Cells) -> Result<DueWork> {
    let reference_number = read_reference(&cells.text()?)?;
    Ok(DueWork::Visit { reference_number, nonce: cells.text()? })
}

fn withdrawal(cells: &mut Cells) -> Result<DueWork> {
    Ok(DueWork::Withdrawal {
        id: read_attempt_id(&cells.text()?)?,
        reference_number: read_reference(&cells.text()?)?,
    })
}

fn queue(cells: &mut Cells) -> Result<DueWork> {
    Ok(DueWork::Queue { rail: cells.text()? })
}

fn forecast(cells: &mut Cells) -> Result<DueWork> {
    let (id, rail, attempt) = (cells.integer()?, cells.text()?, cells.text()?);
    let (rail_payment_id, kind) = (cells.text()?, cells.text()?);
    let (amount, reason) = (Centimos::new(cells.integer()?), cells.maybe_text()?);
    let word = Word::read(&kind, || Some(amount), reason.as_deref())
        .ok_or_else(|| StoreError::Corrupt(format!("forecast {kind}")))?;
    let notice = Notice {
        rail,
        raw: format!("{kind} {rail_payment_id}").into_bytes(),
        rail_payment_id,
        about: About::Attempt(read_attempt_id(&attempt)?),
        word,
    };
    Ok(DueWork::Forecast { id, notice })
}
