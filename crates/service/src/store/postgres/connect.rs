//! Connections to PostgreSQL: how many, for how long, and to which of its hosts.

use std::pin::Pin;
use std::time::Duration;

use deadpool_postgres::{
    Connect, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts,
};
use tokio::task::{JoinHandle, JoinSet};
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::{Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::STATEMENT_TIMEOUT_MS;
use crate::store::{Result, StoreError};
use crate::tls;

const CONNECTIONS_MAX: usize = 15;
/// Until one of the hosts takes us.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// For each address of a host.
const TCP_TIMEOUT: Duration = Duration::from_secs(1);
const POOL_TIMEOUT: Duration = Duration::from_secs(1);
/// A peer that no longer answers is given up, even when the network says nothing.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(5);
/// Every statement of ours finds its rows by an index. A plan that was made while the tables had no
/// statistics must not read them whole, and would until they have. Where there is no index (a table of a few
/// rows) these settings make a plan look so dear that PostgreSQL would compile it: milliseconds each time.
const BY_INDEX: &str =
    "-c enable_hashjoin=off -c enable_mergejoin=off -c enable_seqscan=off -c jit=off";
/// What a node holds when it dies or stands still is given back by the server: a transaction that says
/// nothing, and a peer that acknowledges nothing.
const GIVEN_BACK: &str = "-c idle_in_transaction_session_timeout=5000 -c tcp_keepalives_idle=5 \
                          -c tcp_keepalives_interval=2 -c tcp_user_timeout=10000";

pub(super) fn pool(url: &str) -> Result<Pool> {
    let mut config: Config = url
        .parse()
        // The URL holds a password: the parser's message names the part that is wrong, not its value.
        .map_err(|fault| {
            StoreError::Refused(format!("the PostgreSQL URL is not valid: {fault}"))
        })?;
    let given = config.get_options().unwrap_or_default().to_owned();
    config.options(format!(
        "{given} -c statement_timeout={STATEMENT_TIMEOUT_MS} {BY_INDEX} {GIVEN_BACK}"
    ));
    let tls =
        tls::client(tls::trust_store()).map_err(|fault| StoreError::Refused(fault.to_string()))?;
    let hosts = AnyHost { each: each_host(&config), tls: MakeRustlsConnect::new(tls) };
    let manager = Manager::from_connect(
        config,
        hosts,
        ManagerConfig { recycling_method: RecyclingMethod::Verified },
    );
    Pool::builder(manager)
        .max_size(CONNECTIONS_MAX)
        .runtime(Runtime::Tokio1)
        .timeouts(Timeouts {
            wait: Some(POOL_TIMEOUT),
            create: Some(CONNECT_TIMEOUT),
            recycle: Some(POOL_TIMEOUT),
        })
        .build()
        .map_err(|fault| StoreError::Refused(fault.to_string()))
}

/// Whichever host is the first to take writes: one that is gone may not even refuse, and the driver, which
/// asks one after the other, would never come to the next.
struct AnyHost {
    each: Vec<Config>,
    tls: MakeRustlsConnect,
}

type Connected = std::result::Result<(Client, JoinHandle<()>), Error>;

impl Connect for AnyHost {
    fn connect(&self, _: &Config) -> Pin<Box<dyn Future<Output = Connected> + Send + '_>> {
        Box::pin(async move {
            let mut asked = JoinSet::new();
            for host in &self.each {
                let (host, tls) = (host.clone(), self.tls.clone());
                asked.spawn(async move { host.connect(tls).await });
            }
            loop {
                let answer = asked.join_next().await.expect("each host has been asked");
                match answer.unwrap_or_else(|ended| std::panic::resume_unwind(ended.into_panic())) {
                    // Its end is seen by whoever uses the client.
                    Ok((client, connection)) => {
                        return Ok((client, tokio::spawn(async { drop(connection.await) })));
                    }
                    Err(fault) if asked.is_empty() => return Err(fault),
                    Err(_) => {}
                }
            }
        })
    }
}

/// The same for each host alone.
fn each_host(config: &Config) -> Vec<Config> {
    let (hosts, addresses, ports) =
        (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let alone = |place: usize| {
        let mut alone = Config::new();
        match hosts.get(place) {
            Some(Host::Tcp(name)) => drop(alone.host(name)),
            Some(Host::Unix(path)) => drop(alone.host_path(path)),
            None => {}
        }
        if let Some(address) = addresses.get(place) {
            alone.hostaddr(*address);
        }
        // One port is that of all.
        if let Some(port) = ports.get(place).or(ports.first()) {
            alone.port(*port);
        }
        if let Some(user) = config.get_user() {
            alone.user(user);
        }
        if let Some(password) = config.get_password() {
            alone.password(password);
        }
        if let Some(name) = config.get_dbname() {
            alone.dbname(name);
        }
        if let Some(options) = config.get_options() {
            alone.options(options);
        }
        if let Some(interval) = config.get_keepalives_interval() {
            alone.keepalives_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            alone.keepalives_retries(retries);
        }
        alone
            .application_name("svc")
            .ssl_mode(config.get_ssl_mode())
            .ssl_negotiation(config.get_ssl_negotiation())
            .channel_binding(config.get_channel_binding())
            .keepalives(config.get_keepalives())
            .keepalives_idle(TCP_USER_TIMEOUT)
            .connect_timeout(TCP_TIMEOUT)
            .tcp_user_timeout(TCP_USER_TIMEOUT)
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        alone
    };
    (0..hosts.len().max(addresses.len()).max(1)).map(alone).collect()
}
