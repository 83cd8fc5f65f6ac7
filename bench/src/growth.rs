//! Does a full database stay fast? Create and query, each time with more orders stored.

use anyhow::ensure;
use serde::Serialize;
use serde_json::json;

use crate::process::{Data, Server};
use crate::run::{Side, fill, measure_for};
use crate::{Engine, Scenario, report};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, value_enum, default_value = "sqlite")]
    engine: Engine,
    /// Orders stored for the last measurement
    #[arg(long, default_value_t = 10_000_000)]
    orders: u64,
    #[arg(long, default_value_t = 256)]
    connections: usize,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long)]
    report: Option<std::path::PathBuf>,
}

/// Where the growing database is measured, and at last with as many as were asked for.
const STEPS: [u64; 4] = [10_000, 1_000_000, 2_000_000, 5_000_000];
const WARM_UP_S: f64 = 2.0;

/// One size of the database. The machine is not alone: the bare routes are measured beside it each time.
#[derive(Serialize)]
struct Step {
    orders: u64,
    create: Pair,
    query: Pair,
}

#[derive(Serialize)]
struct Pair {
    bare: Side,
    svc: Side,
}

impl Pair {
    fn ratio(&self) -> f64 {
        self.svc.outcome.requests_per_s / self.bare.outcome.requests_per_s
    }
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(args.orders > STEPS[0], "measure with more than {} orders", STEPS[0]);
    let data = Data::fresh(args.engine, "growth").await?;
    let (server, bare) = (Server::svc(&data, &[]).await?, Server::bare().await?);
    let mut steps: Vec<Step> = Vec::new();
    let mut filled = 0;
    let sizes = STEPS.into_iter().filter(|size| *size < args.orders).chain([args.orders]);
    for (round, size) in (1..).zip(sizes) {
        eprintln!("up to {size} orders …");
        // Measuring creates orders too.
        let missing = size.saturating_sub(data.count_orders().await?);
        if missing > 0 {
            let outcome = fill(&server.target, filled..filled + missing).await?;
            filled += missing;
            eprintln!("  stored at {:.0}/s", outcome.requests_per_s);
        }
        let orders = data.count_orders().await?;
        let measure = async |scenario, known| -> anyhow::Result<Pair> {
            let bare = side(args, "bare", scenario, &bare, known).await?;
            Ok(Pair { bare, svc: side(args, "svc", scenario, &server, known).await? })
        };
        let query = measure(Scenario::Query, (0, filled)).await?;
        let create = measure(Scenario::Create, (round, 0)).await?;
        eprintln!("  create {:.2} × bare, query {:.2} × bare", create.ratio(), query.ratio());
        steps.push(Step { orders, create, query });
    }
    let text = markdown(args, &steps);
    println!("{text}");
    let json = serde_json::to_string_pretty(&json!({ "steps": steps }))?;
    report::save(args.report.as_deref(), &text, &json)
}

async fn side(
    args: &Args,
    name: &str,
    scenario: Scenario,
    server: &Server,
    known: (u64, u64),
) -> anyhow::Result<Side> {
    let measured =
        measure_for(name, scenario, server, args.connections, WARM_UP_S, args.seconds, known);
    let side = measured.await?;
    ensure!(side.outcome.errors == 0, "{name}: {} answers were not 200", side.outcome.errors);
    Ok(side)
}

fn markdown(args: &Args, steps: &[Step]) -> String {
    let title = format!("growth on {:?}", args.engine).to_lowercase();
    let mut text = report::heading(
        &title,
        "One measurement each, on one database that grows; creating adds its own orders on top.",
    );
    text += "| orders stored | create/s | × bare | query/s | × bare | memory |\n";
    text += "|---|---|---|---|---|---|\n";
    for Step { orders, create, query } in steps {
        text += &format!(
            "| {orders} | {:.0} | {:.2} | {:.0} | {:.2} | {:.0} MB |\n",
            create.svc.outcome.requests_per_s,
            create.ratio(),
            query.svc.outcome.requests_per_s,
            query.ratio(),
            create.svc.resident_bytes.max(query.svc.resident_bytes) as f64 / 1e6
        );
    }
    if let [first, .., last] = steps {
        text += &format!(
            "\n{} orders against {}, each by its bare route: create **{:.2} ×**, query **{:.2} ×**.\n",
            last.orders,
            first.orders,
            last.create.ratio() / first.create.ratio(),
            last.query.ratio() / first.query.ratio()
        );
    }
    text
}
