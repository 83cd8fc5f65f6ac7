//! A fresh database of either engine for one test, a service on it, and values to put into it.

mod attempts;
mod connector;
mod delivery;
mod dice;
mod dns;
mod hostile;
mod paying;
mod receiver;
mod service;
mod tls;
mod wire;

pub(crate) use attempts::figure;
pub(crate) use connector::{Reply, TestConnector};
pub(crate) use delivery::{Shop, TestDelivery};
pub(crate) use dice::Dice;
pub(crate) use dns::{DnsAnswer, NameServer};
pub(crate) use hostile::{FullQueue, Gate, read_request, resets, says, says_and_closes};
pub(crate) use paying::{Seen, TestPaying, push, reference};
pub(crate) use receiver::{Received, Receiver};
pub(crate) use service::{Answer, TestService, application};
pub(crate) use tls::{Authority, self_signed};
pub(crate) use wire::Wire;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use svc_service::app::App;
use svc_service::config::Config;
use svc_service::domain::*;
use svc_service::store::{Database, EventFilter, EventRecord, Options, Scope, Store};

/// The same test on both engines.
macro_rules! on_both_engines {
    ($($name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name($crate::support::TestDatabase::sqlite()).await })+
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() { super::$name($crate::support::TestDatabase::postgres().await).await }
            )+
        }
    };
}

/// What never comes fails its test, and does not hold up all the others. Far longer than anything takes.
pub(crate) async fn patiently<T>(wait: impl Future<Output = T>) -> T {
    let patience = std::time::Duration::from_secs(120);
    tokio::time::timeout(patience, wait).await.expect("what is waited for comes")
}

/// A database that exists for one test and goes with it.
pub(crate) enum TestDatabase {
    Sqlite(PathBuf),
    Postgres { server: String, name: String },
}

static NEXT: AtomicU64 = AtomicU64::new(0);

fn unique() -> String {
    format!("svc_test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

impl TestDatabase {
    pub(crate) fn sqlite() -> Self {
        let directory = std::env::temp_dir().join(unique());
        std::fs::create_dir_all(&directory).unwrap();
        Self::Sqlite(directory)
    }

    pub(crate) async fn postgres() -> Self {
        let server = std::env::var("SVC_TEST_DATABASE_URL")
            .expect("no PostgreSQL for this test: run it through dev/with-postgres, or ./test");
        let name = unique();
        execute(&server, &format!("create database {name}")).await;
        Self::Postgres { server, name }
    }

    pub(crate) fn database(&self) -> Database {
        match self {
            Self::Sqlite(_) => Database::parse(&format!("sqlite:{}", self.path().display())),
            Self::Postgres { .. } => Database::parse(&self.url()),
        }
        .unwrap()
    }

    pub(crate) async fn store(&self) -> Store {
        Store::open(&self.database(), options(Some(Environment::Sandbox))).await.unwrap()
    }

    /// Straight SQL, past the service.
    pub(crate) async fn sql(&self, statement: &str) {
        match self {
            Self::Sqlite(_) => {
                rusqlite::Connection::open(self.path()).unwrap().execute_batch(statement).unwrap();
            }
            Self::Postgres { .. } => execute(&self.url(), statement).await,
        }
    }

    /// A connection of its own, for tests that hold locks; PostgreSQL only.
    pub(crate) async fn connection(&self) -> tokio_postgres::Client {
        connect(&self.url()).await
    }

    pub(crate) async fn count(&self, table: &str) -> i64 {
        self.number(&format!("select count(*) from {table}")).await
    }

    /// The one number a query gives.
    pub(crate) async fn number(&self, query: &str) -> i64 {
        match self {
            Self::Sqlite(_) => rusqlite::Connection::open(self.path())
                .unwrap()
                .query_row(query, [], |row| row.get(0))
                .unwrap(),
            Self::Postgres { .. } => {
                connect(&self.url()).await.query_one(query, &[]).await.unwrap().get(0)
            }
        }
    }

    /// Whether these bytes stand anywhere in the database, in any column of any table.
    pub(crate) async fn holds(&self, text: &str) -> bool {
        match self {
            Self::Sqlite(directory) => std::fs::read_dir(directory).unwrap().any(|file| {
                let bytes = std::fs::read(file.unwrap().path()).unwrap();
                bytes.windows(text.len()).any(|window| window == text.as_bytes())
            }),
            Self::Postgres { .. } => {
                let client = connect(&self.url()).await;
                let tables = "select tablename::text from pg_tables where schemaname = 'public'";
                for row in client.query(tables, &[]).await.unwrap() {
                    let table: String = row.get(0);
                    // A row as text shows binary columns in hexadecimal.
                    let found = format!(
                        "select count(*) from {table} t where t::text like '%{text}%' \
                         or t::text like '%{}%'",
                        hex::encode(text)
                    );
                    if client.query_one(&found, &[]).await.unwrap().get::<_, i64>(0) > 0 {
                        return true;
                    }
                }
                false
            }
        }
    }

    /// The file of a SQLite database.
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Sqlite(directory) => directory.join("svc.db"),
            Self::Postgres { .. } => unreachable!("only SQLite has a file"),
        }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Sqlite(_) => unreachable!("only PostgreSQL has a URL"),
            Self::Postgres { server, name } => {
                let (base, _) = server.rsplit_once('/').expect("…/database at the end of the URL");
                format!("{base}/{name}")
            }
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // ./test searches what is left for secrets.
        if std::env::var_os("SVC_TEST_KEEP").is_some() {
            return;
        }
        match self {
            Self::Sqlite(directory) => {
                let _ = std::fs::remove_dir_all(directory);
            }
            Self::Postgres { server, name } => {
                let (server, statement) =
                    (server.clone(), format!("drop database if exists {name} with (force)"));
                let drop_it = move || {
                    let runtime = tokio::runtime::Runtime::new().unwrap();
                    runtime.block_on(execute(&server, &statement));
                };
                let _ = std::thread::spawn(drop_it).join();
            }
        }
    }
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn execute(url: &str, statement: &str) {
    connect(url).await.batch_execute(statement).await.unwrap();
}

pub(crate) fn options(environment: Option<Environment>) -> Options {
    Options::new(environment, 512, true)
}

pub(crate) fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + ms).unwrap()
}

/// Ten bytes nobody else got.
pub(crate) fn random() -> [u8; 10] {
    let mut bytes = [0; 10];
    let count = NEXT.fetch_add(1, Ordering::Relaxed);
    bytes[..8].copy_from_slice(&count.to_be_bytes());
    bytes
}

pub(crate) fn new_order(application: i64, id: &str) -> NewOrder {
    let info = r#"{"returnUrl":"https://a.ao/ok","cancelUrl":"https://a.ao/no","webhookUrl":"https://a.ao/hook"}"#;
    NewOrder {
        application: ApplicationId(application),
        external_transaction_id: ExternalTransactionId::parse(id).unwrap(),
        reference_number: ReferenceNumber::assign(at(0), random()),
        terms: Terms {
            payer_id: PayerId::parse("user-1").unwrap(),
            name: Label::parse("Livro").unwrap(),
            amount: Kwanza::parse(15_000).unwrap(),
            quantity: Quantity::parse(1).unwrap(),
            additional_info: AdditionalInfo::parse(info, &UrlRules::default()).unwrap(),
        },
        created_at: at(0),
        expires_at: at(86_400_000),
        request_id: "req-1".into(),
        event: None,
    }
}

pub(crate) fn stamp() -> Stamp {
    Stamp {
        at: at(5),
        actor: Actor::Service,
        event_id: EventId::assign(at(5), random()),
        request_id: "req-2".into(),
    }
}

pub(crate) fn confirm(order: &Order) -> Change {
    let proof = Proof {
        rail: "rail".into(),
        rail_payment_id: "rail-1".into(),
        amount: order.terms.amount.into(),
        attempt: None,
    };
    order.clone().pending().unwrap().confirm(&proof, stamp()).unwrap()
}

pub(crate) fn cancel(order: &Order) -> Change {
    order.clone().pending().unwrap().cancel(CancelReason::Payer, stamp())
}

/// Two nodes of one service.
pub(crate) async fn two_nodes(database: &TestDatabase) -> (App, App) {
    let node = async || {
        let config = Config::sandbox(([127, 0, 0, 1], 0).into());
        App::open(config, &database.database()).await.unwrap()
    };
    (node().await, node().await)
}

/// A rail's word that this order was paid in full.
pub(crate) fn payment_of(order: &Order) -> Notice {
    Notice {
        rail: "rail".into(),
        rail_payment_id: format!("rail-{}", order.reference_number.as_str()),
        about: About::Order(order.reference_number.clone()),
        word: Word::Paid(order.terms.amount.into()),
        raw: b"paid".to_vec(),
    }
}

/// Events that are still to be delivered.
pub(crate) async fn waiting_events(store: &Store) -> i64 {
    store.attention(&Scope::Everything).await.unwrap().waiting_events
}

/// The events of an order, oldest first.
pub(crate) async fn events_of(store: &Store, order: &Order) -> Vec<EventRecord> {
    let filter = EventFilter {
        reference_number: Some(order.reference_number.clone()),
        ..EventFilter::default()
    };
    let mut events = store.events(filter, 10).await.unwrap();
    events.reverse();
    events
}

pub(crate) use on_both_engines;
