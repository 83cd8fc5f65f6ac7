//! A disk that is full, one that fails to sync, and one that is read-only.

use std::time::{Duration, Instant};

use anyhow::ensure;

use super::crowd::Crowd;
use super::shim::Shim;
use super::waiting::{ms, until_more};
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::Engine;
use crate::process::{Data, Server};

const CALLERS: u64 = 4;
const RESUMED_MAX: Duration = Duration::from_secs(5);
const ENDED_MAX: Duration = Duration::from_secs(10);

#[expect(clippy::disallowed_methods, reason = "a drill measures real time")]
pub(super) async fn run(setting: &Setting) -> anyhow::Result<Ledger> {
    let times = setting.either(2, 25);
    let title = format!("Disk: {times} × full, {times} × a sync that fails, then read-only");
    let mut ledger = Ledger::new(title);
    let data = Data::fresh(Engine::Sqlite, "disk").await?;
    let shim = Shim::build(data.directory()?, false)?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    let environment = shim.environment();
    let mut server = Server::serve_in(&environment, &data.url, PRIVATE_TARGETS).await?;
    let (mut slowest, mut wrong, mut unread) = (Duration::ZERO, 0, 0);
    for number in 0..times {
        let work = crowd.begin(&[&server.target.address]).await?;
        until_more(&crowd).await?;
        shim.fill_disk(true)?;
        work.stop().await;
        let caller = crowd.caller_at(&server.target.address).await?;
        let (status, answer) =
            caller.try_create(&format!("full-{number}"), &crowd.merchant().url()).await?;
        wrong += u64::from(status != 503 || answer["error"] != "storage_unavailable");
        unread += u64::from(caller.query(&crowd.any_acknowledged()).await?.is_none());
        shim.fill_disk(false)?;
        let work = crowd.begin(&[&server.target.address]).await?;
        slowest = slowest.max(until_more(&crowd).await?);
        work.stop().await;
    }
    ledger.never("full: creates not answered 503 storage_unavailable", wrong);
    ledger.never("full: orders that could not be read", unread);
    ledger.promise(
        "full: slowest return to work",
        ms(slowest),
        slowest <= RESUMED_MAX + setting.slack(),
    );

    let (mut slowest, mut well) = (Duration::ZERO, 0);
    for _ in 0..times {
        let work = crowd.begin(&[&server.target.address]).await?;
        until_more(&crowd).await?;
        shim.break_syncs(1)?;
        let begun = Instant::now();
        let ended = tokio::time::timeout(ENDED_MAX * 2, server.ended()).await;
        slowest = slowest.max(begun.elapsed());
        work.stop().await;
        ensure!(ended.is_ok(), "a service whose disk cannot sync must end");
        well += u64::from(ended??.success());
        shim.break_syncs(0)?;
        server = Server::serve_in(&environment, &data.url, PRIVATE_TARGETS).await?;
    }
    ledger.promise(
        "no sync: the service ended within",
        ms(slowest),
        slowest <= ENDED_MAX + setting.slack(),
    );
    ledger.never("no sync: ended as if all were well", well);

    server.stop().await?;
    shim.lock_disk(true)?;
    let told = Server::refusal_in(&environment, &data.url).await?;
    let why = "Read-only file system";
    let said = if told.contains(why) { why } else { told.trim() };
    ledger.promise("read-only: refused to start, and said why", said, said == why);
    shim.lock_disk(false)?;
    server = Server::serve_in(&environment, &data.url, PRIVATE_TARGETS).await?;
    crowd.judge(&data, &server, &mut ledger).await?;
    Ok(ledger)
}
