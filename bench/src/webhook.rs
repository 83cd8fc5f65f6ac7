//! Webhooks: how fast, how soon, in how much memory, and how little a hanging merchant matters.

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::Context;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use svc_service::app::Clock;
use tokio::process::Command;

use crate::Engine;
use crate::hiccups::{Hiccups, Watch};
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
/// How long the dispatcher works on the waiting events before memory is read again.
const LINGER_S: u64 = 10;
/// A merchant that is down: for how long, and how many events wait for it by then.
const DOWN: Duration = Duration::from_secs(60);
const DOWN_EVENTS: u64 = 5_000;
/// Longer than all of them take: only a fault makes the measurement wait for it.
const PATIENCE: Duration = Duration::from_secs(120);
/// Nobody listens there: connecting is refused at once.
const DEAD_URL: &str = "http://127.0.0.1:1025/hook";

/// What ails a merchant.
enum Ill {
    Dead,
    Hangs,
    HangsUp,
    IsEndless,
}

/// So many tenths of the merchants, and what ails them in turn.
type Sick<'a> = (u64, &'a [Ill]);

const NOBODY: Sick<'_> = (0, &[]);
const A_FIFTH_HANGS: Sick<'_> = (2, &[Ill::Hangs]);
const ALL_KINDS: Sick<'_> = (4, &[Ill::Hangs, Ill::Hangs, Ill::HangsUp, Ill::IsEndless]);
const ALL_DEAD: Sick<'_> = (10, &[Ill::Dead]);
/// So that the healthy among them have as many as on a busy day.
const WITH_SICK_PER_S: u64 = PACED_PER_S * 10 / (10 - ALL_KINDS.0);

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let mut bench = Bench { args, runs: 0 };
    let mut measured = Measured::default();
    let events = args.events.to_string();
    for round in 0..args.rounds {
        eprintln!("round {} of {}", round + 1, args.rounds);
        let client = bench.client_alone().await?;
        let worked = bench.work(&["--events", &events], NOBODY).await?.0;
        let backlog = bench.work(&["--events", &events, "--backlog"], NOBODY).await?.0;
        eprintln!(
            "  client alone {client:.0}/s; confirmed and delivered {:.0}/s; from a backlog {:.0}/s, {:.0} MB, {:.0} % of a core",
            worked.delivered_per_s,
            backlog.delivered_per_s,
            worked.resident_after_bytes as f64 / 1e6,
            worked.cpu * 100.0
        );
        measured.client_alone_per_s.push(client);
        measured.delivered_per_s.push(worked.delivered_per_s);
        measured.ratios.push(worked.delivered_per_s / client);
        measured.confirmed_ratios.push(backlog.confirmed_per_s / client);
        measured.backlog_ratios.push(backlog.delivered_per_s / client);
        let (healthy, hanging) = bench.drain_beside_hanging_merchants().await?;
        eprintln!("  {MERCHANTS} merchants: {healthy:.0}/s, with a fifth hanging {hanging:.0}/s");
        measured.drain_ratios.push(hanging / healthy);
    }
    measured.lag = bench.paced(PACED_PER_S, 1, NOBODY).await?.1;
    measured.lag_of_many = bench.paced(PACED_PER_S, MERCHANTS, NOBODY).await?.1;
    let (some_sick, lag) = bench.paced(WITH_SICK_PER_S, MERCHANTS, ALL_KINDS).await?;
    measured.lag_beside_sick = lag;
    // With as many orders: what these take, healthy merchants' take as well.
    let (all_healthy, lag) = bench.paced(WITH_SICK_PER_S, MERCHANTS, NOBODY).await?;
    measured.lag_of_as_many_healthy = lag;
    measured.sick_bytes =
        some_sick.resident_after_bytes as i64 - all_healthy.resident_after_bytes as i64;
    measured.back_after_s = bench.come_back().await?.as_secs_f64();
    if args.waiting > 0 {
        measured.waiting = Some(bench.wait_for_the_dead(args.waiting).await?);
    }
    let text = measured.markdown(args);
    println!("{text}");
    report::save(args.report.as_deref(), &text, &serde_json::to_string_pretty(&measured)?)
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
        receiver.stop().await?;
        posted["perS"].as_f64().context("a rate")
    }

    /// Orders, outbox and dispatcher on a fresh database, and what the receiver saw.
    async fn work(
        &mut self,
        arguments: &[&str],
        sick: Sick<'_>,
    ) -> anyhow::Result<(Worked, Figures)> {
        let data = self.fresh().await?;
        work_on(&data, arguments, sick).await
    }

    async fn fresh(&mut self) -> anyhow::Result<Data> {
        self.runs += 1;
        Data::fresh(self.args.engine, &format!("webhook_{}", self.runs)).await
    }

    /// Rates at which the healthy merchants' waiting events are drained: alone, and beside others that
    /// hang.
    async fn drain_beside_hanging_merchants(&mut self) -> anyhow::Result<(f64, f64)> {
        let (events, merchants) = (self.args.events.to_string(), MERCHANTS.to_string());
        let all = ["--backlog", "--merchants", &merchants, "--events", &events];
        let healthy = self.work(&all, NOBODY).await?.0;
        // As many healthy events as before; the hanging merchants' come on top.
        let more = (self.args.events * 10 / (10 - A_FIFTH_HANGS.0)).to_string();
        let some = ["--backlog", "--merchants", &merchants, "--events", &more];
        let hanging = self.work(&some, A_FIFTH_HANGS).await?.0;
        Ok((healthy.delivered_per_s, hanging.delivered_per_s))
    }

    /// Events as a busy day has them, one after the other.
    async fn paced(
        &mut self,
        per_s: u64,
        merchants: u64,
        sick: Sick<'_>,
    ) -> anyhow::Result<(Worked, Lag)> {
        let events = (per_s * PACED_S).to_string();
        let (rate, merchants) = (per_s.to_string(), merchants.to_string());
        let paced = ["--events", &events, "--per-s", &rate, "--merchants", &merchants];
        let watch = Watch::begin();
        let (worked, figures) = self.work(&paced, sick).await?;
        let lag = Lag { figures, machine: watch.end()? };
        eprintln!("  {per_s}/s, {merchants} merchants, {} of ten sick: {lag}", sick.0);
        Ok((worked, lag))
    }

    /// A merchant is down; how long its events take once it is back.
    async fn come_back(&mut self) -> anyhow::Result<Duration> {
        let data = self.fresh().await?;
        // Its address, where nobody listens any more.
        let address = Server::receiver().await?.target.address.clone();
        let (url, events) = (format!("http://{address}/hook"), DOWN_EVENTS.to_string());
        let linger_s = (DOWN + PATIENCE).as_secs().to_string();
        let worker = ["worker", "--database", &data.url, "--url", &url];
        let worker = [&worker[..], &["--events", &events, "--linger-s", &linger_s]].concat();
        let back = async {
            tokio::time::sleep(DOWN).await;
            let _receiver = Server::receiver_at(&address).await?;
            let watch = Clock::system().stopwatch();
            while call("GET", &address, "/count").await?.parse::<u64>()? < DOWN_EVENTS {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            anyhow::Ok(watch.elapsed())
        };
        let taken = tokio::select! {
            taken = back => taken?,
            ended = own::<Worked>(&worker) => {
                ended?;
                anyhow::bail!("events still wait for a merchant that is back");
            }
        };
        eprintln!("  {DOWN_EVENTS} events after {DOWN:?} of silence: all there after {taken:?}");
        Ok(taken)
    }

    async fn wait_for_the_dead(&mut self, count: u64) -> anyhow::Result<Worked> {
        eprintln!("  {count} events for a merchant that is dead …");
        let (data, count, linger) = (self.fresh().await?, count.to_string(), LINGER_S.to_string());
        work_on(&data, &["--events", &count, "--linger-s", "0"], ALL_DEAD).await?;
        // A new process, whose memory is the service's alone.
        let wait = ["--events", "0", "--linger-s", &linger];
        let worked = work_on(&data, &wait, ALL_DEAD).await?.0;
        eprintln!(
            "  memory {:.0} MB before, {:.0} MB with all of them waiting",
            worked.resident_before_bytes as f64 / 1e6,
            worked.resident_after_bytes as f64 / 1e6
        );
        Ok(worked)
    }
}

async fn work_on(
    data: &Data,
    arguments: &[&str],
    (tenths, ills): Sick<'_>,
) -> anyhow::Result<(Worked, Figures)> {
    let receiver = Server::receiver().await?;
    let address = &receiver.target.address;
    let rude = call("GET", address, "/rude-address").await?;
    let url = format!("http://{address}/hook");
    let mut all = ["worker", "--database", &data.url, "--url", &url].map(str::to_owned).to_vec();
    all.extend(arguments.iter().map(|&argument| argument.to_owned()));
    if tenths > 0 {
        all.extend(["--sick-tenths".to_owned(), tenths.to_string()]);
    }
    for ill in ills {
        let url = match ill {
            Ill::Dead => DEAD_URL.to_owned(),
            Ill::Hangs => format!("http://{address}/hang"),
            Ill::HangsUp => format!("http://{rude}/hook"),
            Ill::IsEndless => format!("http://{address}/endless"),
        };
        all.extend(["--sick-url".to_owned(), url]);
    }
    let worked = own(&all).await?;
    let figures = serde_json::from_str(&call("GET", address, "/figures").await?)?;
    receiver.stop().await?;
    Ok((worked, figures))
}

/// From commit to arrival, and what the machine alone would have made of it.
#[derive(Default, Serialize)]
struct Lag {
    #[serde(flatten)]
    figures: Figures,
    machine: Hiccups,
}

impl std::fmt::Display for Lag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Figures { lag_p50_ms, lag_p99_ms, lag_max_ms, .. } = self.figures;
        let Hiccups { p99_ms, max_ms } = self.machine;
        write!(f, "p50 {lag_p50_ms} ms, p99 {lag_p99_ms} ms, most {lag_max_ms} ms ")?;
        write!(f, "(the machine alone: p99 {p99_ms} ms, most {max_ms} ms)")
    }
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Measured {
    client_alone_per_s: Vec<f64>,
    delivered_per_s: Vec<f64>,
    ratios: Vec<f64>,
    /// Before anything is delivered: no delivery can be faster than this.
    confirmed_ratios: Vec<f64>,
    backlog_ratios: Vec<f64>,
    drain_ratios: Vec<f64>,
    lag: Lag,
    /// With many merchants, and with some of them sick.
    lag_of_many: Lag,
    lag_beside_sick: Lag,
    lag_of_as_many_healthy: Lag,
    /// What the sick ones cost.
    sick_bytes: i64,
    /// From the moment a merchant is back to its last event.
    back_after_s: f64,
    waiting: Option<Worked>,
}

impl Measured {
    fn markdown(&self, args: &Args) -> String {
        let title = format!("webhooks on {:?}", args.engine).to_lowercase();
        let mut text = report::heading(&title, "Median of the rounds (smallest–largest).");
        let spread = |values: &[f64], digits: usize| {
            let Spread { median, min, max } = Spread::of(values.to_vec());
            format!("{median:.digits$} ({min:.digits$}–{max:.digits$})")
        };
        text += "| | figure | goal |\n|---|---|---|\n";
        let mut row = |what: &str, figure: &str, goal: &str| {
            text += &format!("| {what} | {figure} | {goal} |\n");
        };
        row("client alone, events/s", &spread(&self.client_alone_per_s, 0), "");
        row("confirmed and delivered, events/s", &spread(&self.delivered_per_s, 0), "");
        row("× client alone", &spread(&self.ratios, 2), "0.5");
        row("confirmed alone, × client alone", &spread(&self.confirmed_ratios, 2), "");
        row("delivered from a backlog, × client alone", &spread(&self.backlog_ratios, 2), "");
        row(
            &format!(
                "drained for the healthy of {MERCHANTS} merchants while a fifth hang, × none hanging"
            ),
            &spread(&self.drain_ratios, 2),
            "0.9",
        );
        row(
            &format!("commit to arrival at {PACED_PER_S} events/s"),
            &self.lag.to_string(),
            "p99 250 ms",
        );
        row(&format!("the same, {MERCHANTS} merchants"), &self.lag_of_many.to_string(), "");
        row(
            &format!(
                "at {WITH_SICK_PER_S} events/s, for the healthy, while 20 % hang, 10 % hang up and 10 % answer without end"
            ),
            &self.lag_beside_sick.to_string(),
            "p99 at most a tenth longer",
        );
        row("the same, none of them sick", &self.lag_of_as_many_healthy.to_string(), "");
        row(
            "memory that the sick cost, against the same merchants in health, one run each",
            &format!("{:.0} MB", self.sick_bytes as f64 / 1e6),
            "32 MB",
        );
        row(
            &format!(
                "{DOWN_EVENTS} events of a merchant that was down for {} s, once it is back",
                DOWN.as_secs()
            ),
            &format!("{:.1} s", self.back_after_s),
            "30 s",
        );
        if let Some(worked) = &self.waiting {
            let mb = |bytes: u64| bytes as f64 / 1e6;
            let (before, after) =
                (mb(worked.resident_before_bytes), mb(worked.resident_after_bytes));
            row(
                &format!("memory grown with {} events waiting for a dead merchant", args.waiting),
                &format!("{:.0} MB ({before:.0} to {after:.0})", after - before),
                "32 MB",
            );
        }
        text
    }
}

/// Runs a part of this program in a process of its own.
async fn own<T: DeserializeOwned>(arguments: &[impl AsRef<OsStr>]) -> anyhow::Result<T> {
    let mut command = Command::new(own_directory()?.join("svc-bench"));
    let output = command.args(arguments).kill_on_drop(true).output().await?;
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
