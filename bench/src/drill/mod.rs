//! Faults on purpose, and a ledger of what was promised and kept. `bench/drill` builds and starts it.

mod backup;
mod clock;
mod cluster;
mod crash;
mod crowd;
mod descriptors;
mod disk;
mod failover;
mod held;
mod ledger;
mod network;
mod nodes;
mod outage;
mod points;
mod power;
mod pressure;
mod proxy;
mod secrets;
mod shim;
mod timing;
mod trace;
mod waiting;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::{Engine, report};
use ledger::Ledger;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which drills; all of them if none is named
    #[arg(value_enum)]
    which: Vec<Drill>,
    /// The lengths that `./test` runs
    #[arg(long)]
    short: bool,
    /// Chooses the moments and the orders; printed, so that a run can be repeated
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the ledgers to this file, as Markdown
    #[arg(long)]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Drill {
    /// kill -9 in a loop, on SQLite
    CrashSqlite,
    /// kill -9 in a loop, on PostgreSQL
    CrashPostgres,
    /// Power cuts: unsynced writes are dropped, kept or torn
    Power,
    /// Errors, panics and aborts wherever the service writes or sends, on SQLite
    PointsSqlite,
    /// The same on PostgreSQL
    PointsPostgres,
    /// A full disk, and a sync that fails
    Disk,
    /// No file and no connection can be opened any more, on SQLite
    DescriptorsSqlite,
    /// The same on PostgreSQL
    DescriptorsPostgres,
    /// The machine's clock is set wrong
    Clock,
    /// A node stands still (SIGSTOP)
    Pause,
    /// PostgreSQL restarts
    Restarts,
    /// A bad network between the service and PostgreSQL
    Network,
    /// The primary dies, its standby takes over
    Failover,
    /// Three nodes; one dies, one is cut off
    Nodes,
    /// Copies under load, restored, and a service started from each, on SQLite
    BackupSqlite,
    /// The same on PostgreSQL, with its own tools
    BackupPostgres,
    /// Secrets in logs, answers, databases and backups
    Secrets,
    /// The time of a refusal
    Timing,
    /// Thousands of connections that waste time
    SlowClients,
    /// Five times the callers
    Overload,
    /// Everybody is back at once after an outage
    Outage,
}

/// The merchants of a drill are on this machine.
const PRIVATE_TARGETS: &[&str] = &["--private-webhook-targets"];

/// How long and with which numbers.
struct Setting {
    short: bool,
    seed: u64,
}

impl Setting {
    fn either<T>(&self, short: T, full: T) -> T {
        if self.short { short } else { full }
    }

    /// The short form runs beside other tests on a busy machine: limits of time are wider there.
    fn slack(&self) -> Duration {
        self.either(Duration::from_secs(15), Duration::ZERO)
    }
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminated = signal(SignalKind::terminate())?;
    // Whoever stops a drill early leaves no database behind.
    tokio::select! {
        outcome = run_all(args) => outcome,
        _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
        _ = terminated.recv() => anyhow::bail!("interrupted"),
    }
}

async fn run_all(args: &Args) -> anyhow::Result<()> {
    let setting = Setting { short: args.short, seed: args.seed };
    let which = if args.which.is_empty() { Drill::value_variants() } else { &args.which };
    let basis = format!("Seed {}{}.", args.seed, if args.short { ", the short form" } else { "" });
    let mut text = report::heading("Drills", &basis);
    let mut broken = 0;
    for drill in which {
        eprintln!("==> {drill:?} …");
        let ledger = match drill {
            Drill::CrashSqlite => crash::run(Engine::Sqlite, &setting).await?,
            Drill::CrashPostgres => crash::run(Engine::Postgres, &setting).await?,
            Drill::Power => power::run(&setting).await?,
            Drill::PointsSqlite => points::run(Engine::Sqlite, &setting).await?,
            Drill::PointsPostgres => points::run(Engine::Postgres, &setting).await?,
            Drill::Disk => disk::run(&setting).await?,
            Drill::DescriptorsSqlite => descriptors::run(Engine::Sqlite, &setting).await?,
            Drill::DescriptorsPostgres => descriptors::run(Engine::Postgres, &setting).await?,
            Drill::Clock => clock::leaps(&setting).await?,
            Drill::Pause => clock::pause(&setting).await?,
            Drill::Restarts => network::restarts(&setting).await?,
            Drill::Network => network::run(&setting).await?,
            Drill::Failover => failover::run(&setting).await?,
            Drill::Nodes => nodes::run(&setting).await?,
            Drill::BackupSqlite => backup::run(Engine::Sqlite, &setting).await?,
            Drill::BackupPostgres => backup::run(Engine::Postgres, &setting).await?,
            Drill::Secrets => secrets::run(&setting).await?,
            Drill::Timing => timing::run(&setting).await?,
            Drill::SlowClients => pressure::slow_clients(&setting).await?,
            Drill::Overload => pressure::overload(&setting).await?,
            Drill::Outage => outage::run(&setting).await?,
        };
        println!("{}", ledger.table());
        text += &format!("{}\n", ledger.table());
        broken += u64::from(!ledger.is_kept());
        // After each: whoever stops early keeps what was shown.
        if let Some(path) = &args.report {
            std::fs::write(path, &text)?;
        }
    }
    anyhow::ensure!(broken == 0, "FAILED: {broken} of {} drills broke a promise", which.len());
    println!("PASSED: every promise of {} drills was kept.", which.len());
    Ok(())
}
