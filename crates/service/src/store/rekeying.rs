//! Where sealed secrets lie, and which master key a database goes by.

use jiff::Timestamp;

use super::audit::audited;
use super::portable::{Cells, Statement, Value, values};
use super::{Result, Store, as_limit};
use crate::domain::Author;

/// A column of sealed secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedIn {
    WebhookSecrets,
    PreviousWebhookSecrets,
    Phones,
    OneTimeCodes,
}

/// A row that may hold one, to go on from and to come back to.
#[derive(Clone, Debug)]
pub struct SealedRow {
    table: &'static str,
    key: Value,
    pub sealed: Option<Vec<u8>>,
}

impl std::fmt::Display for SealedRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.key {
            Value::Text(key) => write!(f, "{} {key}", self.table),
            Value::Integer(key) => write!(f, "{} {key}", self.table),
            Value::Null | Value::Bytes(_) => f.write_str(self.table),
        }
    }
}

impl SealedIn {
    pub const ALL: [Self; 4] =
        [Self::WebhookSecrets, Self::PreviousWebhookSecrets, Self::Phones, Self::OneTimeCodes];

    fn table_and_column(self) -> (&'static str, &'static str) {
        match self {
            Self::WebhookSecrets => ("applications", "webhook_secret"),
            Self::PreviousWebhookSecrets => ("applications", "previous_webhook_secret"),
            Self::Phones => ("payment_attempts", "phone_sealed"),
            Self::OneTimeCodes => ("people", "totp_sealed"),
        }
    }

    /// Before all keys of its table.
    fn first_key(self) -> Value {
        match self {
            Self::Phones => Value::Text(String::new()),
            Self::WebhookSecrets | Self::PreviousWebhookSecrets | Self::OneTimeCodes => {
                Value::Integer(i64::MIN)
            }
        }
    }
}

const MASTER_KEY_ID: &str = "master_key_id";
/// Before the id of each master key that the service began with.
const SERVED_WITH: &str = "served_with:";
/// The ids of the master keys that the service began with since one took over from another.
pub(super) const ALL_SERVED_WITH: &str =
    "select value from settings where key like 'served_with:%'";

impl Store {
    /// The master key this database goes by, with what outlived others: this one if it has met none.
    pub async fn master_key_or_insert(&self, id: &str) -> Result<String> {
        self.setting_or_insert(MASTER_KEY_ID, id).await
    }

    pub async fn served_with(&self) -> Result<Vec<String>> {
        self.select(Statement::new(ALL_SERVED_WITH, values![]), Cells::text).await
    }

    pub async fn note_served_with(&self, id: &str) -> Result<()> {
        if self.served_with().await?.iter().any(|known| known == id) {
            return Ok(());
        }
        self.insert_setting(&format!("{SERVED_WITH}{id}"), id).await
    }

    /// Some rows after this one, of which some may hold a secret.
    pub async fn sealed_rows(
        &self,
        place: SealedIn,
        after: Option<&SealedRow>,
        limit: usize,
    ) -> Result<Vec<SealedRow>> {
        let (table, column) = place.table_and_column();
        let sql = format!("select id, {column} from {table} where id > ?1 order by id limit ?2");
        let after = after.map_or_else(|| place.first_key(), |row| row.key.clone());
        let statement = Statement::new(sql, vec![after, as_limit(limit).into()]);
        let read = |cells: &mut Cells| {
            Ok(SealedRow { table, key: cells.any(), sealed: cells.maybe_bytes()? })
        };
        self.select(statement, read).await
    }

    /// Puts others in their place. `false`, and nothing done, if somebody has changed the first meanwhile.
    pub async fn seal_anew(
        &self,
        place: SealedIn,
        rows: Vec<(SealedRow, Vec<u8>)>,
    ) -> Result<bool> {
        let (table, column) = place.table_and_column();
        let sql = format!("update {table} set {column} = ?1 where id = ?2 and {column} = ?3");
        let update = |(row, anew): (SealedRow, Vec<u8>)| {
            Statement::new(&*sql, vec![anew.into(), row.key, row.sealed.into()])
        };
        self.transact(rows.into_iter().map(update).collect()).await
    }

    /// From now on the database goes by another master key. `false` if it does not go by the first.
    pub async fn change_master_key(
        &self,
        from: &str,
        to: &str,
        id: &str,
        at: Timestamp,
        by: &Author,
    ) -> Result<bool> {
        let change = "update settings set value = ?1 where key = ?2 and value = ?3";
        let forget = "delete from settings where key like ?1 and value <> ?2";
        self.transact(vec![
            Statement::new(change, values![to, MASTER_KEY_ID, from]),
            Statement::new(forget, values![format!("{SERVED_WITH}%"), id]),
            audited(at, by, "master_key.change", id, None, ""),
        ])
        .await
    }
}
