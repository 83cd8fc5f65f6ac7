//! JSON answers.

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
