//! Dead references that rails are to be told of. Each change compares the moment it was due: of two nodes
//! one does it.

use jiff::Timestamp;

use super::portable::{Statement, values};
use super::{Result, Store};
use crate::domain::AttemptId;

impl Store {
    /// Looks again at `next`.
    pub async fn withdraw_at(
        &self,
        id: &AttemptId,
        due: Timestamp,
        next: Timestamp,
    ) -> Result<bool> {
        let sql = "update withdrawals set due_at_ms = ?3 where attempt_id = ?1 and due_at_ms = ?2";
        self.transact(vec![Statement::new(sql, values![id.as_str(), due, next])]).await
    }

    /// As `withdraw_at`, if it has been due only since then.
    pub async fn withdraw_again(
        &self,
        id: &AttemptId,
        due: Timestamp,
        next: Timestamp,
        since: Timestamp,
    ) -> Result<bool> {
        let sql = "update withdrawals set due_at_ms = ?3
                   where attempt_id = ?1 and due_at_ms = ?2 and since_ms >= ?4";
        self.transact(vec![Statement::new(sql, values![id.as_str(), due, next, since])]).await
    }

    /// Nothing more is to be told.
    pub async fn withdrawn(&self, id: &AttemptId, due: Timestamp) -> Result<bool> {
        let sql =
            "update withdrawals set due_at_ms = null where attempt_id = ?1 and due_at_ms = ?2";
        self.transact(vec![Statement::new(sql, values![id.as_str(), due])]).await
    }
}
