//! The history: who did what, and the seals that keep it honest.

use std::time::Duration;

use jiff::Timestamp;

use super::portable::{Cells, Statement, values};
use super::{Engine, Result, Store, as_limit};
use crate::domain::Author;

/// A row of the history as it is sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: i64,
    pub at: Timestamp,
    pub actor: String,
    pub action: String,
    pub subject: String,
    pub before: Option<String>,
    pub after: Option<String>,
    pub cause: String,
    pub request_id: String,
}

/// What a row of the history says of a change: `PEN → CON`.
pub fn change_text(before: Option<&str>, after: Option<&str>) -> String {
    match (before, after) {
        (Some(before), Some(after)) => format!("{before} → {after}"),
        (None, Some(after)) => after.to_owned(),
        (_, None) => String::new(),
    }
}

/// Covers the rows after those of the seal before, up to `last_id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSeal {
    pub id: i64,
    pub last_id: i64,
    pub covered: i64,
    pub mac: Vec<u8>,
    pub at: Timestamp,
}

/// As a witness keeps it.
impl std::fmt::Display for AuditSeal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.id, hex::encode(&self.mac))
    }
}

/// Which rows of the history; newest first.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// Older than this row.
    pub before_id: Option<i64>,
    pub subject: Option<String>,
}

impl Store {
    /// A row after which nothing with a smaller number appears, once this long has passed: on
    /// PostgreSQL a transaction may still hold a number; no statement of ours lasts that long.
    pub fn audit_settles_after(&self) -> Duration {
        match self.engine {
            Engine::Sqlite(_) => Duration::ZERO,
            Engine::Postgres(_) => Duration::from_secs(30),
        }
    }

    /// Whether no transaction is open any more that may hold a number from before then: a commit can wait for a
    /// standby for as long as that is away.
    pub async fn audit_is_settled(&self) -> Result<bool> {
        let Engine::Postgres(_) = self.engine else { return Ok(true) };
        let seconds = self.audit_settles_after().as_secs();
        let sql = format!(
            "select count(*) from pg_stat_activity where datname = current_database()
                 and backend_xid is not null
                 and xact_start < clock_timestamp() - interval '{seconds} seconds'"
        );
        let open = self.select_one(Statement::new(sql, values![]), Cells::integer).await?;
        Ok(open.unwrap_or(0) == 0)
    }

    pub async fn last_audit_id(&self) -> Result<i64> {
        let statement = Statement::new("select coalesce(max(id), 0) from audit", values![]);
        Ok(self.select_one(statement, Cells::integer).await?.unwrap_or(0))
    }

    /// Rows with numbers above the first, up to the second, in their order.
    pub async fn audit_rows(
        &self,
        after: i64,
        up_to: i64,
        limit: usize,
    ) -> Result<Vec<AuditEntry>> {
        let sql = format!(
            "select {ENTRY_COLUMNS} from audit where id > ?1 and id <= ?2 order by id limit ?3"
        );
        self.select(Statement::new(sql, values![after, up_to, as_limit(limit)]), entry).await
    }

    /// What was done to one thing, oldest first.
    pub async fn audit_of(&self, subject: &str) -> Result<Vec<AuditEntry>> {
        let sql = format!("select {ENTRY_COLUMNS} from audit where subject = ?1 order by id");
        self.select(Statement::new(sql, values![subject]), entry).await
    }

    /// Newest first.
    pub async fn audit_page(&self, filter: AuditFilter, limit: usize) -> Result<Vec<AuditEntry>> {
        let before = filter.before_id.unwrap_or(i64::MAX);
        let mut values = values![before, as_limit(limit)];
        let mut which = String::new();
        if let Some(subject) = filter.subject {
            which = " and subject = ?3".to_owned();
            values.push(subject.into());
        }
        let sql = format!(
            "select {ENTRY_COLUMNS} from audit where id < ?1{which} order by id desc limit ?2"
        );
        self.select(Statement::new(sql, values), entry).await
    }

    /// Notes something that changes no other row.
    pub async fn note(
        &self,
        at: Timestamp,
        by: &Author,
        action: &str,
        subject: &str,
        cause: &str,
    ) -> Result<()> {
        self.transact(vec![audited(at, by, action, subject, None, cause)]).await.map(drop)
    }

    pub async fn count_audit_after(&self, id: i64) -> Result<i64> {
        let statement = Statement::new("select count(*) from audit where id > ?1", values![id]);
        Ok(self.select_one(statement, Cells::integer).await?.unwrap_or(0))
    }

    /// Rows with numbers that the database gives to none.
    pub async fn count_audit_before_first(&self) -> Result<i64> {
        let statement = Statement::new("select count(*) from audit where id < 1", values![]);
        Ok(self.select_one(statement, Cells::integer).await?.unwrap_or(0))
    }

    pub async fn last_seal(&self) -> Result<Option<AuditSeal>> {
        let sql = format!("select {SEAL_COLUMNS} from audit_seals order by id desc limit 1");
        self.select_one(Statement::new(sql, values![]), seal).await
    }

    pub async fn seals_after(&self, id: i64, limit: usize) -> Result<Vec<AuditSeal>> {
        let sql =
            format!("select {SEAL_COLUMNS} from audit_seals where id > ?1 order by id limit ?2");
        self.select(Statement::new(sql, values![id, as_limit(limit)]), seal).await
    }

    /// `false` if another node has made the seal with this number.
    pub async fn add_seal(&self, seal: AuditSeal) -> Result<bool> {
        let AuditSeal { id, last_id, covered, mac, at } = seal;
        let sql = "insert into audit_seals (id, last_id, covered, mac, at_ms)
                   values (?1, ?2, ?3, ?4, ?5) on conflict do nothing";
        self.transact_one(sql, values![id, last_id, covered, mac, at]).await
    }
}

/// The audit row of a change, for the transaction of the change.
pub(super) fn audited(
    at: Timestamp,
    by: &Author,
    action: &str,
    subject: &str,
    after: Option<&str>,
    cause: &str,
) -> Statement {
    let sql = "insert into audit (at_ms, actor, action, subject, after, cause, request_id)
               values (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let actor = by.actor.to_string();
    Statement::new(sql, values![at, actor, action, subject, after, cause, by.request_id.as_str()])
}

const ENTRY_COLUMNS: &str = "id, at_ms, actor, action, subject, before, after, cause, request_id";

fn entry(cells: &mut Cells) -> Result<AuditEntry> {
    Ok(AuditEntry {
        id: cells.integer()?,
        at: cells.time()?,
        actor: cells.text()?,
        action: cells.text()?,
        subject: cells.text()?,
        before: cells.maybe_text()?,
        after: cells.maybe_text()?,
        cause: cells.text()?,
        request_id: cells.text()?,
    })
}

const SEAL_COLUMNS: &str = "id, last_id, covered, mac, at_ms";

fn seal(cells: &mut Cells) -> Result<AuditSeal> {
    Ok(AuditSeal {
        id: cells.integer()?,
        last_id: cells.integer()?,
        covered: cells.integer()?,
        mac: cells.bytes()?,
        at: cells.time()?,
    })
}
