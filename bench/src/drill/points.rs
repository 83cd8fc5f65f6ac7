//! The service fails on purpose at every place where it writes or sends: by an error, a panic, an abort.
//!
//! Debug builds have these places (`crates/service/src/faults.rs`); a life without faults tells which.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};

use super::crowd::Crowd;
use super::waiting::{until, until_more};
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::Engine;
use crate::process::{Data, Server, own_directory};
use crate::target::mix;

const CALLERS: u64 = 4;
const KINDS: [&str; 3] = ["error", "panic", "abort"];
/// The fault strikes at one of the first so many passages.
const PASSAGES: u64 = 12;
/// A life under a fault ends when the fault is met, and at the latest after this.
const LIFE_MAX: Duration = Duration::from_secs(2);
const STOP_MAX: Duration = Duration::from_secs(15);
const PLACES_MIN: usize = 25;

pub(super) async fn run(engine: Engine, setting: &Setting) -> anyhow::Result<Ledger> {
    let mut ledger = Ledger::new(format!("Fail points: error, panic and abort, {engine:?}"));
    let program = debug_program()?;
    let data = Data::fresh(engine, "points").await?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    let places = places(&program, &data, &mut crowd).await?;
    let cases: Vec<(&String, &str)> =
        places.iter().flat_map(|place| KINDS.map(|kind| (place, kind))).collect();
    let chosen = setting.either(cases.len().min(15), cases.len());
    let struck = own_directory()?.join(format!("struck-{}", std::process::id()));
    let is_met = |met: usize| lines(&struck) > met;
    let (mut ends, mut stuck) = (0, 0);
    for number in 0..chosen {
        // The short form takes a part of them, spread over all.
        let (place, kind) = cases[number * cases.len() / chosen];
        let passage = 1 + mix(setting.seed ^ mix(number as u64)) % PASSAGES;
        let fault = PathBuf::from(format!("{place}={kind}@{passage}"));
        let environment = [("SVC_FAULT", fault.as_path()), ("SVC_FAULT_STRUCK", struck.as_path())];
        let met = lines(&struck);
        // A fault may strike while it starts: then there is nobody to call.
        let started = Server::serve_with(&program, &environment, &data.url, PRIVATE_TARGETS).await;
        let Ok(mut server) = started else { continue };
        if let Ok(work) = crowd.begin(&[&server.target.address]).await {
            let struck = until("the fault is met", async || is_met(met));
            let _ = tokio::time::timeout(LIFE_MAX, struck).await;
            // By an abort it ends at once; whoever survives its fault goes on working.
            let has_ended = tokio::select! {
                ended = server.ended() => ended.is_ok(),
                more = until_more(&crowd) => {
                    stuck += u64::from(more.is_err());
                    false
                }
            };
            ends += u64::from(has_ended);
            work.stop().await;
        }
        // Some places are passed at the stop only.
        let _ = tokio::time::timeout(STOP_MAX, server.stop()).await;
    }
    let server = Server::serve_with(&program, &[], &data.url, PRIVATE_TARGETS).await?;
    let work = crowd.begin(&[&server.target.address]).await?;
    until_more(&crowd).await?;
    work.stop().await;
    ledger.tell("places that were passed", places.len());
    let strikes = lines(&struck);
    let _ = std::fs::remove_file(&struck);
    ledger.tell("lives with a fault", chosen);
    // Some places are passed so seldom that a short life ends before.
    ledger.promise("faults that were met", strikes, strikes * 2 > chosen);
    ledger.never("services that survived their fault and stood still", stuck);
    ledger.tell("lives that ended by it under load", ends);
    crowd.judge(&data, &server, &mut ledger).await?;
    Ok(ledger)
}

/// Every place that a life under load passes.
async fn places(program: &Path, data: &Data, crowd: &mut Crowd) -> anyhow::Result<Vec<String>> {
    let list = own_directory()?.join(format!("places-{}", std::process::id()));
    let environment = [("SVC_FAULT_PLACES", list.as_path())];
    let server = Server::serve_with(program, &environment, &data.url, PRIVATE_TARGETS).await?;
    let work = crowd.begin(&[&server.target.address]).await?;
    until_more(crowd).await?;
    tokio::time::sleep(LIFE_MAX).await;
    work.stop().await;
    server.stop().await?;
    let text = std::fs::read_to_string(&list).context("a debug build names its places")?;
    std::fs::remove_file(&list)?;
    let places: Vec<String> = text.lines().map(str::to_owned).collect();
    ensure!(places.len() >= PLACES_MIN, "only {} places were passed", places.len());
    Ok(places)
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

/// The places are in debug builds only.
fn debug_program() -> anyhow::Result<PathBuf> {
    let program = own_directory()?.join("../debug/svc");
    ensure!(program.exists(), "fail points need a debug build: cargo build -p svc");
    Ok(program)
}
