//! Is the process alive, can it take orders, and what has it counted.

use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;

use crate::app::App;
use crate::http::{ApiError, Exchange};
use crate::store::Scope;

const LOOK_TIMEOUT: Duration = Duration::from_secs(2);

/// Alive: the process answers. Restart it when it does not.
pub(super) async fn livez() -> &'static str {
    "ok\n"
}

/// Ready: the database commits. Send no traffic when it does not.
pub(super) async fn readyz(State(app): State<App>) -> impl IntoResponse {
    match app.ready.is(&app.store, &app.clock).await {
        true => (StatusCode::OK, "ready\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n"),
    }
}

/// Prometheus text, for who is near: how much is sold is nobody else's business.
pub(super) async fn metrics(
    State(app): State<App>,
    exchange: Exchange,
) -> Result<impl IntoResponse, ApiError> {
    if !exchange.is_near() {
        return Err(ApiError::RouteNotFound);
    }
    // A database that is down or busy must not take the other figures with it.
    let looking = app.store.attention(&Scope::Everything);
    if let Ok(Ok(attention)) = tokio::time::timeout(LOOK_TIMEOUT, looking).await {
        app.metrics.attention(&attention, app.clock.now());
    }
    app.metrics.clock_leap.set(app.clock.leap().as_secs_f64());
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics.render()))
}
