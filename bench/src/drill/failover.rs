//! The primary is killed, its synchronous standby takes over, the old one comes back: as if nothing had
//! happened at first, then behind the new one.

use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::crowd::Crowd;
use super::waiting::{ms, until_more};
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::process::{Data, Server, psql};

const CALLERS: u64 = 8;
const ORDERS: &str = "select count(*) from orders";
const CUT_OFF: &str =
    "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'svc'";
/// Writes go on within this, from the kill on and without a restart of the service (goal G11).
const RESUMED_MAX: Duration = Duration::from_secs(10);

#[expect(clippy::disallowed_methods, reason = "a drill measures real time")]
pub(super) async fn run(setting: &Setting) -> anyhow::Result<Ledger> {
    let times = setting.either(2, 30);
    let mut ledger = Ledger::new(format!("Failover of PostgreSQL, {times} times under load"));
    let mut primary = Cluster::start_new("one").await?;
    psql(&primary.url("postgres"), "create database svc").await?;
    let mut standby = Cluster::start_standby_of(&primary, "two").await?;
    primary.wait_for_standby().await?;
    let both = format!("127.0.0.1:{},127.0.0.1:{}", primary.port, standby.port);
    let data = Data::at(format!("postgres://svc@{both}/svc"));
    let server = Server::serve(&data, PRIVATE_TARGETS).await?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    let work = crowd.begin(&[&server.target.address]).await?;
    let (mut slowest, mut split) = (Duration::ZERO, 0);
    for _ in 0..times {
        until_more(&crowd).await?;
        let killed = Instant::now();
        primary.kill().await?;
        standby.promote().await?;
        until_more(&crowd).await?;
        slowest = slowest.max(killed.elapsed());
        // It still takes itself for the primary, and the service has to connect anew.
        primary.start_again().await?;
        let before = psql(&primary.url("svc"), ORDERS).await?;
        psql(&standby.url("postgres"), CUT_OFF).await?;
        until_more(&crowd).await?;
        split += u64::from(psql(&primary.url("svc"), ORDERS).await? != before);
        primary.kill().await?;
        primary.come_back_behind(&standby).await?;
        standby.wait_for_standby().await?;
        std::mem::swap(&mut primary, &mut standby);
    }
    work.stop().await;
    ledger.promise(
        "slowest return to work after a kill",
        ms(slowest),
        slowest <= RESUMED_MAX + setting.slack(),
    );
    ledger.never("times that the old primary was written to", split);
    crowd.judge(&data, &server, &mut ledger).await?;
    Ok(ledger)
}
