//! Settings: a flag wins over a `SVC_SERVER_…` variable, which wins over the file, which wins over
//! the default. Unknown names are refused, so that a typing error cannot pass for a setting.

mod file;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, ensure};
use ipnet::IpNet;
use svc_service::app::App;
use svc_service::config::{Config, Labels, Limits, RailConfig, TlsFiles, WebhookConfig};
use svc_service::domain::Environment;
use svc_service::store::{Database, Options, Store};
use url::Url;

use crate::output;
use crate::secrets::{
    DATABASE_FILE, MASTER_KEY, MASTER_KEY_FILE, OTHER_MASTER_KEY, OTHER_MASTER_KEY_FILE,
    master_key, named, read_secret,
};
use file::{File, RailTable};

const DATABASE_DEFAULT: &str = "sqlite:svc.db";
const LISTEN_DEFAULT: &str = "127.0.0.1:8080";

/// What every command that touches the data needs.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct DataArgs {
    /// Settings file (TOML); see docs/operate.md
    #[arg(long, env = "SVC_SERVER_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// sqlite:PATH or postgres://USER@HOST/NAME [default: sqlite:svc.db]
    #[arg(long, env = "SVC_SERVER_DATABASE", hide_env_values = true, value_name = "URL")]
    pub database: Option<String>,
    /// sandbox or production [default: what the database is; a new one is a sandbox]
    #[arg(long, env = "SVC_SERVER_ENVIRONMENT", value_name = "NAME")]
    pub environment: Option<Environment>,
}

/// What every command needs that shows some of it.
#[derive(clap::Args)]
pub(crate) struct Shown {
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Shown {
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        self.data.settings()
    }
}

/// What a running service needs besides.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct ServiceArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:8080]
    #[arg(long, env = "SVC_SERVER_LISTEN", value_name = "ADDR", value_parser = listen_address)]
    pub listen: Option<SocketAddr>,
    /// How merchants and payers reach this service
    #[arg(long, env = "SVC_SERVER_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,
    /// Certificate chain (PEM); with --tls-key
    #[arg(long, env = "SVC_SERVER_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM)
    #[arg(long, env = "SVC_SERVER_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Network of a proxy whose X-Forwarded-For is believed; may be repeated
    #[arg(
        long = "trusted-proxy",
        env = "SVC_SERVER_TRUSTED_PROXIES",
        value_name = "CIDR",
        value_delimiter = ','
    )]
    pub trusted_proxies: Vec<IpNet>,
    /// Sandbox only: allow webhooks to this machine and private networks
    #[arg(
        long,
        env = "SVC_SERVER_PRIVATE_WEBHOOK_TARGETS",
        value_name = "BOOL",
        value_parser = clap::builder::BoolishValueParser::new(),
        num_args = 0..=1,
        default_missing_value = "true",
    )]
    pub private_webhook_targets: Option<bool>,
    /// Name server to ask for merchants' addresses; may be repeated [default: the machine's]
    #[arg(
        long = "webhook-dns",
        env = "SVC_SERVER_WEBHOOK_DNS",
        value_name = "ADDR",
        value_delimiter = ','
    )]
    pub webhook_dns: Vec<SocketAddr>,
    /// Sandbox only: certificate authorities (PEM) to trust beside the machine's
    #[arg(long, env = "SVC_SERVER_WEBHOOK_CA", value_name = "FILE")]
    pub webhook_ca: Option<PathBuf>,
    /// Most writes in one commit; 1 switches group commit off [default: 2048]
    #[arg(long, env = "SVC_SERVER_COMMIT_BATCH_MAX", value_name = "N", hide = true)]
    pub commit_batch_max: Option<usize>,
    /// Wrong credentials of one client id from one address before 429 [default: 100]
    #[arg(long, env = "SVC_SERVER_TOKEN_FAILURES_PER_MINUTE", value_name = "N")]
    pub token_failures_per_minute: Option<u32>,
    /// Wrong credentials from one address before 429 [default: 2000]
    #[arg(long, env = "SVC_SERVER_ADDRESS_FAILURES_PER_MINUTE", value_name = "N")]
    pub address_failures_per_minute: Option<u32>,
    /// Calls of one partner before 429 [default: 100000]
    #[arg(long, env = "SVC_SERVER_PARTNER_REQUESTS_PER_SECOND", value_name = "N")]
    pub partner_requests_per_second: Option<u32>,
    /// Queries for one order before 429 [default: 200]
    #[arg(long, env = "SVC_SERVER_ORDER_QUERIES_PER_SECOND", value_name = "N")]
    pub order_queries_per_second: Option<u32>,
    /// Pages of events that one partner reads before 429 [default: 20]
    #[arg(long, env = "SVC_SERVER_EVENT_PAGES_PER_SECOND", value_name = "N")]
    pub event_pages_per_second: Option<u32>,
    /// What payers read for FPMCXEXPRSS [default: Multicaixa Express]
    #[arg(long, env = "SVC_SERVER_EXPRESS_LABEL", value_name = "TEXT")]
    pub express_label: Option<String>,
    /// What payers read for FPSOLPG, after "Pay with" [default: svc]
    #[arg(long, env = "SVC_SERVER_WALLET_LABEL", value_name = "TEXT")]
    pub wallet_label: Option<String>,
    /// Checkout pages that do not exist from one address before 429 [default: 60]
    #[arg(long, env = "SVC_SERVER_CHECKOUT_MISSES_PER_MINUTE", value_name = "N")]
    pub checkout_misses_per_minute: Option<u32>,
    /// Looks at one order by its checkout page before 429 [default: 10]
    #[arg(long, env = "SVC_SERVER_CHECKOUT_POLLS_PER_SECOND", value_name = "N")]
    pub checkout_polls_per_second: Option<u32>,
    /// Open connections [default: 10000]
    #[arg(long, env = "SVC_SERVER_CONNECTIONS", value_name = "N")]
    pub connections: Option<usize>,
    /// Open connections of one address that is no trusted proxy [default: 1000]
    #[arg(long, env = "SVC_SERVER_CONNECTIONS_PER_ADDRESS", value_name = "N")]
    pub connections_per_address: Option<usize>,
}

/// Whoever writes only a port is told how to write the rest: which address is not ours to guess.
pub(crate) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.rsplit(':').next().map(str::parse::<u32>);
        let port = match port {
            Some(Ok(port)) if port > u16::MAX.into() => {
                return format!("a port is at most {}", u16::MAX);
            }
            Some(Ok(port)) => port,
            _ => 8080,
        };
        format!("write address and port: 127.0.0.1:{port} for this machine, 0.0.0.0:{port} for all")
    })
}

const DATABASE: &str = "SVC_SERVER_DATABASE";

/// Where the data is and how to serve it.
pub(crate) struct Settings {
    pub config: Config,
    pub database: Database,
    /// Files with secrets in them, for whoever asks who may read those.
    pub secret_files: Vec<PathBuf>,
}

impl DataArgs {
    /// For commands that only touch the data.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        ServiceArgs { data: self.clone(), ..ServiceArgs::default() }.settings()
    }
}

impl Settings {
    /// For the commands a sandbox may begin with; production begins with `svc migrate`.
    pub(crate) fn may_create(mut self) -> Self {
        self.config.create_database = self.config.environment != Some(Environment::Production);
        self
    }

    /// The data, opened without serving anything.
    pub(crate) async fn open(self) -> anyhow::Result<App> {
        Ok(App::open(self.config, &self.database).await?)
    }

    /// The database alone, for commands that need no secret.
    pub(crate) async fn open_store(&self) -> anyhow::Result<Store> {
        let Config { environment, commit_batch_max, create_database, .. } = self.config;
        let options = Options::new(environment, commit_batch_max, create_database);
        Ok(Store::open(&self.database, options).await?)
    }
}

impl ServiceArgs {
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        let file = file::read(self.data.config.as_deref())?;
        let environment = match (self.data.environment, &file.environment) {
            (Some(given), _) => Some(given),
            (None, Some(name)) => Some(name.parse()?),
            (None, None) => None,
        };
        let public_url = self.public_url.as_ref().or(file.public_url.as_ref());
        let proxies = if self.trusted_proxies.is_empty() {
            &file.trusted_proxies
        } else {
            &self.trusted_proxies
        };
        let config = Config {
            environment,
            public_url: public_url
                .map(|url| web_address(url).map_err(|why| anyhow!("the public URL: {why}")))
                .transpose()?,
            tls: tls(self, &file)?,
            trusted_proxies: proxies.clone(),
            private_webhook_targets: self
                .private_webhook_targets
                .or(file.private_webhook_targets)
                .unwrap_or(false),
            webhooks: webhooks(self, &file),
            labels: labels(self, &file)?,
            rails: file.rails.iter().map(rail).collect::<anyhow::Result<_>>()?,
            master_key: master_key(
                MASTER_KEY,
                named(MASTER_KEY_FILE, &file.master_key_file),
                &file.master_key,
            )?,
            other_master_key: master_key(
                OTHER_MASTER_KEY,
                named(OTHER_MASTER_KEY_FILE, &file.other_master_key_file),
                &file.other_master_key,
            )?,
            limits: limits(self, &file)?,
            commit_batch_max: within(
                "commit_batch_max",
                self.commit_batch_max.or(file.commit_batch_max).unwrap_or(Config::COMMIT_BATCH_MAX),
                Config::COMMIT_BATCH_MAX,
            )?,
            // A missing file is more likely a wrong path than a first start; see `may_create`.
            create_database: false,
            ..Config::sandbox(
                self.listen.or(file.listen).unwrap_or(LISTEN_DEFAULT.parse().expect("an address")),
            )
        };
        Ok(Settings {
            config,
            database: database(&self.data, &file)?,
            secret_files: secret_files(self.data.config.as_deref(), &file),
        })
    }
}

fn secret_files(settings: Option<&Path>, file: &File) -> Vec<PathBuf> {
    let with_password = file.database.as_deref().is_some_and(|url| url.contains('@'));
    let holds_secrets = with_password
        || file.master_key.is_some()
        || file.other_master_key.is_some()
        || file.rails.iter().any(|rail| rail.secret.is_some() || rail.other_secret.is_some());
    let named = [
        named(DATABASE_FILE, &file.database_file),
        named(MASTER_KEY_FILE, &file.master_key_file),
        named(OTHER_MASTER_KEY_FILE, &file.other_master_key_file),
    ];
    let of_rails =
        file.rails.iter().flat_map(|rail| [&rail.secret_file, &rail.other_secret_file]).flatten();
    let settings = settings.filter(|_| holds_secrets).map(Path::to_path_buf);
    settings.into_iter().chain(named.into_iter().flatten()).chain(of_rails.cloned()).collect()
}

/// Names every `SVC_SERVER_…` variable that means nothing to us.
pub(crate) fn refuse_unknown_variables() -> anyhow::Result<()> {
    use clap::{Args, Command};
    let command = ServiceArgs::augment_args(Command::new("svc"));
    let mut known: Vec<_> =
        command.get_arguments().filter_map(|argument| argument.get_env()?.to_str()).collect();
    known.extend([MASTER_KEY, MASTER_KEY_FILE, OTHER_MASTER_KEY, OTHER_MASTER_KEY_FILE]);
    known.extend([DATABASE_FILE, crate::log::VARIABLE]);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("SVC_SERVER_") && !known.contains(&&*name) {
            bail!("the variable {name} is not a setting; svc serve --help lists them");
        }
    }
    Ok(())
}

fn database(args: &DataArgs, file: &File) -> anyhow::Result<Database> {
    let text = match (&args.database, named(DATABASE_FILE, &file.database_file), &file.database) {
        (Some(given), _, _) => {
            tell_open_password(given);
            given.clone()
        }
        (None, Some(path), _) => read_secret(&path)?,
        (None, None, Some(given)) => given.clone(),
        (None, None, None) => DATABASE_DEFAULT.to_owned(),
    };
    Ok(Database::parse(&text)?)
}

/// What is written on a command line is in the list of processes, for everybody on the machine.
fn tell_open_password(given: &str) {
    let authority = given.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next());
    let user = authority.and_then(|authority| authority.rsplit_once('@'));
    let has_password =
        user.is_some_and(|(user, _)| user.contains(':')) || given.contains("password=");
    if has_password && !std::env::var(DATABASE).is_ok_and(|variable| variable == given) {
        output::note(format_args!(
            "The password in --database can be read by everybody on this machine: write the URL into a file and \
             name it in {DATABASE_FILE}."
        ));
    }
}

fn tls(args: &ServiceArgs, file: &File) -> anyhow::Result<Option<TlsFiles>> {
    let certificate = args.tls_cert.as_ref().or(file.tls_cert.as_ref());
    let key = args.tls_key.as_ref().or(file.tls_key.as_ref());
    match (certificate, key) {
        (Some(certificate), Some(key)) => {
            Ok(Some(TlsFiles { certificate: certificate.clone(), key: key.clone() }))
        }
        (None, None) => Ok(None),
        _ => bail!("TLS needs a certificate and its key: give --tls-cert and --tls-key"),
    }
}

fn webhooks(args: &ServiceArgs, file: &File) -> WebhookConfig {
    let servers = if args.webhook_dns.is_empty() { &file.webhook_dns } else { &args.webhook_dns };
    WebhookConfig {
        name_servers: servers.clone(),
        certificates: args.webhook_ca.as_ref().or(file.webhook_ca.as_ref()).cloned(),
    }
}

fn labels(args: &ServiceArgs, file: &File) -> anyhow::Result<Labels> {
    let default = Labels::default();
    let first = |name, given: &Option<String>, written: &Option<String>, default: String| {
        let label = given.clone().or(written.clone()).unwrap_or_else(|| default.clone());
        ensure!(!label.trim().is_empty(), "{name} is empty: leave it out for {default}");
        Ok(label)
    };
    Ok(Labels {
        express: first("express_label", &args.express_label, &file.express_label, default.express)?,
        wallet: first("wallet_label", &args.wallet_label, &file.wallet_label, default.wallet)?,
    })
}

fn rail(table: &RailTable) -> anyhow::Result<RailConfig> {
    let RailTable { name, url, secret, secret_file, other_secret, other_secret_file } = table;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(plain) {
        bail!("the name of a rail is of lower-case letters, digits and hyphens, not {name:?}");
    }
    let secret = match (secret, secret_file) {
        (Some(secret), None) => secret.clone(),
        (None, Some(path)) => read_secret(path)?,
        _ => bail!("rail {name} needs either secret or secret_file"),
    };
    let other_secret = match (other_secret, other_secret_file) {
        (written, None) => written.clone(),
        (None, Some(path)) => Some(read_secret(path)?),
        _ => bail!("rail {name} has other_secret and other_secret_file; one of them is enough"),
    };
    let url = web_address(url).map_err(|why| anyhow!("the URL of rail {name}: {why}"))?;
    Ok(RailConfig {
        name: name.clone(),
        url,
        secret: secret.into(),
        other_secret: other_secret.map(Into::into),
    })
}

/// More than any system opens.
const CONNECTIONS_MAX: usize = 1_000_000;

fn limits(args: &ServiceArgs, file: &File) -> anyhow::Result<Limits> {
    let default = Limits::default();
    macro_rules! rate {
        ($name:ident) => {
            match args.$name.or(file.$name).unwrap_or(default.$name) {
                0 => bail!(
                    "{} must be at least 1: with 0 nobody would be answered",
                    stringify!($name)
                ),
                rate => rate,
            }
        };
    }
    macro_rules! count {
        ($name:ident) => {
            within(
                stringify!($name),
                args.$name.or(file.$name).unwrap_or(default.$name),
                CONNECTIONS_MAX,
            )?
        };
    }
    Ok(Limits {
        token_failures_per_minute: rate!(token_failures_per_minute),
        address_failures_per_minute: rate!(address_failures_per_minute),
        partner_requests_per_second: rate!(partner_requests_per_second),
        order_queries_per_second: rate!(order_queries_per_second),
        event_pages_per_second: rate!(event_pages_per_second),
        checkout_misses_per_minute: rate!(checkout_misses_per_minute),
        checkout_polls_per_second: rate!(checkout_polls_per_second),
        connections: count!(connections),
        connections_per_address: count!(connections_per_address),
    })
}

fn within(name: &str, given: usize, most: usize) -> anyhow::Result<usize> {
    if !(1..=most).contains(&given) {
        bail!("{name} must be 1 to {most}, not {given}");
    }
    Ok(given)
}

/// How a service is reached: without what a path is later put behind.
pub(crate) fn web_address(text: &str) -> Result<Url, &'static str> {
    const LIKE: &str = "it must be http or https, without user, query or fragment: write it like \
                        https://api.example.ao";
    let url: Url = text.parse().map_err(|_| LIKE)?;
    let has_more = url.query().is_some()
        || url.fragment().is_some()
        || !url.username().is_empty()
        || url.password().is_some();
    if !matches!(url.scheme(), "http" | "https") || has_more {
        return Err(LIKE);
    }
    Ok(url)
}
