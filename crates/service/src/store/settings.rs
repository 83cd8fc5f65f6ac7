//! What the database knows about itself, a text under a name.

use jiff::SignedDuration;

use super::portable::{Cells, Statement, values};
use super::{Result, Store, StoreError};

const CLOCK_AHEAD: &str = "clock_ahead_ms";

impl Store {
    /// The value of a setting, stored now if it had none; the first writer wins.
    pub async fn setting_or_insert(&self, key: &str, value: &str) -> Result<String> {
        if let Some(stored) = self.setting(key).await? {
            return Ok(stored);
        }
        self.insert_setting(key, value).await?;
        Ok(self.setting(key).await?.unwrap_or_else(|| value.to_owned()))
    }

    pub(super) async fn setting(&self, key: &str) -> Result<Option<String>> {
        let sql = "select value from settings where key = ?1";
        self.select_one(Statement::new(sql, values![key]), Cells::text).await
    }

    /// What stands under this name already stays.
    pub(super) async fn insert_setting(&self, key: &str, value: &str) -> Result<()> {
        let sql = "insert into settings (key, value) values (?1, ?2) on conflict do nothing";
        self.transact_one(sql, values![key, value]).await.map(drop)
    }

    pub(super) async fn put_setting(&self, key: &str, value: &str) -> Result<()> {
        let sql = "insert into settings (key, value) values (?1, ?2)
                   on conflict (key) do update set value = excluded.value";
        self.transact_one(sql, values![key, value]).await.map(drop)
    }

    /// A file that is given out under this name for ever: whoever named it finds it after every upgrade, and at
    /// every node while one is under way. What is kept stays as it is.
    pub async fn keep_file(&self, name: &str, text: &str) -> Result<()> {
        self.insert_setting(&format!("file {name}"), text).await
    }

    pub async fn kept_file(&self, name: &str) -> Result<Option<String>> {
        self.setting(&format!("file {name}")).await
    }

    /// How far a sandbox was moved ahead of the machine's time.
    pub async fn clock_ahead(&self) -> Result<SignedDuration> {
        let stored = self.setting(CLOCK_AHEAD).await?;
        let ahead_ms = stored.map_or(Ok(0), |text| text.parse());
        ahead_ms
            .map(SignedDuration::from_millis)
            .map_err(|_| StoreError::Corrupt(CLOCK_AHEAD.into()))
    }

    pub async fn set_clock_ahead(&self, ahead: SignedDuration) -> Result<()> {
        self.put_setting(CLOCK_AHEAD, &ahead.as_millis().to_string()).await
    }
}
