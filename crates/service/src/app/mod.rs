//! The toolbox every room is handed: settings, store, keys, clock, random, directory, metrics.

mod additional_infos;
mod awake;
mod caught;
mod clock;
mod directory;
mod limits;
mod metrics;
mod news;
mod outbox_bell;
mod random;
mod ready;
mod request_log;
mod seats;
mod signers;
mod tokens;

use std::ops::Deref;
use std::sync::Arc;

pub use additional_infos::AdditionalInfos;
pub use awake::Awake;
pub(crate) use caught::{Panicked, caught, joined};
pub use clock::Clock;
pub use directory::{DirectoryCache, Known};
pub(crate) use limits::network;
pub use limits::{Limited, RateLimits};
pub use metrics::{Metrics, PARTNER_ROUTES, ROUTES};
pub use news::News;
pub use outbox_bell::OutboxBell;
pub use random::Random;
pub use ready::Ready;
pub use request_log::{RequestLog, Trace};
pub use seats::{House, Seat, Seats};
pub use signers::Signers;
pub use tokens::{Token, TokenCache};

use crate::config::{Config, ConfigError};
use crate::domain::{Environment, UrlRules};
use crate::keys::{KEY_BYTES, KeyError, Keys, master_key_from};
use crate::rails::{Rails, RailsError};
use crate::store::{Database, Options, Store, StoreError};
use crate::threads::Threads;
use secrecy::ExposeSecret;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

const LISTENING_OF_NODE: usize = 64;
const LISTENING_OF_HOUSE: usize = 16;
const EXPORTING_OF_NODE: usize = 8;
const EXPORTING_OF_HOUSE: usize = 2;

#[derive(Clone)]
pub struct App(Arc<Tools>);

pub struct Tools {
    pub config: Config,
    pub environment: Environment,
    pub url_rules: UrlRules,
    pub additional_infos: AdditionalInfos,
    pub store: Store,
    pub threads: Threads,
    pub keys: Keys,
    pub clock: Clock,
    pub outbox_bell: OutboxBell,
    pub rails: Rails,
    /// Calls that start a payment, each with its answer's way to the store: a stop waits for them.
    pub rail_calls: TaskTracker,
    pub awake: Awake,
    pub random: Random,
    /// Held while a sandbox moves its clock.
    pub travel: tokio::sync::Mutex<()>,
    /// Held by whoever sends again all that failed: one at a time.
    pub recovering: Arc<Semaphore>,
    /// Pages of the console that listen for news.
    pub listening: Seats,
    /// Lists on their way to who asked for a file: each holds some of its rows in memory.
    pub exporting: Seats,
    pub directory: DirectoryCache,
    pub tokens: TokenCache,
    pub signers: Signers,
    pub limits: RateLimits,
    pub metrics: Metrics,
    pub request_log: RequestLog,
    pub news: News,
    pub ready: Ready,
}

impl Deref for App {
    type Target = Tools;

    fn deref(&self) -> &Tools {
        &self.0
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the system gives the service no thread for its connections: {0}")]
    Threads(std::io::Error),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Rails(#[from] RailsError),
    #[error("this database goes by another master key; give the service that one")]
    OtherMasterKey,
    #[error(
        "the service has begun with another master key since: give that one as well, as \
         other_master_key"
    )]
    ServedWithAnother,
}

impl App {
    /// Opens everything a service needs; nothing listens yet.
    pub async fn open(config: Config, database: &Database) -> Result<Self, StartError> {
        Self::open_at(config, database, Clock::system()).await
    }

    /// The same by another clock.
    pub async fn open_at(
        config: Config,
        database: &Database,
        clock: Clock,
    ) -> Result<Self, StartError> {
        let metrics = Metrics::new();
        let threads = Threads::begin().map_err(StartError::Threads)?;
        let options = Options {
            batch_size: metrics.batch_size.clone(),
            threads: threads.clone(),
            ..Options::new(config.environment, config.commit_batch_max, config.create_database)
        };
        let store = Store::open(database, options).await?;
        let environment = store.environment();
        let random = Random::system();
        let keys = keys(&store, &config, &random).await?;
        let directory = DirectoryCache::load(&store).await?;
        // A sandbox that was moved into the future stays there when it starts again.
        clock.be_ahead_by(store.clock_ahead().await?);
        let url_rules = config.url_rules(environment);
        Ok(Self(Arc::new(Tools {
            environment,
            additional_infos: AdditionalInfos::new(url_rules.clone()),
            url_rules,
            limits: RateLimits::new(&config.limits),
            rails: Rails::new(environment, &config.rails, &hex::encode(random.bytes::<8>()))?,
            config,
            store,
            threads,
            keys,
            awake: Awake::since_now(&clock),
            clock,
            rail_calls: TaskTracker::new(),
            outbox_bell: OutboxBell::default(),
            random,
            travel: tokio::sync::Mutex::new(()),
            recovering: Arc::new(Semaphore::new(1)),
            listening: Seats::new(LISTENING_OF_NODE, LISTENING_OF_HOUSE),
            exporting: Seats::new(EXPORTING_OF_NODE, EXPORTING_OF_HOUSE),
            directory,
            tokens: TokenCache::default(),
            signers: Signers::default(),
            metrics,
            request_log: RequestLog::default(),
            news: News::default(),
            ready: Ready::default(),
        })))
    }
}

/// The configured key, or in a sandbox the one its database keeps: nothing there is worth more
/// than starting without ceremony.
async fn keys(store: &Store, config: &Config, random: &Random) -> Result<Keys, StartError> {
    let master = match (&config.master_key, store.environment()) {
        (Some(key), _) => key.clone(),
        (None, Environment::Production) => return Err(ConfigError::MasterKey.into()),
        (None, Environment::Sandbox) => {
            let fresh = master_key_from(random.bytes::<KEY_BYTES>());
            store.setting_or_insert("sandbox_master_key", fresh.expose_secret()).await?.into()
        }
    };
    let mut keys = Keys::derive(&master)?;
    if let Some(other) = &config.other_master_key {
        keys = keys.beside(other)?;
    }
    // Hashes and seals of one key mean nothing to another: refuse instead of answering 401 for ever.
    let stored = store.master_key_or_insert(&keys.id()).await?;
    let keys = keys.inherit(&stored).map_err(|fault| match fault {
        KeyError::OtherKey => StartError::OtherMasterKey,
        KeyError::NotAKey | KeyError::OtherNotAKey | KeyError::Retired | KeyError::Changed => {
            fault.into()
        }
    })?;
    // What that one has sealed meanwhile nobody here could read.
    let known = [Some(keys.id()), keys.other_id()];
    if store.served_with().await?.into_iter().any(|id| !known.contains(&Some(id))) {
        return Err(StartError::ServedWithAnother);
    }
    Ok(keys)
}
