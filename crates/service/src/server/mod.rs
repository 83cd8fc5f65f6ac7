//! The whole service: one router, its workers, one shutdown. Nobody imports this room.

mod openapi;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use jiff::SignedDuration;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::app::App;
use crate::http::{ApiError, Listener};
use crate::rails::Rail;
use crate::store::StoreError;
use crate::webhook::{Dispatcher, SenderError};
use crate::{audit, checkout, console, ops, orders, partner, rail_notices, sandbox, sdk};

use crate::config::ConfigError;
use crate::domain::before;
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

/// How often this node looks whether partners or applications changed; tokens of a disabled
/// partner die within this.
const DIRECTORY_PERIOD: Duration = Duration::from_secs(1);
/// An attempt has five seconds, its record a few more.
const DELIVERIES_TIMEOUT: Duration = Duration::from_secs(8);
/// A call has half a minute, the storing of its answer a few seconds more.
const RAIL_CALLS_TIMEOUT: Duration = Duration::from_secs(35);
/// How often the clock is looked at when nothing is known to be due sooner.
const CLOCK_PERIOD: Duration = Duration::from_millis(500);
/// The database was away, or we were, for so long that rails may have spoken in vain.
const ABSENCE: Duration = Duration::from_secs(60);
/// How often connectors are asked what they can do.
const RAILS_PERIOD: Duration = Duration::from_secs(30);
/// The same, the first time, of one that has not answered yet.
const NEW_RAIL_PERIOD: Duration = Duration::from_secs(2);
const FORGET_PERIOD: Duration = Duration::from_secs(60);
/// How often what partners asked is written.
const LOG_PERIOD: Duration = Duration::from_secs(1);
/// How long it is kept.
const LOG_KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How often the history is sealed.
const SEAL_PERIOD: Duration = Duration::from_secs(5);

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
        let mut chores = JoinSet::new();
        chores.spawn(keep_house(self.app.clone()));
        chores.spawn(watch_the_clock(self.app.clone()));
        chores.spawn(keep_log(self.app.clone()));
        chores.spawn(console::keep_figures(self.app.clone()));
        for rail in self.app.rails.all() {
            chores.spawn(ask_rail(self.app.clone(), Arc::clone(rail)));
        }
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

/// What must happen now and then, whoever calls.
async fn keep_house(app: App) {
    let mut directory = tokio::time::interval(DIRECTORY_PERIOD);
    let mut forget = tokio::time::interval(FORGET_PERIOD);
    loop {
        tokio::select! {
            _ = directory.tick() => {
                app.metrics.fold();
                if let Err(fault) = app.directory.refresh(&app.store).await {
                    tracing::warn!(%fault, "the directory could not be read again");
                }
            }
            _ = forget.tick() => app.limits.forget_idle(),
        }
    }
}

/// What partners asked is written, what is old is forgotten, and the history is sealed.
async fn keep_log(app: App) {
    let mut write = tokio::time::interval(LOG_PERIOD);
    let mut forget = tokio::time::interval(FORGET_PERIOD);
    let mut seal = tokio::time::interval(SEAL_PERIOD);
    let mut sealer = audit::Sealer::default();
    loop {
        let done = tokio::select! {
            _ = write.tick() => write_log(&app).await,
            _ = forget.tick() => {
                let before = before(app.clock.now(), LOG_KEPT);
                let requests = app.store.forget_requests(before).await;
                let windows = app.store.forget_visits(before).await;
                let access = app.store.forget_ended_access(app.clock.machine_now()).await;
                requests.and(windows).and(access)
            }
            _ = seal.tick() => sealer.tick(&app).await,
        };
        if let Err(fault) = done {
            tracing::warn!(%fault, "the log or the history could not be kept");
        }
    }
}

async fn write_log(app: &App) -> Result<(), StoreError> {
    let (requests, uses) = app.request_log.take();
    app.store.log_requests(requests).await?;
    app.store.note_key_uses(uses).await
}

/// Deadlines, attempts to follow, queues of rails: whatever the clock brings.
async fn watch_the_clock(app: App) {
    let mut leapt = false;
    let mut away_since = None;
    loop {
        let leap = app.clock.leap();
        if leapt == leap.is_zero() {
            leapt = !leapt;
            tell_leap(leap);
        }
        match orders::begin_due(&app).await {
            Ok(()) => away_since = None,
            Err(fault) => {
                let since = *away_since.get_or_insert_with(|| app.clock.stopwatch());
                if since.elapsed() > ABSENCE {
                    app.awake.slept(&app.clock);
                }
                tracing::warn!(%fault, "deadlines wait: the database is not available");
            }
        }
        let before = app.clock.machine_now();
        tokio::time::sleep(CLOCK_PERIOD).await;
        if app.clock.machine_now().duration_since(before).unsigned_abs() > ABSENCE {
            // We were stopped, or the machine was; a stopwatch stands still while that sleeps.
            app.awake.slept(&app.clock);
        }
        // Another node of this sandbox may have moved the clock.
        match app.store.clock_ahead().await {
            Ok(ahead) => app.clock.be_ahead_by(ahead),
            Err(fault) => tracing::debug!(%fault, "the clock could not be compared"),
        }
    }
}

fn tell_leap(leap: SignedDuration) {
    if leap.is_zero() {
        tracing::warn!("the machine's clock is right again");
    } else {
        let seconds = leap.as_secs();
        tracing::error!(
            seconds,
            "the machine's clock has leapt and is not followed: if it is right now, restart the service"
        );
    }
}

/// What a connector can do now; the queue of one that keeps it is read from now on. Each has a task of
/// its own, so that one that hangs keeps nobody waiting.
async fn ask_rail(app: App, rail: Arc<Rail>) {
    let mut asked = 0_u32;
    let mut was_up = true;
    loop {
        if let Rail::Connector(connector) = &*rail {
            let up = app.metrics.rail_up(rail.name());
            let answered = connector.refresh().await;
            let is_up = answered.is_ok();
            up.set(if is_up { 1.0 } else { 0.0 });
            match answered {
                Err(fault) if was_up => {
                    tracing::warn!(rail = rail.name(), %fault, "a rail does not say what it can do");
                }
                Ok(()) if !was_up => tracing::info!(rail = rail.name(), "a rail answers again"),
                Ok(()) | Err(_) => {}
            }
            was_up = is_up;
        }
        if rail.capabilities().is_some_and(|can| can.has_queue)
            && let Err(fault) = app.store.open_queue(rail.name(), app.clock.now()).await
        {
            tracing::warn!(%fault, "the queue of a rail could not be noted");
        }
        let known = rail.capabilities().is_some();
        tokio::time::sleep(until_asked_again(asked, known)).await;
        asked = asked.saturating_add(1);
    }
}

/// Soon at first: it may be starting, as we are.
fn until_asked_again(asked: u32, known: bool) -> Duration {
    match known {
        true => RAILS_PERIOD,
        false => NEW_RAIL_PERIOD.saturating_mul(2_u32.saturating_pow(asked)).min(RAILS_PERIOD),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rail_that_has_not_answered_yet_is_soon_asked_again_and_then_less_often() {
        let seconds = |known| {
            let pause = |asked| until_asked_again(asked, known).as_secs();
            [0, 1, 2, 3, 4, u32::MAX].map(pause)
        };
        assert_eq!(seconds(false), [2, 4, 8, 16, 30, 30]);
        assert_eq!(seconds(true), [30; 6]);
    }
}
