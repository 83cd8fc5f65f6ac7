//! Is the process alive, can it take orders, and what has it counted.

use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;

use crate::app::App;

const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Alive: the process answers. Restart it when it does not.
pub(super) async fn livez() -> &'static str {
    "ok\n"
}

/// Ready: the database commits. Send no traffic when it does not.
pub(super) async fn readyz(State(app): State<App>) -> impl IntoResponse {
    match tokio::time::timeout(PING_TIMEOUT, app.store.ping()).await {
        Ok(Ok(())) => (StatusCode::OK, "ready\n"),
        Ok(Err(_)) | Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n"),
    }
}

/// Prometheus text.
pub(super) async fn metrics(State(app): State<App>) -> impl IntoResponse {
    // A database that is down must not take the other figures with it.
    if let Ok(stats) = app.store.outbox_stats().await {
        let age_ms =
            stats.oldest_created_at_ms.map_or(0, |at| app.clock.now().as_millisecond() - at);
        app.metrics.outbox_depth.set(stats.queued as f64);
        app.metrics.outbox_oldest_age.set(age_ms.max(0) as f64 / 1_000.0);
    }
    app.metrics.clock_leap.set(app.clock.leap().as_secs_f64());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics.render())
}
