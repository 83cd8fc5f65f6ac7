//! Connections to PostgreSQL: how many, for how long, and to which of its hosts.

use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use deadpool_postgres::{
    Connect, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts,
};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Error};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS, reason};
use crate::store::{Result, StoreError};
use crate::tls;

/// Nine of the batches, five of those who look or read events, and some for all that is done alone.
const CONNECTIONS_MAX: usize = 17;
/// Until one of the hosts takes us.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// For the other hosts, once one has answered: a takeover must not be overlooked, nor one that hangs waited for.
const OTHERS_MOMENT: Duration = Duration::from_millis(500);
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
/// A statement that waited for a row sees what was committed meanwhile, however the server is set up: it is how a
/// cancellation sees a payment that was begun beside it.
const SEES_COMMITTED: &str = r"-c default_transaction_isolation=read\ committed";
/// What a node holds when it dies or stands still is given back by the server: a transaction that says
/// nothing, and a peer that acknowledges nothing.
const GIVEN_BACK: &str = "-c idle_in_transaction_session_timeout=5000 -c tcp_keepalives_idle=5 \
                          -c tcp_keepalives_interval=2 -c tcp_user_timeout=10000";

/// A connection, or why there is none and where it was looked for.
pub(super) async fn first(pool: &Pool, url: &str) -> Result<deadpool_postgres::Client> {
    pool.get().await.map_err(|fault| {
        let place = url.parse::<Config>().map_or_else(|_| String::new(), |config| place(&config));
        StoreError::Refused(format!("cannot connect to PostgreSQL{place}: {}", reason(&fault)))
    })
}

/// Without user and password.
fn place(config: &Config) -> String {
    let name = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    };
    let hosts: Vec<_> = config.get_hosts().iter().map(name).collect();
    let ports: Vec<_> = config.get_ports().iter().map(|port| format!(":{port}")).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!(" at {}{}, database {database}", hosts.join(","), ports.join(","))
}

pub(super) fn pool(url: &str) -> Result<Pool> {
    let mut config: Config = url
        .parse()
        // The URL holds a password: the parser's message names the part that is wrong, not its value.
        .map_err(|fault| {
            StoreError::Refused(format!("the PostgreSQL URL is not valid: {fault}"))
        })?;
    let given = config.get_options().unwrap_or_default().to_owned();
    config.options(format!(
        "{given} -c statement_timeout={STATEMENT_TIMEOUT_MS} -c lock_timeout={LOCK_TIMEOUT_MS} {SEES_COMMITTED} {BY_INDEX} {GIVEN_BACK}"
    ));
    let tls =
        tls::client(tls::trust_store()).map_err(|fault| StoreError::Refused(fault.to_string()))?;
    let hosts = AnyHost {
        each: each_host(&config),
        tls: MakeRustlsConnect::new(tls),
        timeline: AtomicI64::new(UNKNOWN),
    };
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

/// All hosts at once: one that is gone may not even refuse, and the driver, which asks one after the other,
/// would never come to the next.
struct AnyHost {
    each: Vec<Config>,
    tls: MakeRustlsConnect,
    /// The latest history that was met: each takeover begins a new one, and who still has an older one was
    /// left behind.
    timeline: AtomicI64,
}

/// Before the first connection; or of a server that does not tell.
const UNKNOWN: i64 = 0;
/// What such a server says.
const OF_ANOTHER_MAKE: [SqlState; 2] =
    [SqlState::UNDEFINED_FUNCTION, SqlState::FEATURE_NOT_SUPPORTED];

type Connected = std::result::Result<(Client, JoinHandle<()>), Error>;

impl Connect for AnyHost {
    fn connect(&self, _: &Config) -> Pin<Box<dyn Future<Output = Connected> + Send + '_>> {
        Box::pin(async move {
            match self.each.as_slice() {
                [only] => open(only, self.tls.clone()).await,
                several => self.latest_of(several).await,
            }
        })
    }
}

impl AnyHost {
    /// Of those that answer soon, the one on the latest timeline.
    async fn latest_of(&self, hosts: &[Config]) -> Connected {
        let mut asked = JoinSet::new();
        for host in hosts {
            let (host, tls) = (host.clone(), self.tls.clone());
            asked.spawn(async move {
                let (client, connection) = open(&host, tls).await?;
                let timeline = timeline(&client).await?;
                Ok::<_, Error>((timeline, client, connection))
            });
        }
        let mut best: Option<(i64, Client, JoinHandle<()>)> = None;
        let mut last_fault = None;
        // Once one has answered, the others have a moment.
        let mut moment = std::pin::pin!(tokio::time::sleep(CONNECT_TIMEOUT));
        loop {
            let answer = tokio::select! {
                answer = asked.join_next() => answer,
                () = &mut moment, if best.is_some() => None,
            };
            let Some(answer) = answer else { break };
            match answer.unwrap_or_else(|ended| std::panic::resume_unwind(ended.into_panic())) {
                Ok(found) => {
                    if best.is_none() {
                        moment.as_mut().reset(Instant::now() + OTHERS_MOMENT);
                    }
                    best = best.into_iter().chain([found]).max_by_key(|(timeline, ..)| *timeline);
                }
                Err(fault) => last_fault = Some(fault),
            }
        }
        let Some((timeline, client, connection)) = best else {
            return Err(last_fault.expect("each host has been asked"));
        };
        let known = self.timeline.fetch_max(timeline, Ordering::AcqRel);
        if timeline < known && timeline != UNKNOWN {
            left_behind(&client).await?;
        }
        Ok((client, connection))
    }
}

async fn open(host: &Config, tls: MakeRustlsConnect) -> Connected {
    let (client, connection) = host.connect(tls).await?;
    // Its end is seen by whoever uses the client.
    Ok((client, tokio::spawn(async { drop(connection.await) })))
}

/// Which history a primary writes on.
async fn timeline(client: &Client) -> std::result::Result<i64, Error> {
    let sql =
        "select ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint";
    match client.query_one(sql, &[]).await {
        Ok(row) => Ok(row.get(0)),
        Err(fault) if fault.code().is_some_and(|code| OF_ANOTHER_MAKE.contains(code)) => {
            Ok(UNKNOWN)
        }
        Err(fault) => Err(fault),
    }
}

/// An old primary that came back as it was would take writes that nobody finds again. It says so itself, in
/// its own log too: always an error.
async fn left_behind(client: &Client) -> std::result::Result<(), Error> {
    let sql = "do $$ begin raise exception
               'this server was left behind by a takeover: svc does not write to it'; end $$";
    client.batch_execute(sql).await
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
