//! What `store::inspect` reads from PostgreSQL.

use jiff::Timestamp;

use super::{Client, Fault, REAL_NOW_MS, connect, many, schema_latest};
use crate::store::inspect::{Inspection, SCHEMA, Schema};
use crate::store::rekeying::ALL_SERVED_WITH;
use crate::store::{Result, StoreError};

pub(in crate::store) async fn inspect_postgres(url: &str) -> Result<Inspection> {
    let pool = connect::pool(url)?;
    let db = connect::first(&pool, url).await?;
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
    let now_ms: i64 =
        db.query_one(&format!("select {REAL_NOW_MS}"), &[]).await.map_err(Fault::from)?.get(0);
    let schema = schema(&db).await?;
    if schema.is_none() {
        refuse_strangers(&db).await?;
    }
    let setting = async |key: &str| match schema {
        None => Ok(None),
        Some(_) => one("select value from settings where key = $1", key).await,
    };
    let served_with = match schema {
        None => Vec::new(),
        Some(_) => many(&db, ALL_SERVED_WITH, &[]).await?.iter().map(|row| row.get(0)).collect(),
    };
    Ok(Inspection {
        engine: "postgres",
        schema,
        schema_latest: schema_latest(),
        environment: setting("environment").await?,
        master_key_id: setting("master_key_id").await?,
        served_with,
        keeps_master_key: setting("sandbox_master_key").await?.is_some(),
        durability,
        unwritable: unwritable(&db).await?,
        now: Timestamp::from_millisecond(now_ms).ok(),
    })
}

/// What keeps this user from serving.
async fn unwritable(db: &Client) -> Result<Option<String>> {
    let sql = "select current_user::text, coalesce(has_schema_privilege(current_schema(), 'create'), false)
                   and coalesce(has_table_privilege(to_regclass('orders'), 'insert'), true)
                   and coalesce(has_table_privilege(to_regclass('orders'), 'update'), true)";
    let row = db.query_one(sql, &[]).await.map_err(Fault::from)?;
    let (user, may): (&str, bool) = (row.get(0), row.get(1));
    Ok((!may).then(|| format!("the role {user} may not write to its tables, or make new ones")))
}

/// A database of something else is left as it is.
pub(super) async fn refuse_strangers(db: &Client) -> Result<()> {
    let sql = "select exists (select from pg_tables where schemaname = current_schema()
                       and tablename <> 'refinery_schema_history')";
    if !db.query_one(sql, &[]).await.map_err(Fault::from)?.get::<_, bool>(0) {
        return Ok(());
    }
    Err(StoreError::Refused(format!(
        "the database {} holds tables of something else: make one for this service, or name it with --database",
        name(db).await?
    )))
}

/// Only what a service may begin with makes tables: elsewhere a typing error would make them somewhere.
pub(super) async fn missing(db: &Client) -> Result<StoreError> {
    Ok(StoreError::Refused(format!(
        "there are no tables in the database {}; if that is the right one, run svc migrate first, else \
         name it with --database",
        name(db).await?
    )))
}

async fn name(db: &Client) -> Result<String> {
    Ok(db.query_one("select current_database()", &[]).await.map_err(Fault::from)?.get(0))
}

pub(super) async fn schema(db: &Client) -> Result<Option<Schema>> {
    let there = "select to_regclass('refinery_schema_history') is not null";
    if !db.query_one(there, &[]).await.map_err(Fault::from)?.get::<_, bool>(0) {
        return Ok(None);
    }
    let found = db.query_one(SCHEMA, &[]).await.map_err(Fault::from)?;
    let version: Option<i64> = found.get(0);
    Ok(version.map(|version| Schema { version, needed: found.get(1) }))
}
