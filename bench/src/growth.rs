//! Does a full database stay fast? Create and query with few and with many orders stored.

use crate::process::{Data, Server};
use crate::run::{Side, fill, measure_for};
use crate::{Engine, Scenario, report};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, value_enum, default_value = "sqlite")]
    engine: Engine,
    /// Orders stored for the second measurement
    #[arg(long, default_value_t = 2_000_000)]
    orders: u64,
    #[arg(long, default_value_t = 256)]
    connections: usize,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long)]
    report: Option<std::path::PathBuf>,
}

const FEW: u64 = 10_000;
const WARM_UP_S: f64 = 2.0;

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let few = measure(args, FEW).await?;
    let many = measure(args, args.orders).await?;
    let mut text = report::heading(
        &format!("growth on {:?}", args.engine).to_lowercase(),
        "One measurement each.",
    );
    text += "| orders stored | create/s | query/s | memory |\n|---|---|---|---|\n";
    for (stored, (create, query)) in [(FEW, &few), (args.orders, &many)] {
        text += &format!(
            "| {stored} | {:.0} | {:.0} | {:.0} MB |\n",
            create.outcome.requests_per_s,
            query.outcome.requests_per_s,
            create.resident_bytes.max(query.resident_bytes) as f64 / 1e6
        );
    }
    let ratio = |of: fn(&(Side, Side)) -> &Side| {
        of(&many).outcome.requests_per_s / of(&few).outcome.requests_per_s
    };
    text += &format!(
        "\nFull against nearly empty: create **{:.2} ×**, query **{:.2} ×**.\n",
        ratio(|sides| &sides.0),
        ratio(|sides| &sides.1)
    );
    println!("{text}");
    let json = serde_json::json!({ "few": [few.0, few.1], "many": [many.0, many.1] });
    report::save(args.report.as_deref(), &text, &serde_json::to_string_pretty(&json)?)
}

async fn measure(args: &Args, stored: u64) -> anyhow::Result<(Side, Side)> {
    eprintln!("storing {stored} orders …");
    let data = Data::fresh(args.engine, &format!("growth_{stored}")).await?;
    let server = Server::svc(&data, &[]).await?;
    let filled = fill(&server.target, 0, stored).await?;
    eprintln!("  at {:.0}/s", filled.requests_per_s);
    let (connections, seconds) = (args.connections, args.seconds);
    let query = measure_for(
        "query",
        Scenario::Query,
        &server,
        connections,
        WARM_UP_S,
        seconds,
        (0, stored),
    )
    .await?;
    let create =
        measure_for("create", Scenario::Create, &server, connections, WARM_UP_S, seconds, (7, 0))
            .await?;
    eprintln!(
        "  create {:.0}/s, query {:.0}/s",
        create.outcome.requests_per_s, query.outcome.requests_per_s
    );
    Ok((create, query))
}
