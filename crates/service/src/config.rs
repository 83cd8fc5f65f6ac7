//! The settings of one running service, already checked; how people give them is the CLI's affair.

use std::net::SocketAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use secrecy::SecretString;
use url::{Host, Url};

use crate::domain::{Environment, UrlRules};

#[derive(Clone, Debug)]
pub struct Config {
    /// `None` takes the database's word for it.
    pub environment: Option<Environment>,
    pub listen: SocketAddr,
    /// How the world reaches us; unset means the address we listen on.
    pub public_url: Option<Url>,
    pub tls: Option<TlsFiles>,
    /// Whose `X-Forwarded-For` we believe.
    pub trusted_proxies: Vec<IpNet>,
    /// Sandbox only: webhooks may go to this machine and private networks.
    pub private_webhook_targets: bool,
    pub webhooks: WebhookConfig,
    /// Connectors of acquirers, in the order they are preferred.
    pub rails: Vec<RailConfig>,
    pub labels: Labels,
    /// 32 bytes in base64; the sandbox makes its own when there is none.
    pub master_key: Option<SecretString>,
    /// Another that is understood as well, while one takes over from the other.
    pub other_master_key: Option<SecretString>,
    pub limits: Limits,
    /// Most writes in one commit; 1 switches group commit off, for comparison.
    pub commit_batch_max: usize,
    /// Whether a missing SQLite file is made, or refused as a probable mistake.
    pub create_database: bool,
}

/// How merchants are reached.
#[derive(Clone, Debug, Default)]
pub struct WebhookConfig {
    /// Who is asked for the addresses of merchants; none means the machine's own name servers.
    pub name_servers: Vec<SocketAddr>,
    /// Sandbox only: a PEM file of certificate authorities to trust beside the machine's.
    pub certificates: Option<PathBuf>,
}

/// Names that belong to others, or to the operator: what payers read for two of the methods.
#[derive(Clone, Debug)]
pub struct Labels {
    pub express: String,
    /// The operator's own wallet, as in "Pay with …".
    pub wallet: String,
}

impl Default for Labels {
    fn default() -> Self {
        Self { express: "Multicaixa Express".into(), wallet: "svc".into() }
    }
}

/// A connector of an acquirer: a process that speaks our contract over signed HTTP.
#[derive(Clone, Debug)]
pub struct RailConfig {
    pub name: String,
    pub url: Url,
    /// `whsec_…`, as in Standard Webhooks.
    pub secret: SecretString,
    /// Another that the connector may have, while one takes over from the other.
    pub other_secret: Option<SecretString>,
}

impl RailConfig {
    /// Whether nobody on the way can read what is asked, or answer in the rail's place.
    pub fn is_safe(&self) -> bool {
        self.url.scheme() == "https" || is_this_machine(&self.url)
    }
}

/// Whether an address is of this machine, as far as its text tells.
pub fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Rates that answer 429 when passed.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Wrong credentials for one client id from one address.
    pub token_failures_per_minute: u32,
    /// Wrong credentials from one address, whatever the client id.
    pub address_failures_per_minute: u32,
    /// Calls of one partner.
    pub partner_requests_per_second: u32,
    /// Queries for one order.
    pub order_queries_per_second: u32,
    /// Pages of events that one partner reads.
    pub event_pages_per_second: u32,
    /// Checkout pages that do not exist, asked for from one address.
    pub checkout_misses_per_minute: u32,
    /// Looks at one order by its checkout page.
    pub checkout_polls_per_second: u32,
    /// Open connections in all.
    pub connections: usize,
    /// Of one address, unless it is a proxy that we trust.
    pub connections_per_address: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            token_failures_per_minute: 100,
            address_failures_per_minute: 2_000,
            partner_requests_per_second: 100_000,
            order_queries_per_second: 200,
            event_pages_per_second: 20,
            checkout_misses_per_minute: 60,
            checkout_polls_per_second: 10,
            connections: 10_000,
            connections_per_address: 1_000,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error(
        "production is not served over plain http: give --tls-cert and --tls-key, or name the \
         proxy that ends TLS with --trusted-proxy"
    )]
    PlainHttp,
    #[error("production never sends webhooks to private addresses: remove private_webhook_targets")]
    PrivateTargets,
    #[error("production trusts the machine's certificate authorities only: remove webhook_ca")]
    WebhookCertificates,
    #[error("production needs an https --public-url, like https://api.example.ao")]
    PublicUrl,
    #[error(
        "rail {0} is spoken to over plain http: whoever is on the way could answer that an order is \
         paid; give it an https URL, or run it on this machine"
    )]
    PlainRail(String),
    #[error(
        "production needs its master key: name the file of the one its database goes by in \
         SVC_SERVER_MASTER_KEY_FILE; for a new database, \"svc keygen --out FILE\" makes one"
    )]
    MasterKey,
}

impl Config {
    pub const COMMIT_BATCH_MAX: usize = 2_048;

    /// How callers reach the service: as configured, or where it listens.
    pub fn base_url(&self, listens_at: SocketAddr) -> String {
        match (&self.public_url, &self.tls) {
            (Some(url), _) => url.as_str().trim_end_matches('/').to_owned(),
            (None, Some(_)) => format!("https://{listens_at}"),
            (None, None) => format!("http://{listens_at}"),
        }
    }

    pub fn sandbox(listen: SocketAddr) -> Self {
        Self {
            environment: Some(Environment::Sandbox),
            listen,
            public_url: None,
            tls: None,
            trusted_proxies: Vec::new(),
            private_webhook_targets: false,
            webhooks: WebhookConfig::default(),
            rails: Vec::new(),
            labels: Labels::default(),
            master_key: None,
            other_master_key: None,
            limits: Limits::default(),
            commit_batch_max: Self::COMMIT_BATCH_MAX,
            create_database: true,
        }
    }

    /// What production refuses is refused here, before anything is served.
    pub fn check(&self, environment: Environment) -> Result<(), ConfigError> {
        if environment == Environment::Sandbox {
            return Ok(());
        }
        if self.tls.is_none() && self.trusted_proxies.is_empty() {
            return Err(ConfigError::PlainHttp);
        }
        if self.private_webhook_targets {
            return Err(ConfigError::PrivateTargets);
        }
        if self.webhooks.certificates.is_some() {
            return Err(ConfigError::WebhookCertificates);
        }
        if self.public_url.as_ref().is_none_or(|url| url.scheme() != "https") {
            return Err(ConfigError::PublicUrl);
        }
        match self.rails.iter().find(|rail| !rail.is_safe()) {
            Some(rail) => Err(ConfigError::PlainRail(rail.name.clone())),
            None => Ok(()),
        }
    }

    pub fn url_rules(&self, environment: Environment) -> UrlRules {
        let production = environment == Environment::Production;
        let own_host = self.public_url.as_ref().and_then(Url::host_str).map(str::to_owned);
        UrlRules {
            https_only: production,
            private_targets: self.private_webhook_targets,
            own_host: own_host.filter(|_| production),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn production() -> Config {
        Config {
            environment: Some(Environment::Production),
            public_url: Some(Url::parse("https://api.svc.ao").unwrap()),
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
            master_key: Some("key".to_owned().into()),
            ..Config::sandbox(([127, 0, 0, 1], 0).into())
        }
    }

    #[test]
    fn production_refuses_each_unsafe_setting_by_name() {
        assert_eq!(production().check(Environment::Production), Ok(()));
        let refused = |spoil: fn(&mut Config)| {
            let mut config = production();
            spoil(&mut config);
            config.check(Environment::Production).unwrap_err()
        };
        assert_eq!(refused(|c| c.trusted_proxies.clear()), ConfigError::PlainHttp);
        assert_eq!(refused(|c| c.private_webhook_targets = true), ConfigError::PrivateTargets);
        assert_eq!(
            refused(|c| c.webhooks.certificates = Some("ca.pem".into())),
            ConfigError::WebhookCertificates
        );
        assert_eq!(refused(|c| c.public_url = None), ConfigError::PublicUrl);
        let with_rail = |url: &str| {
            let url = Url::parse(url).unwrap();
            let secret = String::new().into();
            let rail = RailConfig { name: "acquirer".into(), url, secret, other_secret: None };
            Config { rails: vec![rail], ..production() }.check(Environment::Production)
        };
        for elsewhere in ["http://10.0.0.7:9400", "http://rail.internal", "http://[2001:db8::1]/"] {
            let refused = ConfigError::PlainRail("acquirer".into());
            assert_eq!(with_rail(elsewhere), Err(refused), "{elsewhere}");
        }
        for safe in ["https://10.0.0.7", "http://127.0.0.1:9", "http://[::1]:9", "http://localhost"]
        {
            assert_eq!(with_rail(safe), Ok(()), "{safe}");
        }
    }

    #[test]
    fn the_sandbox_needs_nothing() {
        assert_eq!(Config::sandbox(([127, 0, 0, 1], 0).into()).check(Environment::Sandbox), Ok(()));
    }

    #[test]
    fn the_table_of_settings_has_the_defaults() {
        let table = include_str!("../../../docs/operate.md");
        let limits = Limits::default();
        let defaults: [(&str, &dyn std::fmt::Display); 9] = [
            ("token_failures_per_minute", &limits.token_failures_per_minute),
            ("address_failures_per_minute", &limits.address_failures_per_minute),
            ("partner_requests_per_second", &limits.partner_requests_per_second),
            ("order_queries_per_second", &limits.order_queries_per_second),
            ("event_pages_per_second", &limits.event_pages_per_second),
            ("checkout_misses_per_minute", &limits.checkout_misses_per_minute),
            ("checkout_polls_per_second", &limits.checkout_polls_per_second),
            ("connections", &limits.connections),
            ("connections_per_address", &limits.connections_per_address),
        ];
        for (key, default) in defaults {
            let row = format!("| `{key}` | {default} |");
            assert!(table.contains(&row), "{row} is not in docs/operate.md");
        }
        let commit = format!("| `commit_batch_max` | {},", Config::COMMIT_BATCH_MAX);
        assert!(table.contains(&commit), "{commit} is not in docs/operate.md");
    }
}
