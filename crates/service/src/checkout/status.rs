//! GET /checkout/{referenceNumber}/status: has anything changed? Asked often, so it is short.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::presence;
use super::screen::{Screen, version};
use super::session::Session;
use super::view::screen_of;
use super::visit::Visit;
use crate::app::App;
use crate::http::{ApiError, json};

#[derive(Serialize)]
struct StatusReply {
    status: &'static str,
    screen: &'static str,
    version: String,
    /// Seconds the payer has to answer a push.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<i64>,
}

pub(super) async fn status(State(app): State<App>, visit: Visit) -> Response {
    let now = app.clock.now();
    let reference = &visit.dossier.order.reference_number;
    if let Err(limited) = app.limits.checkout_poll(reference) {
        return ApiError::from(limited).into_response();
    }
    let token = visit.headers.get("x-svc-session").and_then(|value| value.to_str().ok());
    if Session::check(&app.keys, token.unwrap_or_default(), reference, now).is_none() {
        return ApiError::InvalidSession.into_response();
    }
    if let Err(fault) = presence::seen(&app, &visit, true).await {
        return fault.into_response();
    }
    let shown = screen_of(&app, &visit, now);
    json(&StatusReply {
        status: visit.dossier.order.status.code(),
        screen: shown.name(),
        version: version(&visit.dossier, shown),
        left: match shown {
            Screen::Waiting(attempt) => Some(attempt.deadline.duration_since(now).as_secs()),
            _ => None,
        },
    })
}
