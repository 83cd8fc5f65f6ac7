//! Whether the payer's window is still there: told by the page itself, known to the service, asked by
//! the SDK. The window that opened it may be cut off from it and see it as closed.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use super::pay::Form;
use super::payment::payment;
use super::screen::screen;
use super::visit::{Visit, plain_word};
use crate::app::App;
use crate::domain::after;
use crate::http::{ApiError, json};
use crate::store::StoreError;

/// A look every few seconds is no news.
const SEEN_PERIOD: SignedDuration = SignedDuration::from_secs(10);
/// A reload leaves and comes back.
const LEFT_AFTER: SignedDuration = SignedDuration::from_secs(3);
/// Then an order with nothing begun is given up.
const ABANDONED_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// One life of a page is from its loading to its leaving; its script names it.
const PAGE_LIFE: &str = "x-svc-page-life";

/// Notes that the window of this visit shows the order; `alive` if its script says so.
pub(super) async fn seen(app: &App, visit: &Visit, alive: bool) -> Result<(), ApiError> {
    let (reference, nonce) = (&visit.dossier.order.reference_number, &visit.options.nonce);
    if nonce.is_empty() {
        return Ok(());
    }
    let now = app.clock.now();
    let fresh = |seen_at: Timestamp| now.duration_since(seen_at) < SEEN_PERIOD;
    let known = looked_for(app, app.store.visit(reference, nonce).await)?;
    if known.is_none() {
        // Each nonce is a row: nobody makes up thousands of them.
        app.limits.checkout_window(reference)?;
    }
    let named = visit.headers.get(PAGE_LIFE).and_then(|value| value.to_str().ok());
    let page_life = named.and_then(plain_word);
    match known {
        Some(known)
            if known.left_at.is_none()
                && fresh(known.seen_at)
                && (known.alive || !alive)
                && known.page_life.as_deref() == page_life =>
        {
            Ok(())
        }
        _ => looked_for(app, app.store.visit_seen(reference, nonce, page_life, alive, now).await),
    }
}

/// If the store fails, nothing will show that this payer was here.
fn looked_for<T>(app: &App, outcome: Result<T, StoreError>) -> Result<T, ApiError> {
    if outcome.is_err() {
        app.awake.slept(&app.clock);
    }
    Ok(outcome?)
}

/// POST /checkout/{referenceNumber}/left: sent by the page as it goes.
pub(super) async fn left(State(app): State<App>, visit: Visit, body: Body) -> Response {
    let form = match Form::read_of_any_age(&app, &visit, body).await {
        Ok(form) => form,
        Err(refused) => return *refused,
    };
    let (reference, nonce) = (&visit.dossier.order.reference_number, &visit.options.nonce);
    let now = app.clock.now();
    let due = after(now, ABANDONED_AFTER);
    let page_life = plain_word(form.value("page_life"));
    match app.store.visit_left(reference, nonce, page_life, now, due).await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(fault) => ApiError::from(fault).into_response(),
    }
}

#[derive(Serialize)]
struct StateReply {
    /// Whether this flow's window has shown the order.
    seen: bool,
    /// Whether that page will tell when it is left. One that was closed while it loaded cannot.
    alive: bool,
    left: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    screen: Option<&'static str>,
    /// As messages carry it; only for whoever knows the nonce of a window that was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    payment: Option<Box<RawValue>>,
}

/// GET /checkout/{referenceNumber}/state: what the SDK asks, from the merchant's page.
pub(super) async fn state(State(app): State<App>, visit: Visit) -> Response {
    let reference = &visit.dossier.order.reference_number;
    if let Err(limited) = app.limits.checkout_poll(reference) {
        return readable(ApiError::from(limited).into_response());
    }
    let known = match app.store.visit(reference, &visit.options.nonce).await {
        Ok(known) => known,
        Err(fault) => return readable(ApiError::from(fault).into_response()),
    };
    let now = app.clock.now();
    let left = known.as_ref().and_then(|known| known.left_at);
    let reply = StateReply {
        seen: known.is_some(),
        alive: known.as_ref().is_some_and(|known| known.alive),
        left: left.is_some_and(|at| now.duration_since(at) >= LEFT_AFTER),
        screen: known.as_ref().map(|_| screen(&visit.dossier, "", now).name()),
        payment: known.and_then(|_| RawValue::from_string(payment(&visit.dossier, now)).ok()),
    };
    readable(json(&reply))
}

/// By the page of any origin: what is told goes to whoever knows the nonce, which the shop's page made up.
fn readable(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("x-request-id, retry-after"),
    );
    response
}
