//! A merchant that keeps nothing but figures: how many events came, and how late.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use svc_service::app::Clock;

/// What came since the last reset.
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

pub(crate) async fn serve() -> anyhow::Result<()> {
    let kept = Kept { lags_ms: Arc::default(), clock: Arc::new(Clock::system()) };
    let routes = Router::new()
        .route("/hook", post(hook))
        .route("/hang", post(async || std::future::pending::<()>().await))
        .route("/count", get(count))
        .route("/figures", get(figures).delete(reset))
        .with_state(kept);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", serde_json::json!({ "baseUrl": format!("http://{}", listener.local_addr()?) }));
    axum::serve(listener, routes).await?;
    Ok(())
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

async fn reset(State(kept): State<Kept>) {
    kept.lags_ms.lock().expect("no holder panics").clear();
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
