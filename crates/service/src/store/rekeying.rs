//! Where sealed secrets lie, and which master key a database goes by.

use jiff::Timestamp;

use super::audit::audited;
use super::portable::{Statement, Value, values};
use super::{Engine, Result, Store, as_limit, engine};
use crate::domain::Author;

/// A column of sealed secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedIn {
    WebhookSecrets,
    PreviousWebhookSecrets,
    Phones,
    OneTimeCodes,
}

/// The key of its row, to go on from and to come back to.
#[derive(Clone, Debug)]
pub struct SealedRow {
    key: Value,
    pub sealed: Vec<u8>,
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
const SERVED_WITH: &str = "served_with_master_key_id";
const KEPT_KEYS: &str = "kept_keys";

impl Store {
    /// The master key this database goes by: this one if it has met none.
    pub async fn master_key_id_or_insert(&self, id: &str) -> Result<String> {
        engine!(self.setting_or_insert(MASTER_KEY_ID, id))
    }

    /// What outlived the master keys before, sealed.
    pub async fn kept_keys(&self) -> Result<Option<String>> {
        engine!(self.setting(KEPT_KEYS))
    }

    /// The master key that the service last began with.
    pub async fn served_with(&self) -> Result<Option<String>> {
        engine!(self.setting(SERVED_WITH))
    }

    pub async fn set_served_with(&self, id: &str) -> Result<()> {
        engine!(self.put_setting(SERVED_WITH, id))
    }

    /// Some sealed secrets, after this row.
    pub async fn sealed_rows(
        &self,
        place: SealedIn,
        after: Option<&SealedRow>,
        limit: usize,
    ) -> Result<Vec<SealedRow>> {
        let (table, column) = place.table_and_column();
        let sql = format!(
            "select id, {column} from {table} where id > ?1 and {column} is not null
             order by id limit ?2"
        );
        let after = after.map_or_else(|| place.first_key(), |row| row.key.clone());
        let statement = Statement::new(sql, vec![after, as_limit(limit).into()]);
        self.select(statement, |cells| Ok(SealedRow { key: cells.any(), sealed: cells.bytes()? }))
            .await
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
        kept: &str,
        at: Timestamp,
        by: &Author,
    ) -> Result<bool> {
        let change = "update settings set value = ?1 where key = ?2 and value = ?3";
        let keep = "insert into settings (key, value) values (?1, ?2)
                    on conflict (key) do update set value = excluded.value";
        let cause = format!("instead of {from}");
        self.transact(vec![
            Statement::new(change, values![to, MASTER_KEY_ID, from]),
            Statement::new(keep, values![KEPT_KEYS, kept]),
            audited(at, by, "master_key.change", to, None, &cause),
        ])
        .await
    }
}
