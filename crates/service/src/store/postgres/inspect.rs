//! What `store::inspect` reads from PostgreSQL.

use jiff::Timestamp;

use super::{Fault, connect, migrations, reason};
use crate::store::inspect::Inspection;
use crate::store::{Result, StoreError};

pub(in crate::store) async fn inspect_postgres(url: &str) -> Result<Inspection> {
    let pool = connect::pool(url)?;
    let db = pool.get().await.map_err(|fault| {
        StoreError::Refused(format!("cannot connect to PostgreSQL: {}", reason(&fault)))
    })?;
    let one = async |sql: &str, parameter: &str| -> Result<Option<String>> {
        let found = db.query_opt(sql, &[&parameter]).await.map_err(Fault::from)?;
        Ok(found.and_then(|row| row.get(0)))
    };
    let mut durability = Vec::new();
    for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
        let value = one("select current_setting($1)", setting).await?.unwrap_or_default();
        let safe = value != "off";
        durability.push((setting, value, safe));
    }
    let now_ms: i64 = db
        .query_one("select (extract(epoch from clock_timestamp()) * 1000)::bigint", &[])
        .await
        .map_err(Fault::from)?
        .get(0);
    let there = one("select to_regclass($1)::text", "refinery_schema_history").await?.is_some();
    let (mut schema_version, mut environment, mut master_key_id) = (None, None, None);
    if there {
        let sql = "select max(version)::bigint from refinery_schema_history";
        schema_version = db.query_one(sql, &[]).await.map_err(Fault::from)?.get(0);
        let sql = "select value from settings where key = $1";
        environment = one(sql, "environment").await?;
        master_key_id = one(sql, "master_key_id").await?;
    }
    let known = migrations::migrations::runner();
    Ok(Inspection {
        engine: "postgres",
        schema_version,
        schema_latest: known
            .get_migrations()
            .iter()
            .map(|m| i64::from(m.version()))
            .max()
            .unwrap_or(0),
        environment,
        master_key_id,
        durability,
        now: Timestamp::from_millisecond(now_ms).ok(),
    })
}
