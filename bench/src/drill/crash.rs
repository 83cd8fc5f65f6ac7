//! kill -9 in a loop under load.

use std::time::Duration;

use super::crowd::Crowd;
use super::waiting::ms;
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::Engine;
use crate::process::{Data, Server};
use crate::target::mix;

/// The service lives so long between two kills.
const LIFE_MS: std::ops::Range<u64> = 50..500;
/// Ready again within this (goal G1).
const READY_MAX: Duration = Duration::from_secs(1);
const CALLERS: u64 = 8;

pub(super) async fn run(engine: Engine, setting: &Setting) -> anyhow::Result<Ledger> {
    let kills = setting.either(if engine == Engine::Sqlite { 6 } else { 4 }, 1_000);
    let mut ledger = Ledger::new(format!("Crash: {kills} × kill -9 under load, {engine:?}"));
    let data = Data::fresh(engine, "crash").await?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    let mut starts = Vec::new();
    for kill in 0..kills {
        let mut server = Server::serve(&data, PRIVATE_TARGETS).await?;
        starts.push(server.ready_after);
        let work = crowd.begin(&[&server.target.address]).await?;
        let life = LIFE_MS.start + mix(setting.seed ^ mix(kill)) % (LIFE_MS.end - LIFE_MS.start);
        tokio::time::sleep(Duration::from_millis(life)).await;
        server.kill().await?;
        work.stop().await;
    }
    let server = Server::serve(&data, PRIVATE_TARGETS).await?;
    crowd.judge(&data, &server, &mut ledger).await?;
    starts.sort();
    let p99 = starts[(starts.len() - 1) * 99 / 100];
    let in_time = p99 <= READY_MAX + setting.slack();
    ledger.promise("ready again after a kill, p99", ms(p99), in_time);
    Ok(ledger)
}
