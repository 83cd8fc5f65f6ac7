//! A machine's clock that is set wrong while the service runs, and a process that is stopped.

use std::time::Duration;

use super::crowd::Crowd;
use super::held::Held;
use super::shim::Shim;
use super::waiting::{ms, until, until_more};
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::Engine;
use crate::process::{Data, Server, signal};

const CALLERS: u64 = 4;
const HOUR_MS: i64 = 3_600_000;
const LEAPS_MS: [(&str, i64); 4] = [
    ("an hour ahead", HOUR_MS),
    ("an hour back", -HOUR_MS),
    ("ten years ahead", 10 * 365 * 24 * HOUR_MS),
    ("right again", 0),
];

/// Nobody's order ends, and nobody's token, because a clock was set wrong (fault F14).
pub(super) async fn leaps(setting: &Setting) -> anyhow::Result<Ledger> {
    let mut ledger = Ledger::new("Clock: set wrong while the service runs");
    let data = Data::fresh(Engine::Sqlite, "clock").await?;
    let shim = Shim::build(data.directory()?, false)?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    let environment = shim.environment();
    let server = Server::serve_in(&environment, &data.url, PRIVATE_TARGETS).await?;
    let caller = crowd.caller_at(&server.target.address).await?;
    caller.create("waiting", &crowd.merchant().url()).await?;
    // Begun before the first leap, with tokens of an hour.
    let work = crowd.begin(&[&server.target.address]).await?;
    for (name, shift) in LEAPS_MS {
        shim.shift_clock_ms(shift)?;
        tokio::time::sleep(Duration::from_secs(setting.either(2, 20))).await;
        let resumed = until_more(&crowd).await?;
        ledger.tell(&format!("work goes on, {name}"), ms(resumed));
        let leap = caller.metric("svc_clock_leap_seconds").await?;
        let is_seen = (leap - shift as f64 / 1_000.0).abs() < 60.0;
        ledger.promise(&format!("the leap it reports, {name}"), format!("{leap:.0} s"), is_seen);
        let status = caller.query("waiting").await?.map(|order| order.status);
        let is_pending = status.as_deref() == Some("PEN");
        ledger.promise(&format!("a waiting order, {name}"), status.unwrap_or_default(), is_pending);
    }
    work.stop().await;
    crowd.judge(&data, &server, &mut ledger).await?;
    Ok(ledger)
}

/// SIGSTOP for longer than a lease, then SIGCONT, with another node beside it (fault F41).
pub(super) async fn pause(setting: &Setting) -> anyhow::Result<Ledger> {
    let long = Duration::from_secs(setting.either(12, 40));
    let mut ledger =
        Ledger::new(format!("Pause: one of two nodes stands still for {} s", long.as_secs()));
    let data = Data::fresh(Engine::Postgres, "pause").await?;
    let stopped = Server::serve(&data, PRIVATE_TARGETS).await?;
    let beside = Server::serve(&data, PRIVATE_TARGETS).await?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    let work = crowd.begin(&[&beside.target.address]).await?;
    until_more(&crowd).await?;
    let held = Held::by(&crowd, &data, &[&stopped.target.address]).await?;
    signal(stopped.pid()?, "STOP").await?;
    let told = held.speak();
    tokio::time::sleep(long).await;
    until("the other node has told what it held", async || told.all(&data).await).await?;
    ledger.tell("what it held", "told by the other node meanwhile");
    signal(stopped.pid()?, "CONT").await?;
    until_more(&crowd).await?;
    work.stop().await;
    crowd.judge(&data, &beside, &mut ledger).await?;
    Ok(ledger)
}
