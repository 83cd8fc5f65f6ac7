//! The reference integration (spec 4.6): what a merchant's backend does, and a small shop around it.
//!
//! It knows the payment service as real merchants do: by its API, its webhooks and its SDK. Nothing
//! of the service's code is used here.

mod body;
mod catalogue;
mod clock;
mod create_order;
mod fulfil;
mod greeting;
mod nowhere;
mod order_events;
mod order_page;
mod order_status;
mod pages;
mod reconcile;
mod reply;
mod report;
mod server;
mod settings;
mod store;
mod texts;
mod webhook;

use std::sync::Arc;

use svc_client::{Client, Credentials};
use tokio::sync::{Notify, Semaphore, watch};

pub use clock::Clock;
pub use server::Server;
pub use settings::{Limits, Settings, SettingsError};
pub use store::{Store, StoreError};

/// The shop's toolbox.
#[derive(Clone)]
pub struct Shop(Arc<Tools>);

pub struct Tools {
    pub(crate) settings: Settings,
    pub store: Store,
    pub(crate) client: Client,
    /// Rung when there is something to fulfil.
    pub(crate) paid: Notify,
    /// A place for each page that is told of changes.
    pub(crate) streams: Arc<Semaphore>,
    /// True once the shop stops: what has no end of its own ends then.
    pub(crate) closing: watch::Sender<bool>,
}

impl Tools {
    pub(crate) fn now_ms(&self) -> i64 {
        self.settings.clock.now_ms()
    }
}

impl std::ops::Deref for Shop {
    type Target = Tools;

    fn deref(&self) -> &Tools {
        &self.0
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Client(#[from] svc_client::Error),
}

impl Shop {
    pub fn open(settings: Settings) -> Result<Self, OpenError> {
        settings.check()?;
        let client = Client::new(
            &settings.base_url,
            Credentials {
                publishable_key: settings.publishable_key.clone(),
                client_id: settings.client_id.clone(),
                client_secret: settings.client_secret.clone(),
            },
        )?;
        // What it says goes to the log.
        let client = client.speaking("en");
        let store = Store::open(&settings.database, &catalogue::PRODUCTS)?;
        let streams = Arc::new(Semaphore::new(settings.limits.streams_max));
        let (paid, (closing, _)) = (Notify::new(), watch::channel(false));
        Ok(Self(Arc::new(Tools { settings, store, client, paid, streams, closing })))
    }
}
