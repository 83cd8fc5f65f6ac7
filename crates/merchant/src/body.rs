//! The bytes of a request: not too many, and not for ever.

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::response::Response;
use http_body_util::{BodyExt, Limited};

use crate::reply::refuse;

/// A webhook has about two hundred bytes, a cart of fifty items two thousand.
const BODY_BYTES_MAX: usize = 64 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) async fn read(body: Body) -> Result<Bytes, Response> {
    let too_large = || refuse(StatusCode::PAYLOAD_TOO_LARGE, "too_large", "The body is too large.");
    // By what it announces; what comes without a length is counted.
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_large());
    }
    let collected = Limited::new(body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_TIMEOUT, collected).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => {
            Err(refuse(StatusCode::REQUEST_TIMEOUT, "too_slow", "The body did not come in time."))
        }
    }
}
