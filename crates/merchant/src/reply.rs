//! JSON answers, and the time they are given.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

pub(crate) fn answer(status: StatusCode, body: &Value) -> Response {
    let headers = [("content-type", "application/json"), ("cache-control", "no-store")];
    (status, headers, body.to_string()).into_response()
}

pub(crate) fn refuse(status: StatusCode, error: &str, message: &str) -> Response {
    answer(status, &json!({ "code": status.as_u16(), "error": error, "message": message }))
}

/// Whoever called should call again.
pub(crate) fn unavailable(fault: &dyn std::fmt::Display) -> Response {
    tracing::error!(%fault, "the shop's database failed");
    refuse(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Try again in a moment.")
}

/// Milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the one clock of the shop")]
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
