//! Portable statements on SQLite.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ToSql, params_from_iter};

use super::{Sqlite, execute, rows};
use crate::store::Result;
use crate::store::portable::{Cells, Statement, Value};

impl Sqlite {
    pub(in crate::store) async fn select(&self, statement: Statement) -> Result<Vec<Cells>> {
        let Statement { sql, values } = statement;
        self.looker
            .run(move |db| {
                rows(db, &sql, params_from_iter(&values), |row| {
                    let columns = row.as_ref().column_count();
                    (0..columns).map(|column| row.get_ref(column).map(value)).collect()
                })
            })
            .await
            .map(|rows: Vec<Vec<Value>>| rows.into_iter().map(Cells::new).collect())
    }

    pub(in crate::store) async fn transact(&self, statements: Vec<Statement>) -> Result<bool> {
        self.writer
            .run_compound(move |db| {
                for (place, Statement { sql, values }) in statements.iter().enumerate() {
                    let changed = execute(db, sql, params_from_iter(values))?;
                    if place == 0 && changed == 0 {
                        return Ok(false);
                    }
                }
                Ok(true)
            })
            .await
    }
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
