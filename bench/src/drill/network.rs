//! PostgreSQL that restarts, and a network to it that cuts, loses answers, delays and swallows.

use std::time::Duration;

use super::cluster::Cluster;
use super::crowd::Crowd;
use super::proxy::{Proxy, Weather};
use super::waiting::{ms, until_more};
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::process::{Data, Server, psql};

const CALLERS: u64 = 8;
/// Work goes on this soon after the database is back, or the network.
const RESUMED_MAX: Duration = Duration::from_secs(5);

pub(super) async fn restarts(setting: &Setting) -> anyhow::Result<Ledger> {
    let times = setting.either(4, 100);
    let mut ledger = Ledger::new(format!("PostgreSQL restarts {times} times under load"));
    let cluster = Cluster::start_new("restarts").await?;
    psql(&cluster.url("postgres"), "create database svc").await?;
    let data = Data::at(cluster.url("svc"));
    let server = Server::serve(&data, PRIVATE_TARGETS).await?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    let work = crowd.begin(&[&server.target.address]).await?;
    let mut slowest = Duration::ZERO;
    for _ in 0..times {
        until_more(&crowd).await?;
        cluster.restart_at_once().await?;
        slowest = slowest.max(until_more(&crowd).await?);
    }
    work.stop().await;
    ledger.promise("slowest return to work", ms(slowest), slowest <= RESUMED_MAX + setting.slack());
    crowd.judge(&data, &server, &mut ledger).await?;
    Ok(ledger)
}

pub(super) async fn run(setting: &Setting) -> anyhow::Result<Ledger> {
    let rounds = setting.either(1, 10);
    let mut ledger = Ledger::new(format!("Network to PostgreSQL: {rounds} × 5 kinds of weather"));
    let cluster = Cluster::start_new("network").await?;
    psql(&cluster.url("postgres"), "create database svc").await?;
    let proxy = Proxy::start(vec![format!("127.0.0.1:{}", cluster.port)]).await?;
    let behind = format!("postgres://svc@{}/svc", proxy.address);
    let data = Data::at(cluster.url("svc"));
    let server = Server::serve_in(&[], &behind, PRIVATE_TARGETS).await?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    let work = crowd.begin(&[&server.target.address]).await?;
    for (name, weather, long_s) in [
        ("after lost answers", Weather::LosesAnswers(20), 3),
        ("after cut connections", Weather::Reset, 2),
        ("after delays of 100 ms", Weather::Slow(Duration::from_millis(100)), 3),
        ("after a black hole of 8 s", Weather::BlackHole, 8),
        ("after lost answers, one in three", Weather::LosesAnswers(3), 3),
    ] {
        let mut slowest = Duration::ZERO;
        for _ in 0..rounds {
            until_more(&crowd).await?;
            proxy.becomes(weather);
            tokio::time::sleep(Duration::from_secs(long_s)).await;
            proxy.becomes(Weather::Fair);
            slowest = slowest.max(until_more(&crowd).await?);
        }
        ledger.promise(
            &format!("work resumed {name}"),
            ms(slowest),
            slowest <= RESUMED_MAX + setting.slack(),
        );
    }
    work.stop().await;
    crowd.judge(&data, &server, &mut ledger).await?;
    Ok(ledger)
}
