//! Portable statements on SQLite.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, ToSql, params_from_iter};

use super::Sqlite;
use super::statements::{Db, execute, rows};
use crate::store::Result;
use crate::store::portable::{Cells, Statement, Value};

impl Sqlite {
    pub(in crate::store) async fn select(&self, statement: Statement) -> Result<Vec<Cells>> {
        self.looker.run(move |db| found(db, &statement)).await
    }

    pub(in crate::store) async fn look_up(&self, statement: Statement) -> Result<Vec<Cells>> {
        self.lookups.run(|db| found(db, &statement))
    }

    pub(in crate::store) async fn read(
        &self,
        statements: Vec<Statement>,
    ) -> Result<Vec<Vec<Cells>>> {
        self.reader
            .run(move |db| statements.iter().map(|statement| found(db, statement)).collect())
            .await
    }

    pub(in crate::store) async fn transact(&self, statements: Vec<Statement>) -> Result<bool> {
        let is_one = statements.len() == 1;
        let work = move |db: &Db<'_>| {
            for (place, Statement { sql, values }) in statements.iter().enumerate() {
                let changed = execute(db, sql, params_from_iter(values))?;
                if place == 0 && changed == 0 {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        match is_one {
            // If it fails, nothing has to be taken back.
            true => self.writer.run(work).await,
            false => self.writer.run_compound(work).await,
        }
    }
}

fn found(db: &Db<'_>, statement: &Statement) -> Result<Vec<Cells>> {
    let Statement { sql, values } = statement;
    #[cfg(test)]
    tests::is_served_by_indexes(db, sql)?;
    rows(db, sql, params_from_iter(values), cells)
}

pub(super) fn cells(row: &Row<'_>) -> rusqlite::Result<Cells> {
    let columns = row.as_ref().column_count();
    let cells = (0..columns).map(|column| row.get_ref(column).map(value));
    cells.collect::<rusqlite::Result<_>>().map(Cells::new)
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(value) => ValueRef::Integer(*value),
            Self::Text(value) => ValueRef::Text(value.as_bytes()),
            Self::Bytes(value) => ValueRef::Blob(value),
        }))
    }
}

fn value(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        // No statement of ours computes a fraction.
        ValueRef::Real(value) => Value::Integer(value as i64),
        ValueRef::Text(value) => Value::Text(String::from_utf8_lossy(value).into_owned()),
        ValueRef::Blob(value) => Value::Bytes(value.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::{ApplicationId, Status};
    use crate::store::{
        AuditFilter, Database, EventKind, EventState, ExceptionFilter, Options, OrderFilter, Scope,
        Store, StoreError,
    };

    /// Tables that grow with every order.
    const LARGE: [&str; 7] = [
        "orders",
        "order_ids",
        "outbox",
        "delivery_attempts",
        "payment_attempts",
        "receipts",
        "audit",
    ];

    /// No statement of a page reads a large table from end to end, nor makes an index for itself.
    pub(super) fn is_served_by_indexes(db: &rusqlite::Connection, sql: &str) -> Result<()> {
        let mut plan = db.prepare(&format!("explain query plan {sql}")).unwrap();
        let mut lines = plan.raw_query();
        while let Some(line) = lines.next().unwrap() {
            let line: String = line.get(3).unwrap();
            let scans = LARGE.iter().any(|table| {
                let aliases = [format!("SCAN {table}"), format!("SCAN {}", &table[..1])];
                aliases.contains(&line)
            });
            if scans || line.contains("AUTOMATIC") {
                return Err(StoreError::Corrupt(format!("{line}: {sql}")));
            }
        }
        Ok(())
    }

    #[tokio::test]
    async fn every_list_of_the_console_is_served_by_an_index() {
        let directory = std::env::temp_dir().join(format!("svc_plans_{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let url = format!("sqlite:{}", directory.join("svc.db").display());
        let options = Options::new(None, 256, true);
        let store = Store::open(&Database::parse(&url).unwrap(), options).await.unwrap();
        let one = Scope::Applications(vec![ApplicationId(1)]);
        let several = Scope::Applications(vec![ApplicationId(1), ApplicationId(2)]);
        for scope in [&Scope::Everything, &one, &several] {
            for status in [None, Some(Status::Pending)] {
                let filter = OrderFilter {
                    status,
                    since: Some(Timestamp::UNIX_EPOCH),
                    ..OrderFilter::default()
                };
                store.order_lines(scope, filter, None, 50).await.unwrap();
            }
            let exhausted = EventKind::State(EventState::Exhausted);
            for kind in [None, Some(EventKind::Failing), Some(exhausted)] {
                store.event_lines(scope, kind, None, 50).await.unwrap();
            }
            store.waiting_destinations(scope, 50).await.unwrap();
            store.recent_deliveries(scope, 200).await.unwrap();
            let filter = ExceptionFilter { scope: scope.clone(), ..Default::default() };
            store.exceptions(filter, 50).await.unwrap();
            store.attention(scope).await.unwrap();
            store.find_orders(scope, "order_1", &["simulator".to_owned()]).await.unwrap();
            store.figures(scope, Timestamp::UNIX_EPOCH).await.unwrap();
        }
        store.first_steps(ApplicationId(1)).await.unwrap();
        store.count_hour(Timestamp::UNIX_EPOCH, Timestamp::MAX).await.unwrap();
        store.first_news_since(Timestamp::UNIX_EPOCH).await.unwrap();
        store.audit_page(AuditFilter::default(), 50).await.unwrap();
        let subject = Some("order".to_owned());
        store.audit_page(AuditFilter { subject, ..Default::default() }, 50).await.unwrap();
        store.audit_rows(0, 1_000, 1_000).await.unwrap();
        drop(store);
        let _ = std::fs::remove_dir_all(&directory);
    }
}
