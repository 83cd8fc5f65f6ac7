//! The service fails on purpose at every place where it writes or sends: by an error, a panic, an abort.
//!
//! Debug builds have these places (`crates/service/src/faults.rs`); a life without faults tells which.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};

use super::crowd::Crowd;
use super::waiting::{until, until_more};
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::Engine;
use crate::merchant::Merchant;
use crate::process::{Data, Server, own_directory};
use crate::target::mix;

const CALLERS: u64 = 4;
const KINDS: [&str; 3] = ["error", "panic", "abort"];
/// The life that shows the places.
const LIFE: Duration = Duration::from_secs(2);
/// A life under a fault ends when the fault is met, and at the latest after this.
const FAULTY_LIFE_MAX: Duration = Duration::from_secs(4);
const SILENCE: Duration = Duration::from_millis(100);
const STOP_MAX: Duration = Duration::from_secs(15);
const PLACES_MIN: usize = 25;

pub(super) async fn run(engine: Engine, setting: &Setting) -> anyhow::Result<Ledger> {
    let mut ledger = Ledger::new(format!("Fail points: error, panic and abort, {engine:?}"));
    let program = debug_program()?;
    let data = Data::fresh(engine, "points").await?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    let places = places(&program, &data, &mut crowd).await?;
    let each: Vec<_> = places.iter().zip(KINDS.into_iter().cycle()).collect();
    let all = places.iter().flat_map(|place| KINDS.map(|kind| (place, kind))).collect();
    let cases: Vec<_> = setting.either(each, all);
    let chosen = setting.either(cases.len().min(15), cases.len());
    let struck = own_directory()?.join(format!("struck-{}", std::process::id()));
    let mut lives = Lives { program, data, crowd, struck, lived: 0, ended: 0, stuck: 0 };
    let mut missed = Vec::new();
    for number in 0..chosen {
        // The short form takes a part of them, spread over all.
        let ((place, passed), kind) = cases[number * cases.len() / chosen];
        let passage = 1 + mix(setting.seed ^ mix(number as u64)) % passed;
        // One life passes a place oftener than another.
        if !lives.live(&format!("{place}={kind}@{passage}"), false).await?
            && !lives.live(&format!("{place}={kind}@1"), true).await?
        {
            missed.push(format!("{place} ({kind})"));
        }
    }
    let Lives { program, data, mut crowd, struck, lived, ended, stuck } = lives;
    let server = Server::serve_with(&program, &[], &data.url, PRIVATE_TARGETS).await?;
    let work = crowd.begin(&[&server.target.address]).await?;
    until_more(&crowd).await?;
    work.stop().await;
    let _ = std::fs::remove_file(&struck);
    ledger.tell("places that were passed", places.len());
    ledger.tell("lives with a fault", lived);
    ledger.tell("lives that ended by it under load", ended);
    ledger.promise(
        "faults that were met",
        format!("{} of {chosen}", chosen - missed.len()),
        missed.is_empty(),
    );
    for fault in missed {
        ledger.tell("not met", fault);
    }
    ledger.never("services that survived their fault and stood still", stuck);
    crowd.judge(&data, &server, &mut ledger).await?;
    Ok(ledger)
}

/// Lives of the service on the same data, each with a fault.
struct Lives {
    program: PathBuf,
    data: Data,
    crowd: Crowd,
    /// Where the service notes that its fault was met.
    struck: PathBuf,
    lived: u64,
    /// By the fault, under load.
    ended: u64,
    stuck: u64,
}

impl Lives {
    /// Whether the fault was met, if need be beside a merchant that hesitates.
    async fn live(&mut self, fault: &str, hesitates: bool) -> anyhow::Result<bool> {
        self.lived += 1;
        let met_before = lines(&self.struck);
        let environment =
            [("SVC_FAULT", Path::new(fault)), ("SVC_FAULT_STRUCK", self.struck.as_path())];
        let started =
            Server::serve_with(&self.program, &environment, &self.data.url, PRIVATE_TARGETS).await;
        // A fault may strike while it starts: then there is nobody to call.
        let Ok(mut server) = started else { return Ok(lines(&self.struck) > met_before) };
        if let Ok(work) = self.crowd.begin(&[&server.target.address]).await {
            if hesitates {
                hesitate(self.crowd.merchant()).await;
            }
            let struck = until("the fault is met", async || lines(&self.struck) > met_before);
            let _ = tokio::time::timeout(FAULTY_LIFE_MAX, struck).await;
            // By an abort it ends at once; whoever survives its fault goes on working.
            let has_ended = tokio::select! {
                ended = server.ended() => ended.is_ok(),
                more = until_more(&self.crowd) => {
                    self.stuck += u64::from(more.is_err());
                    false
                }
            };
            self.ended += u64::from(has_ended);
            work.stop().await;
        }
        // Some places are passed at the stop only.
        let _ = tokio::time::timeout(STOP_MAX, server.stop()).await;
        self.crowd.merchant().answer(true);
        Ok(lines(&self.struck) > met_before)
    }
}

/// Every place that a life under load passes, and how often, as far as that is written down.
async fn places(
    program: &Path,
    data: &Data,
    crowd: &mut Crowd,
) -> anyhow::Result<BTreeMap<String, u64>> {
    let list = own_directory()?.join(format!("places-{}", std::process::id()));
    let environment = [("SVC_FAULT_PLACES", list.as_path())];
    let server = Server::serve_with(program, &environment, &data.url, PRIVATE_TARGETS).await?;
    let work = crowd.begin(&[&server.target.address]).await?;
    until_more(crowd).await?;
    tokio::time::sleep(LIFE).await;
    hesitate(crowd.merchant()).await;
    work.stop().await;
    server.stop().await?;
    crowd.merchant().answer(true);
    let text = std::fs::read_to_string(&list).context("a debug build names its places")?;
    std::fs::remove_file(&list)?;
    let mut places = BTreeMap::new();
    for place in text.lines() {
        *places.entry(place.to_owned()).or_default() += 1;
    }
    ensure!(places.len() >= PLACES_MIN, "only {} places were passed", places.len());
    Ok(places)
}

/// To a merchant that lets others wait for a moment more is sent ahead; then it is silent, and what was claimed for it
/// is given back.
async fn hesitate(merchant: &Merchant) {
    for _ in 0..10 {
        merchant.answer(false);
        tokio::time::sleep(SILENCE).await;
        merchant.answer(true);
        tokio::time::sleep(SILENCE / 4).await;
    }
    merchant.answer(false);
    tokio::time::sleep(SILENCE).await;
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
