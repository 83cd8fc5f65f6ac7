//! What the shop must be told. It refuses to start with a webhook secret that anybody could guess.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use crate::Clock;

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
    /// `SVC_SHOP_URL`: how payers and the service reach the shop; unset means as the payer called it.
    pub public_url: Option<String>,
    pub database: PathBuf,
    pub clock: Clock,
    pub limits: Limits,
}

/// How often, how long and how many. Nothing outside the program sets these; a test may.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How often pending orders are looked through.
    pub reconcile_period: Duration,
    /// Younger orders are most likely being paid: nobody asks about them.
    pub reconcile_age: Duration,
    /// Pages that are told of changes at the same time; others ask again and again.
    pub streams_max: usize,
    /// Then the page connects anew, so that one that was forgotten in a tab takes no place for ever.
    pub stream_lifetime: Duration,
    /// Shorter than the minute after which proxies give up a silent connection.
    pub stream_heartbeat: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reconcile_period: Duration::from_secs(60),
            reconcile_age: Duration::from_secs(3 * 60),
            streams_max: 200,
            stream_lifetime: Duration::from_secs(10 * 60),
            stream_heartbeat: Duration::from_secs(15),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("{0} is empty; svc demo and svc partner create print it")]
    Empty(&'static str),
    #[error("{0} begins or ends with a space or the end of a line; take it away")]
    Padded(&'static str),
    #[error("{0} is an address such as https://loja.ao, not {1:?}")]
    NotAnAddress(&'static str, String),
    #[error("{0} is only the beginning of a key; svc demo and svc partner create print it")]
    HalfKey(&'static str),
    #[error(
        "{0} is no webhook secret, which begins with whsec_, or too short to be one: with it anybody could \
         report an order as paid; svc demo and svc partner create print it"
    )]
    ShortSecret(&'static str),
    #[error("a live shop needs SVC_SHOP_URL, the https address that payers and webhooks come to")]
    LiveWithoutHttps,
}

/// A secret of the service has 50 characters; shorter than this is a placeholder.
const SECRET_BYTES_MIN: usize = 24;

impl Settings {
    /// What the shop would refuse to open with.
    pub fn check(&self) -> Result<(), SettingsError> {
        let previous = self.webhook_secret_previous.as_ref();
        for (name, value) in [
            ("SVC_BASE_URL", Some(self.base_url.as_str())),
            ("SVC_SDK_URL", Some(&self.sdk_url)),
            ("SVC_SHOP_URL", self.public_url.as_deref()),
            ("SVC_PUBLISHABLE_KEY", Some(&self.publishable_key)),
            ("SVC_CLIENT_ID", Some(&self.client_id)),
            ("SVC_CLIENT_SECRET", Some(self.client_secret.expose_secret())),
            ("SVC_WEBHOOK_SECRET", Some(self.webhook_secret.expose_secret())),
            ("SVC_WEBHOOK_SECRET_PREVIOUS", previous.map(ExposeSecret::expose_secret)),
        ] {
            let Some(value) = value else { continue };
            if value.trim().is_empty() {
                return Err(SettingsError::Empty(name));
            }
            // A copied secret with it looks right, and no signature would be.
            if value.trim() != value {
                return Err(SettingsError::Padded(name));
            }
        }
        let is_address = |url: &str| {
            let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            rest.is_some_and(|host| !host.is_empty())
        };
        if let Some(url) = self.public_url.as_ref().filter(|url| !is_address(url)) {
            return Err(SettingsError::NotAnAddress("SVC_SHOP_URL", url.clone()));
        }
        if svc_client::application_uuid(&self.publishable_key) == Some("") {
            return Err(SettingsError::HalfKey("SVC_PUBLISHABLE_KEY"));
        }
        let secrets = [
            ("SVC_WEBHOOK_SECRET", Some(&self.webhook_secret)),
            ("SVC_WEBHOOK_SECRET_PREVIOUS", previous),
        ];
        for (name, secret) in secrets {
            let is_one = |text: &str| text.starts_with("whsec_") && text.len() >= SECRET_BYTES_MIN;
            if secret.is_some_and(|secret| !is_one(secret.expose_secret())) {
                return Err(SettingsError::ShortSecret(name));
            }
        }
        // The service takes no other addresses of a live order (spec 8).
        let https = self.public_url.as_ref().is_some_and(|url| url.starts_with("https://"));
        if self.publishable_key.starts_with("pk_live_") && !https {
            return Err(SettingsError::LiveWithoutHttps);
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
