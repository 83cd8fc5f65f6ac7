//! Portable statements on PostgreSQL.

use std::error::Error;

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut};

use super::{Fault, Postgres, Told, change, many};
use crate::store::portable::{Cells, Statement, Value};
use crate::store::{Result, StoreError};

impl Postgres {
    pub(in crate::store) async fn select(&self, statement: Statement) -> Result<Vec<Cells>> {
        let _looking = self.lookers.acquire().await.map_err(|_| closed())?;
        found(&self.client().await?, &statement).await
    }

    pub(in crate::store) async fn look_up(&self, statement: Statement) -> Result<Vec<Cells>> {
        found(&self.client().await?, &statement).await
    }

    pub(in crate::store) async fn read(
        &self,
        statements: Vec<Statement>,
    ) -> Result<Vec<Vec<Cells>>> {
        let db = self.client().await?;
        let mut all = Vec::with_capacity(statements.len());
        for statement in &statements {
            all.push(found(&db, statement).await?);
        }
        Ok(all)
    }

    /// Not among those who look: it is short, and some of it is the service's own.
    pub(in crate::store) async fn transact(&self, statements: Vec<Statement>) -> Result<bool> {
        let mut db = self.client().await?;
        if let [only] = &statements[..] {
            return Ok(execute(&db, only).await? > 0);
        }
        let transaction = db.transaction().await.map_err(Fault::from)?;
        for (place, statement) in statements.iter().enumerate() {
            let changed = execute(&transaction, statement).await?;
            if place == 0 && changed == 0 {
                return Ok(false);
            }
        }
        transaction.commit().await.map_err(Fault::from)?;
        Ok(true)
    }
}

async fn found(db: &impl GenericClient, statement: &Statement) -> Result<Vec<Cells>> {
    let rows = many(db, &own(&statement.sql), &given(statement)).await?;
    rows.iter().map(cells).collect()
}

pub(super) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

/// Rows it changed.
pub(super) async fn execute(db: &impl GenericClient, statement: &Statement) -> Told<u64> {
    change(db, &own(&statement.sql), &given(statement)).await
}

/// Parameters are `$1` here.
fn own(sql: &str) -> String {
    sql.replace('?', "$")
}

fn given(statement: &Statement) -> Vec<&(dyn ToSql + Sync)> {
    statement.values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

pub(super) fn cells(row: &Row) -> Result<Cells> {
    let one = |column: usize| -> Result<Value> {
        let kind = row.columns()[column].type_();
        let read = match *kind {
            Type::INT8 => row.try_get::<_, Option<i64>>(column).map(Value::from),
            Type::INT4 => row.try_get::<_, Option<i32>>(column).map(|v| v.map(i64::from).into()),
            Type::BOOL => row.try_get::<_, Option<bool>>(column).map(|v| v.map(i64::from).into()),
            Type::TEXT => row.try_get::<_, Option<String>>(column).map(Value::from),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(column).map(Value::from),
            _ => return Err(StoreError::Corrupt(format!("a column of type {kind}"))),
        };
        Ok(read.map_err(Fault::from)?)
    };
    (0..row.len()).map(one).collect::<Result<_>>().map(Cells::new)
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(value) => value.to_sql(kind, out),
            Self::Text(value) => value.to_sql(kind, out),
            Self::Bytes(value) => value.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT8 | Type::TEXT | Type::BYTEA)
    }

    tokio_postgres::types::to_sql_checked!();
}
