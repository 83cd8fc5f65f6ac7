//! For operators and their tools: health, metrics, what browsers refused, the API's description and its page.

mod docs;
mod health;
mod policy_reports;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse, Redirect};
use axum::routing::{get, post};

use crate::app::App;
use crate::http::ApiError;

/// `openapi` is the description of every route, made where all routes are known.
pub(crate) fn routes(openapi: &utoipa::openapi::OpenApi) -> Router<App> {
    let document = openapi.to_pretty_json().expect("a description of strings serialises");
    // Shared by all answers: a slow reader holds no copy.
    let (document, page) = (Bytes::from(document), Bytes::from(docs::page(openapi)));
    Router::new()
        // Whoever opens the bare address in a browser wants to know what this is; for programs it is none.
        .route("/", get(async || Redirect::to("/docs")).fallback(async || ApiError::RouteNotFound))
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .route("/policy-reports", post(policy_reports::report))
        .route("/openapi.json", get(async move || ([JSON], document)))
        .route(
            "/docs",
            get(async move || ([CSP, NO_SNIFF, NO_REFERRER], Html(page)).into_response()),
        )
}

const JSON: (HeaderName, HeaderValue) =
    (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
/// The page has no script and loads nothing; its one style element is allowed by hash.
const CSP: (HeaderName, HeaderValue) =
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(docs::CONTENT_SECURITY_POLICY));
const NO_SNIFF: (HeaderName, HeaderValue) =
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
const NO_REFERRER: (HeaderName, HeaderValue) =
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
