//! `svc serve`: the service.

use anyhow::bail;
use serde::Serialize;
use svc_service::app::App;
use svc_service::server::{Ended, Server};

use crate::output;
use crate::settings::{ServiceArgs, Settings};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  svc serve --database sqlite:svc.db --listen 127.0.0.1:8080
  svc serve --environment production --database postgres://svc@db/svc \\
            --public-url https://api.example.ao --trusted-proxy 10.0.0.0/8

Production needs a master key in SVC_SERVER_MASTER_KEY or
SVC_SERVER_MASTER_KEY_FILE (svc keygen).")]
pub(crate) struct Args {
    #[command(flatten)]
    service: ServiceArgs,
    /// Print one line of JSON with the base URL when ready
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Ready {
    base_url: String,
    /// Where it listens, which behind a proxy is not how it is reached.
    listen: String,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let Settings { config, database, .. } = args.service.settings()?.may_create();
    if let Some(environment) = config.environment {
        // Before anything is opened: a refused start must leave nothing behind.
        config.check(environment)?;
    }
    // A start that is refused because nothing is there leaves nothing there.
    let may_begin = config.create_database || !database.is_missing();
    let _lock = may_begin.then(|| database.lock_for_service()).transpose()?;
    let app = App::open(config, &database).await?;
    let server = Server::bind(app.clone()).await?;
    let stop = StopSignals::listen()?;
    let base_url = app.config.base_url(server.address());
    tracing::info!(
        address = %server.address(),
        environment = app.environment.as_str(),
        engine = app.store.engine_name(),
        "ready"
    );
    if args.json {
        output::json(&Ready { base_url, listen: server.address().to_string() });
    }
    until_stopped(server, stop).await
}

/// Runs until asked to stop, then finishes what is in progress.
pub(crate) async fn until_stopped(server: Server, stop: StopSignals) -> anyhow::Result<()> {
    let stop = async {
        stop.received().await;
        tracing::info!("stopping: finishing what is in progress");
    };
    match server.run(stop).await {
        Ended::Stopped => {
            tracing::info!("stopped");
            Ok(())
        }
        Ended::StoreBroken => {
            bail!("the database stopped taking writes; start again so that it can recover")
        }
        Ended::DispatcherBroken => {
            bail!("the delivery of webhooks failed; start the service again, and it goes on")
        }
        Ended::ChoreBroken => {
            bail!(
                "a background task (deadlines, request log, figures) failed; start the service again"
            )
        }
    }
}

/// SIGTERM and Ctrl-C, listened for from the moment this is made: whoever reads that we are ready
/// may stop us at once.
pub(crate) struct StopSignals {
    #[cfg(unix)]
    terminated: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupted: tokio::signal::unix::Signal,
}

impl StopSignals {
    #[cfg(unix)]
    pub(crate) fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        // Sent when logs are rotated or a terminal closes: no reason to end. Once listened for, it does nothing.
        drop(signal(SignalKind::hangup())?);
        Ok(Self {
            terminated: signal(SignalKind::terminate())?,
            interrupted: signal(SignalKind::interrupt())?,
        })
    }

    #[cfg(unix)]
    pub(crate) async fn received(mut self) {
        tokio::select! {
            _ = self.terminated.recv() => {}
            _ = self.interrupted.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> anyhow::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn received(self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
