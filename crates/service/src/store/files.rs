//! Files that were given out under an address for ever: whoever named one finds it after every upgrade, and at
//! every node while one is under way.

use super::portable::{Cells, Statement, values};
use super::{Result, Store};

impl Store {
    /// What is kept under this name stays as it is.
    pub async fn keep_file(&self, name: &str, text: &str) -> Result<()> {
        let sql = "insert into settings (key, value) values (?1, ?2) on conflict do nothing";
        self.transact_one(sql, values![key(name), text]).await.map(drop)
    }

    pub async fn kept_file(&self, name: &str) -> Result<Option<String>> {
        let sql = "select value from settings where key = ?1";
        self.select_one(Statement::new(sql, values![key(name)]), Cells::text).await
    }
}

fn key(name: &str) -> String {
    format!("file {name}")
}
