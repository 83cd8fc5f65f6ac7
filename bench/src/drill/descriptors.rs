//! No file and no connection can be opened any more.

use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::crowd::Crowd;
use super::waiting::{ms, until_more};
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::Engine;
use crate::process::{Data, Server};

const CALLERS: u64 = 4;
/// Fewer than a service has open: nothing that is closed makes room.
const FEWEST: u64 = 8;
const STRANGERS: usize = 50;
const IDLE: Duration = Duration::from_secs(3);
/// Of one processor: who waits for room does not ask for it without end.
const IDLE_SHARE_MAX: f64 = 0.05;
const RESUMED_MAX: Duration = Duration::from_secs(5);
const ANSWERED_MAX: Duration = Duration::from_secs(10);

pub(super) async fn run(engine: Engine, setting: &Setting) -> anyhow::Result<Ledger> {
    let times = setting.either(1, 10);
    let mut ledger = Ledger::new(format!("Descriptors: {times} × none left, {engine:?}"));
    let data = Data::fresh(engine, "descriptors").await?;
    let server = Server::serve(&data, PRIVATE_TARGETS).await?;
    let mut crowd = Crowd::gather(&data, setting.seed, CALLERS).await?;
    // As the service has inherited it.
    let usual = getrlimit(Resource::Nofile);
    let (mut slowest, mut share_max) = (Duration::ZERO, 0.0_f64);
    let (mut unread, mut unanswered) = (0, 0);
    for _ in 0..times {
        let work = crowd.begin(&[&server.target.address]).await?;
        let caller = crowd.caller_at(&server.target.address).await?;
        until_more(&crowd).await?;
        limit(&server, Rlimit { current: Some(FEWEST), ..usual })?;
        // Whoever is connected already is served.
        until_more(&crowd).await?;
        let known = crowd.any_acknowledged();
        unread += u64::from(caller.query(&known).await?.is_none());
        work.stop().await;
        let mut strangers = Vec::new();
        for _ in 0..STRANGERS {
            let mut stranger = TcpStream::connect(&server.target.address).await?;
            stranger.write_all(b"GET /livez HTTP/1.0\r\nhost: test\r\n\r\n").await?;
            strangers.push(stranger);
        }
        let ticks = server.cpu_ticks()?;
        tokio::time::sleep(IDLE).await;
        let used = Duration::from_millis(10 * (server.cpu_ticks()? - ticks));
        share_max = share_max.max(used.as_secs_f64() / IDLE.as_secs_f64());
        limit(&server, usual)?;
        for stranger in &mut strangers {
            unanswered += u64::from(!is_answered(stranger).await);
        }
        let work = crowd.begin(&[&server.target.address]).await?;
        slowest = slowest.max(until_more(&crowd).await?);
        work.stop().await;
    }
    ledger.never("orders that could not be read over an open connection", unread);
    ledger.promise(
        "share of a processor while strangers wait",
        format!("{:.0} %", share_max * 100.0),
        share_max <= IDLE_SHARE_MAX,
    );
    ledger.never("strangers that were not answered afterwards", unanswered);
    ledger.promise("slowest return to work", ms(slowest), slowest <= RESUMED_MAX + setting.slack());
    crowd.judge(&data, &server, &mut ledger).await?;
    Ok(ledger)
}

/// How many the process may have open from now on.
fn limit(server: &Server, limit: Rlimit) -> anyhow::Result<()> {
    let pid = Pid::from_raw(server.pid()?.cast_signed());
    prlimit(pid, Resource::Nofile, limit)?;
    Ok(())
}

async fn is_answered(stranger: &mut TcpStream) -> bool {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(ANSWERED_MAX, stranger.read_to_end(&mut answer)).await;
    matches!(read, Ok(Ok(_))) && answer.starts_with(b"HTTP/1.0 200")
}
