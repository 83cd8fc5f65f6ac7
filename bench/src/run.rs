//! One scenario: rounds of baseline and service, one after the other, on the same machine.

use std::ops::Range;

use anyhow::{Context, ensure};
use serde::Serialize;
use tokio::process::Command;

use crate::load::Outcome;
use crate::process::{Data, Server, own_directory};
use crate::report::{self, Spread};
use crate::target::Target;
use crate::{Engine, Scenario, pgbench};

#[derive(clap::Args, Clone)]
pub(crate) struct Args {
    #[arg(long, value_enum, default_value = "sqlite")]
    engine: Engine,
    #[arg(long, default_value_t = 256)]
    connections: usize,
    /// Seconds of one measurement
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long, default_value_t = 2.0)]
    warm_up_s: f64,
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Also measure the service committing one by one
    #[arg(long)]
    one_by_one: bool,
    /// Write the report here as well (without extension)
    #[arg(long)]
    report: Option<std::path::PathBuf>,
}

/// Orders stored before queries are measured.
const STORED: u64 = 10_000;

/// One side of one round.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Side {
    pub name: String,
    #[serde(flatten)]
    pub outcome: Outcome,
    pub resident_bytes: u64,
    /// Share of one core.
    pub cpu: f64,
}

pub(crate) async fn run(scenario: Scenario, args: &Args) -> anyhow::Result<()> {
    let mut sides = Vec::new();
    let mut inserts = Vec::new();
    for round in 0..args.rounds {
        eprintln!("round {} of {}", round + 1, args.rounds);
        let bare = Server::bare().await?;
        sides.push(measure("bare", scenario, &bare, args, round).await?);
        bare.stop().await?;
        sides.push(service("svc", scenario, args, round, &[]).await?);
        if args.one_by_one {
            let alone = ["--commit-batch-max", "1"];
            sides.push(service("svc one by one", scenario, args, round, &alone).await?);
        }
        if scenario == Scenario::Create && args.engine == Engine::Postgres {
            let seconds = args.seconds.ceil() as u32;
            let (rate, clients) = pgbench::best_inserts_per_s(round, seconds).await?;
            eprintln!("  pgbench: {rate:.0} inserts/s with {clients} clients");
            inserts.push(rate);
        }
    }
    let title = format!("{scenario:?} on {:?}, {} connections", args.engine, args.connections);
    report::write(&title.to_lowercase(), &sides, &inserts, args.report.as_deref())
}

async fn service(
    name: &str,
    scenario: Scenario,
    args: &Args,
    round: u64,
    more: &[&str],
) -> anyhow::Result<Side> {
    let data = Data::fresh(args.engine, &format!("{round}_{}", more.len())).await?;
    let server = Server::svc(&data, more).await?;
    if scenario == Scenario::Query {
        fill(&server.target, 0..STORED).await?;
    }
    let side = measure(name, scenario, &server, args, round).await?;
    server.stop().await?;
    Ok(side)
}

/// Stores the orders of these numbers, of seed 0.
pub(crate) async fn fill(target: &Target, numbers: Range<u64>) -> anyhow::Result<Outcome> {
    let (first, count) = (numbers.start.to_string(), (numbers.end - numbers.start).to_string());
    let arguments =
        ["--connections", "128", "--seed", "0", "--first", &first, "--requests", &count];
    generate(Scenario::Create, target, &arguments).await
}

async fn measure(
    name: &str,
    scenario: Scenario,
    server: &Server,
    args: &Args,
    round: u64,
) -> anyhow::Result<Side> {
    let side = measure_for(
        name,
        scenario,
        server,
        args.connections,
        args.warm_up_s,
        args.seconds,
        match scenario {
            // Queries ask for what was stored with seed 0.
            Scenario::Query => (0, STORED),
            Scenario::Create | Scenario::Token => (round + 1, 0),
        },
    )
    .await?;
    let Side { outcome, resident_bytes, cpu, .. } = &side;
    ensure!(outcome.errors == 0, "{name}: {} answers were not 200", outcome.errors);
    eprintln!(
        "  {name}: {:.0}/s, p50 {} µs, p99 {} µs, {:.0} MB, {:.0} % of a core",
        outcome.requests_per_s,
        outcome.p50_us,
        outcome.p99_us,
        *resident_bytes as f64 / 1e6,
        cpu * 100.0
    );
    Ok(side)
}

pub(crate) async fn measure_for(
    name: &str,
    scenario: Scenario,
    server: &Server,
    connections: usize,
    warm_up_s: f64,
    seconds: f64,
    (seed, stored): (u64, u64),
) -> anyhow::Result<Side> {
    let before = server.cpu_ticks()?;
    let texts = [
        connections.to_string(),
        warm_up_s.to_string(),
        seconds.to_string(),
        seed.to_string(),
        stored.to_string(),
    ];
    let flags = ["--connections", "--warm-up-s", "--seconds", "--seed", "--stored"];
    let arguments: Vec<&str> =
        flags.iter().zip(&texts).flat_map(|(flag, text)| [*flag, text.as_str()]).collect();
    let outcome = generate(scenario, &server.target, &arguments).await?;
    let ticks = server.cpu_ticks()? - before;
    Ok(Side {
        name: name.to_owned(),
        outcome,
        resident_bytes: server.resident_bytes()?,
        cpu: ticks as f64 / 100.0 / (warm_up_s + seconds),
    })
}

async fn generate(
    scenario: Scenario,
    target: &Target,
    arguments: &[&str],
) -> anyhow::Result<Outcome> {
    let scenario = format!("{scenario:?}").to_lowercase();
    let output = Command::new(own_directory()?.join("svc-bench"))
        .args(["load", &scenario, "--target", &serde_json::to_string(target)?])
        .args(arguments)
        .output()
        .await?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The figures of one side over all rounds.
pub(crate) fn spread(sides: &[Side], name: &str, value: impl Fn(&Side) -> f64) -> Spread {
    Spread::of(sides.iter().filter(|side| side.name == name).map(value).collect())
}
