//! The baseline of webhooks: the same client posting the same bytes, with no store behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use svc_service::app::Clock;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    url: String,
    #[arg(long)]
    events: u64,
    /// As many as one merchant gets at once
    #[arg(long, default_value_t = 64)]
    connections: usize,
}

const BODY: &str = r#"{"event":"payment","data":{"externalTransactionId":"order_6f9619ff-8b86-4d01-b42d-00cf4fc964ff","paymentStatus":"CON","referenceNumber":"01JC4E9V7Q3M8Y5T2K6R1N0WXZ","amount":15000}}"#;

pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(args.connections)
        .build(connector);
    let next = Arc::new(AtomicU64::new(0));
    let watch = Clock::system().stopwatch();
    let workers: Vec<_> = (0..args.connections)
        .map(|_| {
            let (client, next, url, events) =
                (client.clone(), Arc::clone(&next), args.url.clone(), args.events);
            tokio::spawn(async move {
                while next.fetch_add(1, Ordering::Relaxed) < events {
                    let answer = client.request(request(&url)).await?;
                    anyhow::ensure!(answer.status() == 200, "{}", answer.status());
                    answer.into_body().collect().await?;
                }
                Ok(())
            })
        })
        .collect();
    for worker in workers {
        worker.await??;
    }
    let per_s = args.events as f64 / watch.elapsed().as_secs_f64();
    println!("{}", serde_json::json!({ "perS": per_s }));
    Ok(())
}

/// As long as ours, header by header.
fn request(url: &str) -> Request<Full<Bytes>> {
    Request::post(url)
        .header("x-svc-content-token", "0123456789abcdef".repeat(4))
        .header("webhook-id", "evt_01JC4E9V7Q3M8Y5T2K6R1N0WXZ")
        .header("webhook-timestamp", "1800000000")
        .header("webhook-signature", "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=")
        .header("content-type", "application/json")
        .header("user-agent", "svc-webhooks/0.1.0")
        .header("x-svc-delivery-attempt", "1")
        .body(Full::from(BODY))
        .expect("the parts are valid")
}
