//! Everybody comes back at once after an outage: merchants whose events wait, and callers by the hundred.

use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio::process::Command;

use super::crowd::Crowd;
use super::pressure::{PEAK_CALLERS, RESIDENT_MAX, load};
use super::waiting::ms;
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::Engine;
use crate::process::{Data, Server, own_directory};
use crate::target::Target;
use crate::webhook::call;

const CROWD: u64 = 4;
/// Longer than the longest wait of an event that failed twice, and the drain.
const TOLD_MAX: Duration = Duration::from_secs(180);
const LOOK_PERIOD: Duration = Duration::from_millis(100);

#[expect(clippy::disallowed_methods, reason = "a drill measures real time")]
pub(super) async fn run(setting: &Setting) -> anyhow::Result<Ledger> {
    let (waiting, seconds) = setting.either((2_000_u64, 3.0), (100_000, 30.0));
    let mut ledger = Ledger::new(format!("Outage: {waiting} events wait, all are back, SQLite"));
    let data = Data::fresh(Engine::Sqlite, "outage").await?;
    // Its address, where nobody listens any more.
    let merchant = Server::receiver().await?.target.address.clone();
    wait_for_the_dead(&data, &merchant, waiting).await?;
    let mut server = Server::svc(&data, PRIVATE_TARGETS).await?;
    let peak = load(&server, PEAK_CALLERS, setting.either(3.0, 15.0), 1).await?;
    server.kill().await?;

    let _merchant = Server::receiver_at(&merchant).await?;
    let begun = Instant::now();
    let mut back = Server::serve(&data, PRIVATE_TARGETS).await?;
    // Whoever had a token still has it.
    back.target = Target { address: back.target.address.clone(), ..server.target.clone() };
    ledger.tell("ready again after", ms(back.ready_after));
    let mut crowd = Crowd::gather(&data, setting.seed, CROWD).await?;
    let work = crowd.begin(&[&back.target.address]).await?;
    let over = load(&back, PEAK_CALLERS * 5, seconds, 2).await?;
    work.stop().await;
    let told = until_told(&merchant, waiting, begun + TOLD_MAX).await?;
    let taken = begun.elapsed();
    ledger.tell("orders/s before, from 64 callers", format!("{:.0}", peak.outcome.requests_per_s));
    ledger.tell("orders/s after, from 320 callers", format!("{:.0}", over.outcome.requests_per_s));
    let [before, after] = [&peak, &over].map(|side| side.outcome.p99_us / 1_000);
    ledger.tell("p99 before and after", format!("{before} and {after} ms"));
    ledger.never("answers that were not 200", over.outcome.errors);
    ledger.never("waiting events that were not told", waiting.saturating_sub(told));
    ledger.tell("the last of them was told after", ms(taken));
    let resident = back.resident_bytes()?;
    ledger.promise("memory", format!("{} MB", resident / 1_000_000), resident <= RESIDENT_MAX);
    crowd.judge(&data, &back, &mut ledger).await?;
    Ok(ledger)
}

/// So many orders are confirmed while their merchant is away.
async fn wait_for_the_dead(data: &Data, merchant: &str, events: u64) -> anyhow::Result<()> {
    let (url, events) = (format!("http://{merchant}/hook"), events.to_string());
    let ran = Command::new(own_directory()?.join("svc-bench"))
        .args(["worker", "--database", &data.url, "--url", &url])
        .args(["--events", &events, "--linger-s", "0"])
        .output()
        .await?;
    ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Ok(())
}

/// How many the merchant has heard when it has heard all, or time is up.
#[expect(clippy::disallowed_methods, reason = "a drill measures real time")]
async fn until_told(merchant: &str, events: u64, end: Instant) -> anyhow::Result<u64> {
    loop {
        let told = call("GET", merchant, "/count").await?.parse()?;
        if told >= events || Instant::now() > end {
            return Ok(told);
        }
        tokio::time::sleep(LOOK_PERIOD).await;
    }
}
