//! The load generator, a process of its own: so many connections, each one request after another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;

use crate::Scenario;
use crate::target::{Requests, Target};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(value_enum)]
    scenario: Scenario,
    /// The target as JSON
    #[arg(long)]
    target: String,
    #[arg(long)]
    connections: usize,
    #[arg(long, default_value_t = 0.0)]
    warm_up_s: f64,
    /// Stop after this time …
    #[arg(long)]
    seconds: Option<f64>,
    /// … or after this many requests
    #[arg(long)]
    requests: Option<u64>,
    /// Makes the ids of this run differ from those of other runs
    #[arg(long)]
    seed: u64,
    /// The number of the first id
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Query ids from 0 to this
    #[arg(long, default_value_t = 0)]
    stored: u64,
}

/// What one run of the generator saw.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    pub requests: u64,
    pub errors: u64,
    pub requests_per_s: f64,
    pub p50_us: u32,
    pub p99_us: u32,
}

#[expect(clippy::disallowed_methods, reason = "a generator measures real time")]
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let target: Target = serde_json::from_str(&args.target)?;
    let shared = Arc::new(Shared {
        requests: Requests::new(args.scenario, &target, args.seed, args.stored),
        next: AtomicU64::new(args.first),
        limit: args.requests.map_or(u64::MAX, |count| args.first + count),
        counting: AtomicBool::new(args.warm_up_s == 0.0),
        stopping: AtomicBool::new(false),
    });
    let mut clients = Vec::new();
    for _ in 0..args.connections {
        let connection = connect(&target.address).await?;
        clients.push(tokio::spawn(client(Arc::clone(&shared), connection)));
    }
    tokio::time::sleep(Duration::from_secs_f64(args.warm_up_s)).await;
    shared.counting.store(true, Ordering::Relaxed);
    let begun = Instant::now();
    if let Some(seconds) = args.seconds {
        tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
        shared.stopping.store(true, Ordering::Relaxed);
    }
    let measured = args.seconds.map(|_| begun.elapsed());
    let (mut latencies, mut errors) = (Vec::new(), 0);
    for client in clients {
        let (own, failed) = client.await??;
        latencies.extend(own);
        errors += failed;
    }
    let elapsed = measured.unwrap_or_else(|| begun.elapsed());
    println!("{}", serde_json::to_string(&outcome(latencies, errors, elapsed)?)?);
    Ok(())
}

struct Shared {
    requests: Requests,
    next: AtomicU64,
    limit: u64,
    counting: AtomicBool,
    stopping: AtomicBool,
}

async fn connect(address: &str) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address).await.context("the target does not accept")?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Latencies in microseconds, and how many answers were not 200.
#[expect(clippy::disallowed_methods, reason = "a generator measures real time")]
async fn client(
    shared: Arc<Shared>,
    mut connection: SendRequest<Full<Bytes>>,
) -> anyhow::Result<(Vec<u32>, u64)> {
    let (mut latencies, mut errors) = (Vec::new(), 0);
    while !shared.stopping.load(Ordering::Relaxed) {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        if number >= shared.limit {
            break;
        }
        let request = shared.requests.build(number);
        let begun = Instant::now();
        let status = exchange(&mut connection, request).await?;
        if shared.counting.load(Ordering::Relaxed) && !shared.stopping.load(Ordering::Relaxed) {
            latencies.push(u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
        errors += u64::from(status != StatusCode::OK);
    }
    Ok((latencies, errors))
}

async fn exchange(
    connection: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<StatusCode> {
    connection.ready().await?;
    let answer = connection.send_request(request).await?;
    let status = answer.status();
    let mut body = answer.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(status)
}

fn outcome(mut latencies: Vec<u32>, errors: u64, elapsed: Duration) -> anyhow::Result<Outcome> {
    if latencies.is_empty() {
        bail!("not one request was answered");
    }
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    Ok(Outcome {
        requests: latencies.len() as u64,
        errors,
        requests_per_s: latencies.len() as f64 / elapsed.as_secs_f64(),
        p50_us: at(0.50),
        p99_us: at(0.99),
    })
}
