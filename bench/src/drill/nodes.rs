//! Three nodes on one PostgreSQL behind a load balancer; one is killed, one is cut off.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::task::JoinSet;

use super::cluster::Cluster;
use super::crowd::Crowd;
use super::held::Held;
use super::proxy::{Proxy, Weather};
use super::waiting::{ms, until, until_more};
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::process::{Data, Server, psql};
use crate::target::{mix, order_id};
use crate::webhook::call;

const CALLERS: u64 = 9;
/// What a dead node held is taken over within this (goal G10).
const TAKEN_OVER_MAX: Duration = Duration::from_secs(10);

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Ledger> {
    let mut ledger = Ledger::new("Three nodes, one killed and one cut off");
    let cluster = Cluster::start_new("nodes").await?;
    psql(&cluster.url("postgres"), "create database svc").await?;
    let data = Data::at(cluster.url("svc"));
    let network = Proxy::start(vec![format!("127.0.0.1:{}", cluster.port)]).await?;
    let mut killed = Server::serve(&data, PRIVATE_TARGETS).await?;
    let behind = format!("postgres://svc@{}/svc", network.address);
    let cut_off = Server::serve_in(&[], &behind, PRIVATE_TARGETS).await?;
    let safe = Server::serve(&data, PRIVATE_TARGETS).await?;
    let addresses = [&killed, &cut_off, &safe].map(|node| node.target.address.clone());
    let nodes = [&*addresses[0], &*addresses[1], &*addresses[2]];
    let before_them = Proxy::start(addresses.to_vec()).await?;
    let balancer = before_them.address.to_string();
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;

    same_id_everywhere(&crowd, &nodes, setting, &mut ledger).await?;
    races(&crowd, &nodes, setting, &mut ledger).await?;

    let work = crowd.begin(&[&balancer]).await?;
    tokio::time::sleep(Duration::from_secs(setting.either(2, 20))).await;
    work.stop().await;
    until("all are told", async || waiting(&data).await.is_ok_and(|left| left == 0)).await?;
    ledger.never("deliveries repeated while nothing fails", crowd.merchant().repeated());

    // Some call the nodes themselves, dead or not, and some what stands before them.
    let doors = [&nodes[..], &[&balancer]].concat();
    let work = crowd.begin(&doors).await?;
    until_more(&crowd).await?;
    let held = Held::by(&crowd, &data, &nodes[..2]).await?;
    killed.kill().await?;
    network.becomes(Weather::BlackHole);
    let told = held.speak();
    let taken = until_taken_over(&data).await?;
    let in_time = taken <= TAKEN_OVER_MAX + setting.slack();
    ledger.promise("what both held was taken over after", ms(taken), in_time);
    until("all of it is told", async || told.all(&data).await).await?;
    let is_ready = async || call("GET", nodes[1], "/readyz").await.is_ok_and(|is| is == "ready\n");
    until("the node that is cut off says so", async || !is_ready().await).await?;
    network.becomes(Weather::Fair);
    until("it is back", is_ready).await?;
    until_more(&crowd).await?;
    work.stop().await;
    crowd.judge(&data, &safe, &mut ledger).await?;
    Ok(ledger)
}

/// The same order at all nodes at once: one row, one answer (goal G7).
async fn same_id_everywhere(
    crowd: &Crowd,
    nodes: &[&str],
    setting: &Setting,
    ledger: &mut Ledger,
) -> anyhow::Result<()> {
    const AT_ONCE: usize = 64;
    let ids = setting.either(6, 2_000);
    let callers = crowd.callers_at(nodes).await?;
    let mut differing = 0;
    for number in 0..ids {
        let id = order_id(mix(setting.seed) ^ 0x7, number);
        let mut calls = JoinSet::new();
        for call in 0..AT_ONCE {
            let (caller, id, url) =
                (callers[call % callers.len()].clone(), id.clone(), crowd.merchant().url());
            calls.spawn(async move { caller.try_create(&id, &url).await });
        }
        let answers = calls.join_all().await.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        ensure!(answers[0].0 == 200, "a creation was answered {}: {}", answers[0].0, answers[0].1);
        differing += u64::from(answers.iter().any(|answer| *answer != answers[0]));
    }
    ledger.tell("ids created 64 times at once over three nodes", ids);
    ledger.never("ids that were answered in two ways", differing);
    Ok(())
}

/// Paid at one node and cancelled at another at once: one end, and all nodes say so (goal G9).
async fn races(
    crowd: &Crowd,
    nodes: &[&str],
    setting: &Setting,
    ledger: &mut Ledger,
) -> anyhow::Result<()> {
    let races = setting.either(25, 10_000);
    let callers = crowd.callers_at(nodes).await?;
    let (mut ends, mut two_ends) = (HashMap::<String, u64>::new(), 0);
    for number in 0..races {
        let id = order_id(mix(setting.seed) ^ 0x9, number);
        callers[0].create(&id, &crowd.merchant().url()).await?;
        let simulate = |at: usize, outcome| callers[at % callers.len()].simulate(&id, outcome);
        let at = number as usize;
        let _ = tokio::join!(simulate(at, "confirm"), simulate(at + 1, "cancel"));
        let mut said = Vec::new();
        for caller in &callers {
            said.push(caller.query(&id).await?.context("the order is there")?.status);
        }
        ensure!(said[0] != "PEN", "neither of the two has won");
        two_ends += u64::from(said.iter().any(|status| *status != said[0]));
        *ends.entry(said.swap_remove(0)).or_default() += 1;
    }
    ledger.tell("races of confirm and cancel over two nodes", format!("{ends:?}"));
    ledger.never("races with two ends", two_ends);
    Ok(())
}

async fn waiting(data: &Data) -> anyhow::Result<u64> {
    Ok(psql(&data.url, "select count(*) from outbox where state = 'queued'").await?.parse()?)
}

/// Waits until no event is older than those just committed: nobody's lease holds one back.
#[expect(clippy::disallowed_methods, reason = "a drill measures real time")]
async fn until_taken_over(data: &Data) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let newest = psql(&data.url, "select max(id) from outbox where state = 'queued'").await?;
    let old = format!("select count(*) from outbox where state = 'queued' and id <= '{newest}'");
    until("the events of dead nodes are told", async || {
        psql(&data.url, &old).await.is_ok_and(|left| left == "0")
    })
    .await?;
    Ok(begun.elapsed())
}
