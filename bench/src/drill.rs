//! Kill -9 in a loop under load, then ask: was anything acknowledged lost, was anybody not told?
//!
//! The judge knows nothing of the service but its API, its command line and what merchants heard.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Engine;
use crate::merchant::{Heard, Merchant};
use crate::partner::Partner;
use crate::process::{Data, Server};
use crate::target::{mix, order_id};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long, value_enum, default_value = "sqlite")]
    engine: Engine,
    /// How often the service is killed
    #[arg(long, default_value_t = 40)]
    kills: u64,
    /// Chooses the moments and the orders; printed, so that a run can be repeated
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Callers at once
    #[arg(long, default_value_t = 16)]
    callers: u64,
}

/// The service lives so long between two kills.
const LIFE_MS: std::ops::Range<u64> = 50..500;
/// After the last start everything must have been told within this.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(90);
const LOOK_PERIOD: Duration = Duration::from_millis(200);

/// What the callers were promised.
#[derive(Default)]
struct Promised {
    /// Every id a caller ever sent.
    tried: HashSet<String>,
    /// Ids and the reference that was answered.
    created: HashMap<String, String>,
    /// Ids and the final status that was answered.
    settled: HashMap<String, String>,
}

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    eprintln!("seed {}, {} kills, {:?}", args.seed, args.kills, args.engine);
    let data = Data::fresh(args.engine, "drill").await?;
    let merchant = Merchant::start().await?;
    let partner = Partner::create(&data).await?;
    let promised = Arc::new(Mutex::new(Promised::default()));
    let mut slowest_start = Duration::ZERO;
    for kill in 0..args.kills {
        let mut server = Server::serve(&data, &["--private-webhook-targets"]).await?;
        slowest_start = slowest_start.max(server.ready_after);
        let load = start_load(args, kill, &server, &partner, &merchant, &promised).await?;
        let life = LIFE_MS.start + mix(args.seed ^ mix(kill)) % (LIFE_MS.end - LIFE_MS.start);
        tokio::time::sleep(Duration::from_millis(life)).await;
        server.kill().await?;
        load.shutdown_now().await;
    }
    let server = Server::serve(&data, &["--private-webhook-targets"]).await?;
    let left = until_told(&data).await?;
    let promised = Arc::into_inner(promised).context("no caller is left")?.into_inner()?;
    let ledger = judge(&promised, &partner, &server, &merchant.heard()).await?;
    report(args, &ledger, left, slowest_start)
}

/// Callers that create, pay and cancel orders until the service dies under them.
struct Load(JoinSet<()>);

impl Load {
    async fn shutdown_now(mut self) {
        self.0.shutdown().await;
    }
}

async fn start_load(
    args: &Args,
    kill: u64,
    server: &Server,
    partner: &Partner,
    merchant: &Merchant,
    promised: &Arc<Mutex<Promised>>,
) -> anyhow::Result<Load> {
    let caller = Arc::new(partner.caller(&server.target.address).await?);
    let mut load = JoinSet::new();
    for lot in 0..args.callers {
        let (caller, promised) = (Arc::clone(&caller), Arc::clone(promised));
        let (url, seed) = (merchant.url(), args.seed ^ mix(kill << 20 | lot));
        load.spawn(async move {
            for number in 0.. {
                let id = order_id(seed, number);
                note(&promised, |all| all.tried.insert(id.clone()));
                let Ok(created) = caller.create(&id, &url).await else { continue };
                note(&promised, |all| all.created.insert(id.clone(), created));
                // Some stay pending.
                let outcome =
                    ["confirm", "cancel", "confirm", ""][(mix(seed ^ number) % 4) as usize];
                if outcome.is_empty() {
                    continue;
                }
                let Ok(status) = caller.simulate(&id, outcome).await else { continue };
                note(&promised, |all| all.settled.insert(id, status));
            }
        });
    }
    Ok(Load(load))
}

fn note<T>(promised: &Mutex<Promised>, change: impl FnOnce(&mut Promised) -> T) {
    change(&mut promised.lock().expect("no holder panics"));
}

/// Waits until no event is queued; how many are when time is up.
async fn until_told(data: &Data) -> anyhow::Result<usize> {
    let looks = DRAIN_TIMEOUT.as_millis() / LOOK_PERIOD.as_millis();
    let mut left = usize::MAX;
    for _ in 0..looks {
        let arguments = ["webhook", "list", "--state", "queued", "--json", "--database", &data.url];
        let listed: Value = crate::process::svc(&arguments).await?;
        left = listed.as_array().map_or(0, Vec::len);
        if left == 0 {
            return Ok(0);
        }
        tokio::time::sleep(LOOK_PERIOD).await;
    }
    Ok(left)
}

/// The questions, and how many orders or events give the wrong answer.
type Ledger = BTreeMap<&'static str, u64>;

async fn judge(
    promised: &Promised,
    partner: &Partner,
    server: &Server,
    heard: &[Heard],
) -> anyhow::Result<Ledger> {
    let caller = partner.caller(&server.target.address).await?;
    let mut told: HashMap<&str, Vec<&Heard>> = HashMap::new();
    for event in heard {
        told.entry(&event.order).or_default().push(event);
    }
    let (mut ledger, mut references) = (Ledger::new(), HashSet::new());
    let mut count =
        |name: &'static str, wrong: bool| *ledger.entry(name).or_default() += u64::from(wrong);
    for id in &promised.tried {
        let Some(stored) = caller.query(id).await? else {
            count("LOST: acknowledged orders that are gone", promised.created.contains_key(id));
            count("LOST: events of orders that do not exist", told.contains_key(id.as_str()));
            continue;
        };
        count("orders stored", true);
        let reference = stored.reference.as_str();
        let answered = promised.created.get(id);
        count(
            "LOST: answers that named another reference",
            answered.is_some_and(|r| r != reference),
        );
        count("LOST: references given twice", !references.insert(reference.to_owned()));
        let settled = promised.settled.get(id);
        count(
            "LOST: acknowledged states that were taken back",
            settled.is_some_and(|s| *s != stored.status),
        );
        let events = told.get(id.as_str()).map_or(&[][..], Vec::as_slice);
        let finals: HashSet<_> =
            events.iter().map(|e| e.status.as_str()).filter(|status| *status != "PEN").collect();
        let is_final = stored.status != "PEN";
        count("orders settled", is_final);
        count(
            "LOST: settled orders whose merchant was not told",
            is_final && !finals.contains(stored.status.as_str()),
        );
        count(
            "LOST: merchants told of what did not happen",
            finals.iter().any(|s| *s != stored.status),
        );
        count("LOST: pending orders whose merchant was not told", !is_final && events.is_empty());
        let first_final = events.iter().position(|event| event.status != "PEN");
        let stale = first_final.is_some_and(|at| events[at..].iter().any(|e| e.status == "PEN"));
        count("LOST: pending told after the end", stale);
    }
    let distinct: HashSet<_> = heard.iter().map(|event| (&event.id, &event.body)).collect();
    let ids: HashSet<_> = heard.iter().map(|event| &event.id).collect();
    *ledger.entry("LOST: events whose bytes differed between attempts").or_default() =
        (distinct.len() - ids.len()) as u64;
    ledger.insert("orders tried", promised.tried.len() as u64);
    ledger.insert("orders acknowledged", promised.created.len() as u64);
    ledger.insert("states acknowledged", promised.settled.len() as u64);
    ledger.insert("events heard", ids.len() as u64);
    ledger.insert("events heard more than once", (heard.len() - ids.len()) as u64);
    ensure!(
        !promised.settled.is_empty(),
        "no state was ever acknowledged: the drill proves nothing"
    );
    Ok(ledger)
}

fn report(
    args: &Args,
    ledger: &Ledger,
    left: usize,
    slowest_start: Duration,
) -> anyhow::Result<()> {
    println!(
        "| after {} kills on {:?}, seed {} | |\n|---|---|",
        args.kills, args.engine, args.seed
    );
    for (name, figure) in ledger {
        println!("| {name} | {figure} |");
    }
    println!("| events still waiting | {left} |");
    println!("| slowest start | {} ms |", slowest_start.as_millis());
    println!("{}", json!({ "ledger": ledger, "waiting": left }));
    let lost: u64 =
        ledger.iter().filter(|(name, _)| name.starts_with("LOST")).map(|(_, n)| n).sum();
    if lost > 0 || left > 0 {
        bail!("FAILED: {lost} promises broken, {left} events not told");
    }
    println!("PASSED: nothing acknowledged was lost, and every merchant was told.");
    Ok(())
}
