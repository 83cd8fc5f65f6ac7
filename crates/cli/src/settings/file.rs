//! The settings file, and what is told of one that cannot be read.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use ipnet::IpNet;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use toml::Value;

pub(super) fn read(path: Option<&Path>) -> anyhow::Result<File> {
    let Some(path) = path else { return Ok(File::default()) };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the settings file {}", path.display()))?;
    let file: File = toml::from_str(&text).map_err(|fault| {
        // Not with its line, which may hold a secret.
        let before = fault.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        anyhow!("in the settings file {}, line {line}: {}", path.display(), fault.message())
    })?;
    Ok(file.beside(path))
}

/// The settings file. Every key is optional; an unknown one is an error that names it.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub database: Option<String>,
    pub database_file: Option<PathBuf>,
    pub environment: Option<String>,
    #[serde(default, deserialize_with = "listen")]
    pub listen: Option<SocketAddr>,
    pub public_url: Option<String>,
    pub tls_cert: Option<PathBuf>,
    pub tls_key: Option<PathBuf>,
    #[serde(default, deserialize_with = "trusted_proxies")]
    pub trusted_proxies: Vec<IpNet>,
    pub private_webhook_targets: Option<bool>,
    #[serde(default, deserialize_with = "webhook_dns")]
    pub webhook_dns: Vec<SocketAddr>,
    pub webhook_ca: Option<PathBuf>,
    pub commit_batch_max: Option<usize>,
    pub master_key: Option<String>,
    pub master_key_file: Option<PathBuf>,
    /// Another that is understood as well, while one takes over from the other.
    pub other_master_key: Option<String>,
    pub other_master_key_file: Option<PathBuf>,
    pub token_failures_per_minute: Option<u32>,
    pub address_failures_per_minute: Option<u32>,
    pub partner_requests_per_second: Option<u32>,
    pub order_queries_per_second: Option<u32>,
    pub event_pages_per_second: Option<u32>,
    pub checkout_misses_per_minute: Option<u32>,
    pub checkout_polls_per_second: Option<u32>,
    pub connections: Option<usize>,
    pub connections_per_address: Option<usize>,
    pub express_label: Option<String>,
    pub wallet_label: Option<String>,
    /// Connectors of acquirers, in the order they are preferred.
    #[serde(default, rename = "rail", deserialize_with = "rails")]
    pub rails: Vec<RailTable>,
}

impl File {
    /// Files that are not named with their whole path are looked for from where the settings are: the same
    /// settings work wherever all of them are put together, as systemd does with credentials.
    fn beside(mut self, settings: &Path) -> Self {
        let folder = settings.parent().unwrap_or(Path::new(""));
        let own = [
            &mut self.database_file,
            &mut self.master_key_file,
            &mut self.other_master_key_file,
            &mut self.tls_cert,
            &mut self.tls_key,
            &mut self.webhook_ca,
        ];
        let of_rails = self
            .rails
            .iter_mut()
            .flat_map(|rail| [&mut rail.secret_file, &mut rail.other_secret_file]);
        for file in own.into_iter().chain(of_rails).flatten() {
            *file = folder.join(&*file);
        }
        self
    }
}

/// A `[[rail]]` of the settings file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RailTable {
    pub name: String,
    pub url: String,
    pub secret: Option<String>,
    pub secret_file: Option<PathBuf>,
    pub other_secret: Option<String>,
    pub other_secret_file: Option<PathBuf>,
}

fn listen<'de, D: Deserializer<'de>>(given: D) -> Result<Option<SocketAddr>, D::Error> {
    address("listen", &String::deserialize(given)?).map(Some)
}

fn webhook_dns<'de, D: Deserializer<'de>>(given: D) -> Result<Vec<SocketAddr>, D::Error> {
    let given = Vec::<String>::deserialize(given)?;
    given.iter().map(|text| address("webhook_dns", text)).collect()
}

fn trusted_proxies<'de, D: Deserializer<'de>>(given: D) -> Result<Vec<IpNet>, D::Error> {
    let wrong = |given: &dyn std::fmt::Display| {
        D::Error::custom(format_args!(
            "trusted_proxies is a list of networks, like [\"10.0.0.0/8\"], not {given}"
        ))
    };
    let Value::Array(given) = Value::deserialize(given)? else {
        return Err(wrong(&"a single value"));
    };
    let network = |one: &Value| one.as_str().and_then(|text| text.parse().ok());
    given.iter().map(|one| network(one).ok_or_else(|| wrong(one))).collect()
}

fn rails<'de, D: Deserializer<'de>>(given: D) -> Result<Vec<RailTable>, D::Error> {
    let given = Value::deserialize(given)?;
    if given.is_table() {
        return Err(D::Error::custom("write [[rail]], with two brackets: there can be several"));
    }
    given.try_into().map_err(|fault: toml::de::Error| D::Error::custom(fault.message()))
}

fn address<E: Error>(key: &str, text: &str) -> Result<SocketAddr, E> {
    text.parse().map_err(|_| {
        E::custom(format_args!("{key} is an address and a port, like 127.0.0.1:8080, not {text:?}"))
    })
}
