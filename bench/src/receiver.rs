//! A merchant that keeps nothing but figures: how many events came, and how late. Beside it, merchants
//! that hang, hang up, or answer without end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::{Json, Router};
use hyper::body::{Bytes, Frame};
use serde::{Deserialize, Serialize};
use svc_service::app::Clock;
use tokio::net::TcpListener;

use crate::process::until_asked_to_end;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    listen: SocketAddr,
}

/// What came.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figures {
    pub received: u64,
    /// From the commit of an event (its id tells) to its arrival here.
    pub lag_p50_ms: i64,
    pub lag_p99_ms: i64,
    pub lag_max_ms: i64,
}

#[derive(Clone)]
struct Kept {
    lags_ms: Arc<Mutex<Vec<i64>>>,
    clock: Arc<Clock>,
}

pub(crate) async fn serve(args: &Args) -> anyhow::Result<()> {
    let kept = Kept { lags_ms: Arc::default(), clock: Arc::new(Clock::system()) };
    let listener = TcpListener::bind(args.listen).await?;
    let rude = TcpListener::bind("127.0.0.1:0").await?;
    let rude_address = rude.local_addr()?.to_string();
    let routes = Router::new()
        .route("/hook", post(hook))
        .route("/hang", post(async || std::future::pending::<()>().await))
        .route("/endless", post(async || Body::new(Endless)))
        .route("/rude-address", get(async move || rude_address))
        .route("/count", get(count))
        .route("/figures", get(figures))
        .with_state(kept);
    println!("{}", serde_json::json!({ "baseUrl": format!("http://{}", listener.local_addr()?) }));
    tokio::spawn(hang_up(rude));
    until_asked_to_end(axum::serve(listener, routes)).await
}

/// Every connection is reset as soon as it is there.
async fn hang_up(listener: TcpListener) {
    loop {
        if let Ok((connection, _)) = listener.accept().await {
            let _ = connection.set_zero_linger();
        }
    }
}

struct Endless;

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'a'; 4_096])))))
    }
}

async fn hook(State(kept): State<Kept>, headers: HeaderMap, body: axum::body::Bytes) {
    drop(body);
    let lag_ms = event_time_ms(&headers).map(|at| kept.clock.now().as_millisecond() - at);
    kept.lags_ms.lock().expect("no holder panics").push(lag_ms.unwrap_or(0));
}

async fn figures(State(kept): State<Kept>) -> Json<Figures> {
    let mut lags = kept.lags_ms.lock().expect("no holder panics").clone();
    lags.sort_unstable();
    let at = |share: f64| {
        let place = (lags.len().saturating_sub(1) as f64 * share) as usize;
        lags.get(place).copied().unwrap_or(0)
    };
    Json(Figures {
        received: lags.len() as u64,
        lag_p50_ms: at(0.5),
        lag_p99_ms: at(0.99),
        lag_max_ms: at(1.0),
    })
}

async fn count(State(kept): State<Kept>) -> String {
    kept.lags_ms.lock().expect("no holder panics").len().to_string()
}

/// The first ten letters of an event id are its time, in Crockford's base 32.
fn event_time_ms(headers: &HeaderMap) -> Option<i64> {
    const ALPHABET: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let letters = headers.get("webhook-id")?.as_bytes().get(4..14)?;
    letters.iter().try_fold(0, |time, letter| {
        let value = ALPHABET.iter().position(|known| known == letter)?;
        Some(time * 32 + i64::try_from(value).ok()?)
    })
}
