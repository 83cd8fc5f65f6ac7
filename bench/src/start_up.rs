//! How soon the service is ready, and what it holds when nobody calls.

use crate::Engine;
use crate::process::{Data, Server};
use crate::report::{self, Spread};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, value_enum, default_value = "sqlite")]
    engine: Engine,
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    #[arg(long)]
    report: Option<std::path::PathBuf>,
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let (mut ready_ms, mut resident_mb) = (Vec::new(), Vec::new());
    for round in 0..args.rounds {
        let data = Data::fresh(args.engine, &format!("start_{round}")).await?;
        let server = Server::svc(&data, &[]).await?;
        ready_ms.push(server.ready_after.as_secs_f64() * 1e3);
        resident_mb.push(server.resident_bytes()? as f64 / 1e6);
    }
    let (ready, resident) = (Spread::of(ready_ms), Spread::of(resident_mb));
    let mut text = report::heading(
        &format!("start on {:?}", args.engine).to_lowercase(),
        "Median of the rounds.",
    );
    text += &format!(
        "Ready after {:.0} ms ({:.0}–{:.0}); idle memory {:.1} MB (at most {:.1}).\n",
        ready.median, ready.min, ready.max, resident.median, resident.max
    );
    println!("{text}");
    let json = serde_json::json!({ "readyMs": ready, "idleMb": resident });
    report::save(args.report.as_deref(), &text, &serde_json::to_string_pretty(&json)?)
}
