//! Where the webhooks of a seeded month go: a server of the command itself, which has its bad days.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use jiff::{SignedDuration, Timestamp};
use svc_service::app::App;
use svc_service::domain::{after, before};
use tokio::net::TcpListener;

use super::shops::ILL;

/// Of this machine alone, and nobody else's habit: what is left over of a seeded month (references that
/// expire later) is sent to an address where nobody listens.
const ADDRESS: [u8; 4] = [127, 83, 86, 67];

pub(super) struct Receiver {
    listener: TcpListener,
    address: SocketAddr,
}

/// When the shop that is ill does not answer well.
#[derive(Clone, Copy)]
pub(super) struct Illness {
    pub from: Timestamp,
    pub until: Timestamp,
    /// From here on to the end.
    pub again_from: Timestamp,
}

impl Receiver {
    pub(super) async fn bind() -> anyhow::Result<Self> {
        let listener = match TcpListener::bind(SocketAddr::from((ADDRESS, 0))).await {
            Ok(listener) => listener,
            // Elsewhere than on Linux only one loopback address is there from the start.
            Err(_) => TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
                .await
                .context("no port of this machine is free for the webhooks")?,
        };
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    pub(super) fn url(&self, slug: &str) -> String {
        format!("http://{}/{slug}/api/svc/webhook", self.address)
    }

    /// Answers until it is dropped.
    pub(super) async fn run(self, app: App, illness: Illness) {
        let luck = Arc::new(Luck::default());
        loop {
            let Ok((stream, _)) = self.listener.accept().await else { continue };
            let (app, luck) = (app.clone(), Arc::clone(&luck));
            let answer = service_fn(move |request: Request<Incoming>| {
                let status = judge(&request, app.clock.now(), illness, &luck);
                async move {
                    let text =
                        if status.is_success() { r#"{"received":true}"# } else { "erro interno" };
                    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
                    *answer.status_mut() = status;
                    Ok::<_, Infallible>(answer)
                }
            });
            tokio::spawn(async move {
                let connection = hyper::server::conn::http1::Builder::new();
                // Whoever goes away is no news.
                let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    }
}

/// Some of each fifty events have bad luck: how many does not depend on chance.
#[derive(Default)]
struct Luck(Mutex<HashMap<String, usize>>);

impl Luck {
    fn of(&self, event: &str) -> usize {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = seen.len();
        *seen.entry(event.to_owned()).or_insert(number) % 50
    }
}

fn judge(request: &Request<Incoming>, now: Timestamp, illness: Illness, luck: &Luck) -> StatusCode {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let attempt: u32 = header("x-svc-delivery-attempt").and_then(|n| n.parse().ok()).unwrap_or(1);
    let Illness { from, until, again_from } = illness;
    let ill = (from..until).contains(&now) || now >= again_from;
    if ill && request.uri().path().starts_with(&format!("/{ILL}/")) {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    match luck.of(header("webhook-id").unwrap_or_default()) {
        7 | 23 if attempt == 1 => StatusCode::INTERNAL_SERVER_ERROR,
        41 if attempt <= 3 => StatusCode::BAD_GATEWAY,
        _ => StatusCode::OK,
    }
}

/// A bad day in the middle of the month, and since this morning.
pub(super) fn illness(begin: Timestamp, end: Timestamp) -> Illness {
    let after = |time: Timestamp, hours| after(time, SignedDuration::from_hours(hours));
    let from = after(begin, 12 * 24);
    let again_from = before(end, SignedDuration::from_hours(8));
    Illness { from, until: after(from, 9), again_from }
}
