//! Exceptions: money that fits no order, and what operators did about it.

use jiff::Timestamp;

use super::as_limit;
use super::looking::{Scope, condition};
use super::portable::{Cells, Statement, Value, values};
use super::records::read_reference;
use super::{Result, Store, StoreError};
use crate::domain::{Centimos, Change, ExceptionKind, ReferenceNumber};

/// Which exceptions; conditions are joined by "and".
#[derive(Clone, Debug, Default)]
pub struct ExceptionFilter {
    pub scope: Scope,
    pub id: Option<i64>,
    /// Older than the one with this id.
    pub before: Option<i64>,
    pub kind: Option<ExceptionKind>,
    pub reference_number: Option<ReferenceNumber>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// Also those an operator has dealt with.
    pub resolved_too: bool,
}

impl ExceptionFilter {
    fn statement(&self, limit: usize) -> Statement {
        let mut values = values![as_limit(limit)];
        let mut matches = condition(&self.scope, &mut values);
        let mut and = |matching: &str, value: Option<Value>| {
            if let Some(value) = value {
                values.push(value);
                matches += &format!(" and {matching} ?{}", values.len());
            }
        };
        and("id =", self.id.map(Value::from));
        and("id <", self.before.map(Value::from));
        and("kind =", self.kind.map(|kind| kind.as_str().into()));
        and("created_at_ms >=", self.since.map(|at| at.as_millisecond().into()));
        and("created_at_ms <", self.until.map(|at| at.as_millisecond().into()));
        and(
            "reference_number =",
            self.reference_number.as_ref().map(|order| order.as_str().into()),
        );
        if !self.resolved_too {
            matches += " and resolved_at_ms is null";
        }
        let sql = format!(
            "select id, kind, reference_number, rail, rail_payment_id, amount_centimos, detail,
                 created_at_ms, resolved_at_ms, resolved_by, resolution
             from exceptions where true{matches} order by id desc limit ?1"
        );
        Statement::new(sql, values)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExceptionRecord {
    pub id: i64,
    pub kind: ExceptionKind,
    pub reference_number: Option<ReferenceNumber>,
    pub rail: String,
    pub rail_payment_id: String,
    pub amount: Centimos,
    pub detail: String,
    pub created_at: Timestamp,
    pub resolved: Option<Resolved>,
}

impl ExceptionRecord {
    fn read(cells: &mut Cells) -> Result<Self> {
        let id = cells.integer()?;
        let kind = cells.text()?;
        Ok(Self {
            id,
            kind: ExceptionKind::from_text(&kind)
                .ok_or_else(|| StoreError::Corrupt(format!("exception {kind}")))?,
            reference_number: cells.maybe_text()?.as_deref().map(read_reference).transpose()?,
            rail: cells.text()?,
            rail_payment_id: cells.text()?,
            amount: Centimos::new(cells.integer()?),
            detail: cells.text()?,
            created_at: cells.time()?,
            resolved: match cells.maybe_time()? {
                Some(at) => Some(Resolved {
                    at,
                    by: cells.maybe_text()?.unwrap_or_default(),
                    resolution: cells.maybe_text()?.unwrap_or_default(),
                }),
                None => None,
            },
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub at: Timestamp,
    pub by: String,
    pub resolution: String,
}

impl Resolved {
    /// What a change resolves by itself, and how.
    pub(super) fn with(change: &Change) -> Option<(i64, Self)> {
        let (at, by) = (change.stamp.at, change.stamp.actor.to_string());
        change.accepts.map(|id| (id, Self { at, by, resolution: change.cause.clone() }))
    }
}

impl Store {
    /// The newest first.
    pub async fn exceptions(
        &self,
        filter: ExceptionFilter,
        limit: usize,
    ) -> Result<Vec<ExceptionRecord>> {
        self.select(filter.statement(limit), ExceptionRecord::read).await
    }
}
