//! The whole service: one router, its workers, one shutdown. Nobody imports this room.

mod chores;
mod openapi;

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use tokio::sync::oneshot;

use crate::app::App;
use crate::config::ConfigError;
use crate::http::{ApiError, Listener};
use crate::store::StoreError;
use crate::webhook::{Dispatcher, SenderError};
use crate::{checkout, console, ops, partner, rail_notices, sandbox, sdk};

pub use crate::http::ListenerError;

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Listener(#[from] ListenerError),
    #[error(transparent)]
    Sender(#[from] SenderError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An attempt has five seconds, its record a few more.
const DELIVERIES_TIMEOUT: Duration = Duration::from_secs(8);
/// A call has half a minute, the storing of its answer a few seconds more.
const RAIL_CALLS_TIMEOUT: Duration = Duration::from_secs(35);

/// A service that listens but does not answer yet.
pub struct Server {
    app: App,
    listener: Listener,
    dispatcher: Dispatcher,
    address: SocketAddr,
}

/// How a service ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to.
    Stopped,
    /// The database can no longer be trusted with writes: start again and let it recover.
    StoreBroken,
    /// Nobody delivers webhooks any more, by a fault of ours: start again.
    DispatcherBroken,
    /// Nobody keeps the deadlines, the log or the figures any more, by a fault of ours: start again.
    ChoreBroken,
}

impl Server {
    pub async fn bind(app: App) -> Result<Self, BindError> {
        app.config.check(app.environment)?;
        sdk::keep(&app).await?;
        let dispatcher = Dispatcher::new(app.clone())?;
        let asked = app.config.listen;
        let listener = Listener::bind(asked, app.config.tls.as_ref())?;
        let address =
            listener.address().map_err(|fault| ListenerError::Bind { address: asked, fault })?;
        app.store.note_served_with(&app.keys.id()).await?;
        Ok(Self { app, listener, dispatcher, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` resolves or a part breaks; requests in progress are finished.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Ended {
        let mut chores = chores::begin(&self.app);
        let (stop_delivering, told_to_stop) = oneshot::channel::<()>();
        let mut dispatcher = tokio::spawn(self.dispatcher.run(async {
            let _ = told_to_stop.await;
        }));
        let app = self.app.clone();
        let mut ended = Ended::Stopped;
        let until = async {
            tokio::select! {
                () = stop => {}
                () = app.store.broken() => ended = Ended::StoreBroken,
                _ = &mut dispatcher => ended = Ended::DispatcherBroken,
                // They never end by themselves.
                _ = chores.join_next() => ended = Ended::ChoreBroken,
            }
            // Pages that listen for news would keep us from stopping.
            app.news.end();
        };
        self.listener.serve(self.app.clone(), router(self.app.clone()), until).await;
        chores.abort_all();
        if ended == Ended::Stopped {
            // Requests under way are finished and recorded, so that no lease is left behind, and no
            // payment that a rail has just begun.
            let _ = stop_delivering.send(());
            let calls = &self.app.rail_calls;
            calls.close();
            let _ = tokio::join!(
                tokio::time::timeout(DELIVERIES_TIMEOUT, dispatcher),
                tokio::time::timeout(RAIL_CALLS_TIMEOUT, calls.wait()),
            );
            if let Err(fault) = self.app.store.put_away().await {
                tracing::warn!(%fault, "part of the data stays in the log beside the database");
            }
        }
        ended
    }
}

fn router(app: App) -> Router {
    Router::new()
        .merge(partner::routes())
        .merge(checkout::routes())
        .merge(rail_notices::routes())
        .merge(sdk::routes())
        .merge(sandbox::routes(app.environment))
        .merge(console::routes(&app))
        .merge(ops::routes(&openapi::document(app.environment)))
        .fallback(async || ApiError::RouteNotFound)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .with_state(app)
}
