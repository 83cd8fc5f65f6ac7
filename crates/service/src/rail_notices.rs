//! POST /rails/{connector}/notify: a connector tells what its acquirer told it.
//!
//! Authenticated first; then stored with its effect; then acknowledged. Who is answered 2xx may
//! forget the notice.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use serde::Serialize;

use crate::app::{App, joined};
use crate::http::{ApiError, Exchange, FieldFault, Issue, Path, Reply, read_json_bytes};
use crate::orders;
use crate::rails::{Rail, Signature};

/// Of a notice that nobody can read.
const LOGGED_BYTES_MAX: usize = 2_048;

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/rails/{connector}/notify", post(notify))
}

#[derive(Serialize)]
struct NoticeReply {
    /// `applied`, `exception` or `duplicate`: what became of it.
    outcome: &'static str,
}

async fn notify(
    State(app): State<App>,
    Path(name): Path<String>,
    exchange: Exchange,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply<NoticeReply>, ApiError> {
    // A rail that does not exist looks like one whose signature is wrong; for neither is a body read that nobody
    // has signed.
    let Some(Rail::Connector(connector)) = app.rails.named(&name).map(|rail| &**rail) else {
        return Err(ApiError::InvalidSignature);
    };
    let signature = Signature::of(&headers).ok_or(ApiError::InvalidSignature)?;
    let raw = read_json_bytes(&headers, body).await?;
    let notice = connector.receive(&signature, &raw).map_err(|_| ApiError::InvalidSignature)?;
    let notice = notice.ok_or_else(|| {
        // It may be money: whoever reads the log finds what we were told.
        let start = String::from_utf8_lossy(&raw[..raw.len().min(LOGGED_BYTES_MAX)]);
        tracing::error!(rail = name, notice = ?start, "a signed notice of a rail cannot be read");
        ApiError::InvalidBody(vec![FieldFault::new("body", Issue::NotANotice)])
    })?;
    // Whoever hangs up now sends it again; meanwhile it may as well be stored.
    let settling = app.rail_calls.spawn({
        let app = app.clone();
        async move { orders::settle(&app, notice, &exchange.request_id).await }
    });
    let received = joined(settling.await).flatten()?;
    Ok(Reply::ok(NoticeReply { outcome: received.outcome() }))
}
