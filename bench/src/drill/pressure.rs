//! More than the service can take: thousands of slow connections, and five times the callers.

use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::crowd::Crowd;
use super::waiting::ms;
use super::{Ledger, PRIVATE_TARGETS, Setting};
use crate::process::{Data, Server};
use crate::run::measure_for;
use crate::{Engine, Scenario};

/// A slow client is gone after this (goal G14).
const REAPED_MAX: Duration = Duration::from_secs(15);
const DRIP: Duration = Duration::from_secs(1);
const HONEST_CALLERS: usize = 4;
/// Callers at the peak, and at five times the pressure (goal G13).
pub(super) const PEAK_CALLERS: usize = 64;
const CROWD: u64 = 4;
pub(super) const RESIDENT_MAX: u64 = 256 << 20;

/// A head that drips, a body that drips, and a connection that says nothing. Only who may call is read any further
/// than its head.
fn slow(token: &str) -> [(String, &'static str); 3] {
    let body = format!(
        "POST /svcpartner/createPaymentOrder HTTP/1.1\r\nhost: test\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: 4000\r\n\r\n"
    );
    let head = "GET /livez HTTP/1.1\r\nhost: test\r\nx-slow: ".to_owned();
    [(head, "a"), (body, " "), (String::new(), "")]
}

#[expect(clippy::disallowed_methods, reason = "a drill measures real time")]
pub(super) async fn slow_clients(setting: &Setting) -> anyhow::Result<Ledger> {
    let [heads, bodies, silent] = setting.either([500, 100, 100], [5_000, 1_000, 1_000]);
    let mut ledger =
        Ledger::new(format!("Slow clients: {heads} heads, {bodies} bodies, {silent} silent"));
    let data = Data::fresh(Engine::Sqlite, "slow").await?;
    // All of them are this machine.
    let server = Server::svc(&data, &["--connections-per-address", "10000"]).await?;
    let honest = |name: &'static str, seed| {
        measure_for(name, Scenario::Create, &server, HONEST_CALLERS, 0.5, 4.0, (seed, 0))
    };
    let before = honest("before", 1).await?;
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for ((first, then), count) in
        slow(&server.target.token).into_iter().zip([heads, bodies, silent])
    {
        for _ in 0..count {
            clients.spawn(drip(server.target.address.clone(), first.clone(), then));
        }
    }
    let during = honest("during", 2).await?;
    let mut unreaped = 0;
    for ended in clients.join_all().await {
        unreaped += u64::from(ended.is_err());
    }
    let reaped = begun.elapsed();
    ledger.tell("honest p99 before", format!("{} µs", before.outcome.p99_us));
    let ratio = f64::from(during.outcome.p99_us) / f64::from(before.outcome.p99_us);
    ledger.tell("honest p99 beside them", format!("{} µs", during.outcome.p99_us));
    // Opening thousands of connections takes a share of two cores itself: told, not promised.
    ledger.tell("honest p99 beside them against before", format!("{ratio:.1} ×"));
    ledger.never("slow clients not cut off", unreaped);
    let errors = before.outcome.errors + during.outcome.errors;
    ledger.never("honest answers that were not 200", errors);
    ledger.promise("all were gone after", ms(reaped), reaped <= REAPED_MAX + setting.slack());
    ledger.tell("memory", format!("{} MB", server.resident_bytes()? / 1_000_000));
    Ok(ledger)
}

/// Sends a byte a second until the service has had enough; an error if it never has.
async fn drip(address: String, first: String, then: &'static str) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(first.as_bytes()).await?;
    let mut answer = [0; 1_024];
    let give_up = tokio::time::Instant::now() + REAPED_MAX * 2;
    while tokio::time::Instant::now() < give_up {
        match tokio::time::timeout(DRIP, stream.read(&mut answer)).await {
            Ok(Ok(0) | Err(_)) => return Ok(()),
            Ok(Ok(_)) => {}
            Err(_) if stream.write_all(then.as_bytes()).await.is_err() => return Ok(()),
            Err(_) => {}
        }
    }
    Err(anyhow::anyhow!("still open")).context("a slow client")
}

pub(super) async fn overload(setting: &Setting) -> anyhow::Result<Ledger> {
    let seconds = setting.either(4.0, 60.0);
    let mut ledger =
        Ledger::new(format!("Overload: five times the callers for {seconds} s, SQLite"));
    let data = Data::fresh(Engine::Sqlite, "overload").await?;
    let server = Server::svc(&data, PRIVATE_TARGETS).await?;
    // Beside them payments and webhooks, which may be late and must not be lost.
    let mut crowd = Crowd::gather(&data, setting.seed, CROWD).await?;
    let work = crowd.begin(&[&server.target.address]).await?;
    let peak = load(&server, PEAK_CALLERS, setting.either(3.0, 15.0), 1).await?;
    let over = load(&server, PEAK_CALLERS * 5, seconds, 2).await?;
    let after = load(&server, PEAK_CALLERS, setting.either(3.0, 15.0), 3).await?;
    work.stop().await;
    let kept = over.outcome.requests_per_s / peak.outcome.requests_per_s;
    ledger.tell("orders/s at the peak", format!("{:.0}", peak.outcome.requests_per_s));
    ledger.tell("orders/s under overload", format!("{:.0}", over.outcome.requests_per_s));
    // The callers of a short run on a machine that is not alone say little about a tenth.
    let floor = setting.either(0.6, 0.9);
    ledger.promise(
        "share of the peak that was kept",
        format!("{kept:.2} (≥ {floor})"),
        kept >= floor,
    );
    ledger.never("answers that were not 200", over.outcome.errors);
    ledger.tell("p99 under overload", format!("{} ms", over.outcome.p99_us / 1_000));
    ledger.tell(
        "p99 at the peak, before and after",
        format!("{} and {} ms", peak.outcome.p99_us / 1_000, after.outcome.p99_us / 1_000),
    );
    let resident = server.resident_bytes()?;
    ledger.promise("memory", format!("{} MB", resident / 1_000_000), resident <= RESIDENT_MAX);
    crowd.judge(&data, &server, &mut ledger).await?;
    Ok(ledger)
}

/// Creates as fast as so many callers can.
pub(super) async fn load(
    server: &Server,
    callers: usize,
    seconds: f64,
    seed: u64,
) -> anyhow::Result<crate::run::Side> {
    measure_for("orders", Scenario::Create, server, callers, 0.5, seconds, (seed, 0)).await
}
