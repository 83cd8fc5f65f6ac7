//! What the shop must be told. It refuses to start with a webhook secret that anybody could guess.

use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};

#[derive(Clone, Debug)]
pub struct Settings {
    /// `SVC_BASE_URL`: where the API is.
    pub base_url: String,
    /// `SVC_SDK_URL`: where the SDK's file is.
    pub sdk_url: String,
    pub publishable_key: String,
    pub client_id: String,
    pub client_secret: SecretString,
    pub webhook_secret: SecretString,
    /// `SVC_WEBHOOK_SECRET_PREVIOUS`: the one before, while it is replaced.
    pub webhook_secret_previous: Option<SecretString>,
    /// How payers and the service reach the shop; unset means the address it listens on.
    pub public_url: Option<String>,
    pub database: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("{0} is empty; svc demo and svc partner create print it")]
    Empty(&'static str),
    #[error(
        "SVC_WEBHOOK_SECRET is too short to be one: with it anybody could report an order as paid"
    )]
    ShortSecret,
}

/// A secret of the service has 50 characters; shorter than this is a placeholder.
const SECRET_BYTES_MIN: usize = 24;

impl Settings {
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        for (name, value) in [
            ("SVC_BASE_URL", self.base_url.as_str()),
            ("SVC_PUBLISHABLE_KEY", &self.publishable_key),
            ("SVC_CLIENT_ID", &self.client_id),
            ("SVC_CLIENT_SECRET", self.client_secret.expose_secret()),
            ("SVC_WEBHOOK_SECRET", self.webhook_secret.expose_secret()),
        ] {
            if value.trim().is_empty() {
                return Err(SettingsError::Empty(name));
            }
        }
        let previous = self.webhook_secret_previous.as_ref();
        let short = |secret: &SecretString| secret.expose_secret().len() < SECRET_BYTES_MIN;
        if short(&self.webhook_secret) || previous.is_some_and(short) {
            return Err(SettingsError::ShortSecret);
        }
        Ok(())
    }

    /// The secrets a webhook may be signed with.
    pub(crate) fn webhook_secrets(&self) -> Vec<&str> {
        let previous = self.webhook_secret_previous.iter();
        [&self.webhook_secret]
            .into_iter()
            .chain(previous)
            .map(ExposeSecret::expose_secret)
            .collect()
    }
}
