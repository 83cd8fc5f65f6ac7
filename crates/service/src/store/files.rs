//! Files that were given out under an address for ever: whoever named one finds it after every upgrade, and at
//! every node while one is under way.

use super::{Result, Store};

impl Store {
    /// What is kept under this name stays as it is.
    pub async fn keep_file(&self, name: &str, text: &str) -> Result<()> {
        self.insert_setting(&key(name), text).await
    }

    pub async fn kept_file(&self, name: &str) -> Result<Option<String>> {
        self.setting(&key(name)).await
    }
}

fn key(name: &str) -> String {
    format!("file {name}")
}
