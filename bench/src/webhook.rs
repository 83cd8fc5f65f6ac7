//! Webhooks: how fast, how soon, in how much memory, and how little a hanging merchant matters.

use anyhow::Context;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::Engine;
use crate::process::{Data, Server, own_directory};
use crate::receiver::Figures;
use crate::report::{self, Spread};
use crate::worker::Worked;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, value_enum, default_value = "sqlite")]
    engine: Engine,
    /// Events of one measurement
    #[arg(long, default_value_t = 60_000)]
    events: u64,
    #[arg(long, default_value_t = 3)]
    rounds: u64,
    /// Events that wait for a dead merchant; 0 leaves this part out
    #[arg(long, default_value_t = 1_000_000)]
    waiting: u64,
    /// Write the report here as well (without extension)
    #[arg(long)]
    report: Option<std::path::PathBuf>,
}

const PACED_PER_S: u64 = 500;
const PACED_S: u64 = 10;
const MERCHANTS: u64 = 100;
/// One in five hangs.
const SICK_EVERY: u64 = 5;
/// How long the dispatcher works on the waiting events before memory is read again.
const LINGER_S: u64 = 10;
/// Nobody listens there: connecting is refused at once.
const DEAD_URL: &str = "http://127.0.0.1:1025/hook";

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let mut bench = Bench { args, runs: 0 };
    let (mut ratios, mut backlogs) = (vec![], vec![]);
    let (mut bare, mut delivered, mut drains) = (vec![], vec![], vec![]);
    for round in 0..args.rounds {
        eprintln!("round {} of {}", round + 1, args.rounds);
        let client = bench.client_alone().await?;
        let worked = bench.work(&["--events", &args.events.to_string()]).await?.0;
        let backlog = bench.work(&["--events", &args.events.to_string(), "--backlog"]).await?.0;
        eprintln!(
            "  client alone {client:.0}/s; confirmed and delivered {:.0}/s; from a backlog {:.0}/s, {:.0} MB, {:.0} % of a core",
            worked.delivered_per_s,
            backlog.delivered_per_s,
            worked.resident_after_bytes as f64 / 1e6,
            worked.cpu * 100.0
        );
        bare.push(client);
        delivered.push(worked.delivered_per_s);
        ratios.push(worked.delivered_per_s / client);
        backlogs.push(backlog.delivered_per_s / client);
        let (healthy, hanging) = bench.drain_beside_hanging_merchants().await?;
        eprintln!("  {MERCHANTS} merchants: {healthy:.0}/s, with a fifth hanging {hanging:.0}/s");
        drains.push(hanging / healthy);
    }
    let events = (PACED_PER_S * PACED_S).to_string();
    let paced = ["--events", &events, "--per-s", &PACED_PER_S.to_string()];
    let lag = bench.work(&paced).await?.1;
    eprintln!("  at {PACED_PER_S}/s: lag p50 {} ms, p99 {} ms", lag.lag_p50_ms, lag.lag_p99_ms);
    let waiting = match args.waiting {
        0 => None,
        count => Some(bench.wait_for_the_dead(count).await?),
    };
    let measured = Measured { args, ratios, backlogs, bare, delivered, drains, lag, waiting };
    println!("{}", measured.markdown());
    report::save(
        args.report.as_deref(),
        &measured.markdown(),
        &serde_json::to_string_pretty(&measured.json())?,
    )
}

struct Bench<'a> {
    args: &'a Args,
    runs: u64,
}

impl Bench<'_> {
    /// The same client posting the same bytes to the same receiver.
    async fn client_alone(&self) -> anyhow::Result<f64> {
        let receiver = Server::receiver().await?;
        let url = format!("http://{}/hook", receiver.target.address);
        let events = self.args.events.to_string();
        let posted: Value = own(&["post", "--url", &url, "--events", &events]).await?;
        posted["perS"].as_f64().context("a rate")
    }

    /// Orders, outbox and dispatcher on a fresh database, and what the receiver saw.
    async fn work(&mut self, arguments: &[&str]) -> anyhow::Result<(Worked, Figures)> {
        let data = self.fresh().await?;
        self.work_on(&data, arguments).await
    }

    async fn fresh(&mut self) -> anyhow::Result<Data> {
        self.runs += 1;
        Data::fresh(self.args.engine, &format!("webhook_{}", self.runs)).await
    }

    async fn work_on(&self, data: &Data, arguments: &[&str]) -> anyhow::Result<(Worked, Figures)> {
        let receiver = Server::receiver().await?;
        let address = &receiver.target.address;
        let (url, sick) = (format!("http://{address}/hook"), format!("http://{address}/hang"));
        let mut all = vec!["worker", "--database", &data.url, "--url", &url];
        if !arguments.contains(&"--sick-url") {
            all.extend(["--sick-url", &sick]);
        }
        all.extend(arguments);
        let worked = own(&all).await?;
        let figures = serde_json::from_str(&call("GET", address, "/figures").await?)?;
        Ok((worked, figures))
    }

    /// Rates of the healthy merchants' events: alone, and beside others that hang.
    async fn drain_beside_hanging_merchants(&mut self) -> anyhow::Result<(f64, f64)> {
        let (events, merchants) = (self.args.events.to_string(), MERCHANTS.to_string());
        let all = ["--events", &events, "--merchants", &merchants];
        let healthy = self.work(&all).await?.0;
        // As many healthy events as before; the hanging merchants' come on top.
        let more = (self.args.events * SICK_EVERY / (SICK_EVERY - 1)).to_string();
        let every = SICK_EVERY.to_string();
        let some = ["--events", &more, "--merchants", &merchants, "--sick-every", &every];
        let hanging = self.work(&some).await?.0;
        Ok((healthy.delivered_per_s, hanging.delivered_per_s))
    }

    async fn wait_for_the_dead(&mut self, count: u64) -> anyhow::Result<Worked> {
        eprintln!("  {count} events for a merchant that is dead …");
        let (data, count, linger) = (self.fresh().await?, count.to_string(), LINGER_S.to_string());
        let dead = ["--sick-every", "1", "--sick-url", DEAD_URL, "--linger-s"];
        let fill = [&["--events", &count][..], &dead, &["0"]].concat();
        self.work_on(&data, &fill).await?;
        // A new process, whose memory is the service's alone.
        let wait = [&["--events", "0"][..], &dead, &[&linger]].concat();
        let worked = self.work_on(&data, &wait).await?.0;
        eprintln!(
            "  memory {:.0} MB before, {:.0} MB with all of them waiting",
            worked.resident_before_bytes as f64 / 1e6,
            worked.resident_after_bytes as f64 / 1e6
        );
        Ok(worked)
    }
}

struct Measured<'a> {
    args: &'a Args,
    ratios: Vec<f64>,
    backlogs: Vec<f64>,
    bare: Vec<f64>,
    delivered: Vec<f64>,
    drains: Vec<f64>,
    lag: Figures,
    waiting: Option<Worked>,
}

impl Measured<'_> {
    fn markdown(&self) -> String {
        let title = format!("webhooks on {:?}", self.args.engine).to_lowercase();
        let mut text = report::heading(&title, "Median of the rounds (smallest–largest).");
        let row = |values: &[f64], digits: usize| {
            let Spread { median, min, max } = Spread::of(values.to_vec());
            format!("{median:.digits$} ({min:.digits$}–{max:.digits$})")
        };
        text += "| | figure | goal |\n|---|---|---|\n";
        text += &format!("| client alone, events/s | {} | |\n", row(&self.bare, 0));
        text += &format!("| confirmed and delivered, events/s | {} | |\n", row(&self.delivered, 0));
        text += &format!("| × client alone | {} | 0.5 |\n", row(&self.ratios, 2));
        text += &format!(
            "| delivered from a backlog, × client alone | {} | |\n",
            row(&self.backlogs, 2)
        );
        text += &format!(
            "| rate of the healthy of {MERCHANTS} merchants while every fifth hangs, × none hanging | {} | 0.9 |\n",
            row(&self.drains, 2)
        );
        text += &format!(
            "| commit to arrival at {PACED_PER_S} events/s | p50 {} ms, p99 {} ms, most {} ms | p99 250 ms |\n",
            self.lag.lag_p50_ms, self.lag.lag_p99_ms, self.lag.lag_max_ms
        );
        if let Some(worked) = &self.waiting {
            let grown = worked.resident_after_bytes as f64 - worked.resident_before_bytes as f64;
            text += &format!(
                "| memory grown with {} events waiting for a dead merchant | {:.0} MB ({:.0} to {:.0}) | 32 MB |\n",
                self.args.waiting,
                grown / 1e6,
                worked.resident_before_bytes as f64 / 1e6,
                worked.resident_after_bytes as f64 / 1e6
            );
        }
        text
    }

    fn json(&self) -> Value {
        json!({
            "clientAlonePerS": self.bare, "backlogRatios": self.backlogs, "deliveredPerS": self.delivered, "ratios": self.ratios,
            "drainRatios": self.drains, "lag": self.lag, "waiting": self.waiting,
        })
    }
}

/// Runs a part of this program in a process of its own.
async fn own<T: DeserializeOwned>(arguments: &[&str]) -> anyhow::Result<T> {
    let output = Command::new(own_directory()?.join("svc-bench")).args(arguments).output().await?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

pub(crate) async fn call(method: &str, address: &str, path: &str) -> anyhow::Result<String> {
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let request = Request::builder()
        .method(method)
        .uri(format!("http://{address}{path}"))
        .body(Full::default())?;
    let body = client.request(request).await?.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(body.to_vec())?)
}
