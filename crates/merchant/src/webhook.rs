//! POST /api/svc/webhook (spec 4.6 B): the source of truth.
//!
//! Raw bytes, constant-time check, only then JSON; the transition and what is to be fulfilled are one
//! transaction; the work itself is done later. So it answers in milliseconds. A request that is played back
//! changes nothing: an order that has ended stays as it is.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::json;
use svc_client::{WebhookError, verify_webhook_with};

use crate::Shop;
use crate::body::read;
use crate::reply::{answer, refuse, unavailable};
use crate::report::{Report, take};

pub(crate) async fn webhook(State(shop): State<Shop>, headers: HeaderMap, body: Body) -> Response {
    let given = headers.get("x-svc-content-token").and_then(|value| value.to_str().ok());
    // Who gives none need not send a body.
    if given.is_none_or(str::is_empty) {
        return unsigned();
    }
    let raw = match read(body).await {
        Ok(raw) => raw,
        Err(refused) => return refused,
    };
    let event = match verify_webhook_with(&raw, given, &shop.settings.webhook_secrets()) {
        Ok(event) => event,
        Err(WebhookError::Signature) => return unsigned(),
        Err(WebhookError::Body(why)) => {
            return refuse(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body", &why);
        }
        // News of later days must not be sent again and again.
        Err(WebhookError::Ignored(what)) => {
            tracing::warn!(what, "a webhook this shop does not know");
            return received();
        }
    };
    let report = Report {
        external_transaction_id: &event.external_transaction_id,
        status: event.status,
        reference_number: event.reference_number.as_deref(),
        amount: event.amount,
        by: "webhook",
    };
    match take(&shop, &report) {
        Ok(()) => received(),
        // So that it comes again.
        Err(fault) => unavailable(&fault),
    }
}

fn unsigned() -> Response {
    refuse(StatusCode::UNAUTHORIZED, "invalid_signature", "The signature is missing or wrong.")
}

fn received() -> Response {
    answer(StatusCode::OK, &json!({ "received": true }))
}
