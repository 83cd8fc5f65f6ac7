//! Around every request: an id, a time limit, one count, and the body of every error.

use std::net::IpAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde::Serialize;
use tower::ServiceExt;

use super::error::{ApiError, FieldFault};
use super::language::Language;
use super::messages::message;
use super::reply::json;
use crate::app::App;

/// Longest target we read; the path and query of every call fit in a small part of it.
const URI_BYTES_MAX: usize = 4_096;
/// From the last byte of the head to the first byte of the answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a handler may want to know about the exchange it is part of.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub request_id: String,
    pub from: IpAddr,
}

/// Every error of this API (spec 7).
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorReply {
    /// The HTTP status again.
    #[schema(example = 422)]
    code: u16,
    /// For people, in the language of `Accept-Language`.
    message: String,
    /// For programs: a closed list of stable values.
    #[schema(example = "invalid_body")]
    error: &'static str,
    /// The message again, where OAuth libraries look for it; only from `/token`.
    #[serde(skip_serializing_if = "Option::is_none", rename = "error_description")]
    error_description: Option<String>,
    /// Also in the `X-Request-Id` header; give it to support.
    request_id: String,
    /// Which fields are wrong, and how.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    details: Vec<ErrorDetail>,
}

#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct ErrorDetail {
    #[schema(example = "amount")]
    field: String,
    #[schema(example = "not_an_integer")]
    issue: &'static str,
}

pub(crate) async fn answer(
    app: App,
    router: Router,
    from: IpAddr,
    mut request: Request<Body>,
) -> Response<Body> {
    let watch = app.clock.stopwatch();
    let request_id = hex::encode(app.random.bytes::<12>());
    let route = route_label(request.uri().path());
    let wanted = request.headers().get(header::ACCEPT_LANGUAGE).cloned();
    let from = client_address(&app, from, request.headers());
    let too_long =
        request.uri().path_and_query().is_some_and(|target| target.as_str().len() > URI_BYTES_MAX);
    request.extensions_mut().insert(Exchange { request_id: request_id.clone(), from });

    let mut response = if too_long {
        ApiError::UriTooLong.into_response()
    } else {
        match tokio::time::timeout(REQUEST_TIMEOUT, router.oneshot(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            // What the handler began goes on; the same call again tells how it ended.
            Err(_) => ApiError::StorageUnavailable.into_response(),
        }
    };
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        response = render(&error, &response, wanted.as_ref(), &request_id, route);
    }
    let status = response.status();
    response.headers_mut().insert(
        X_REQUEST_ID,
        HeaderValue::from_str(&request_id).expect("hex digits are a header value"),
    );
    let took = watch.elapsed();
    app.metrics.request(route, status.as_u16(), took);
    log(route, status, took, &request_id);
    response
}

/// The spec's error shape in the reader's language.
fn render(
    error: &ApiError,
    shell: &Response<Body>,
    wanted: Option<&HeaderValue>,
    request_id: &str,
    route: &str,
) -> Response<Body> {
    let mut headers = HeaderMap::new();
    headers.extend(wanted.map(|value| (header::ACCEPT_LANGUAGE, value.clone())));
    let language = Language::of(&headers);
    let (status, value) = error.table();
    let text = message(error, language);
    let mut response = json(&ErrorReply {
        code: status.as_u16(),
        error_description: (route == "/token").then(|| text.clone()),
        message: text,
        error: value,
        request_id: request_id.to_owned(),
        details: details(error),
    });
    *response.status_mut() = status;
    // `Allow` of a 405 is the router's.
    if let Some(allow) = shell.headers().get(header::ALLOW) {
        response.headers_mut().insert(header::ALLOW, allow.clone());
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LANGUAGE, HeaderValue::from_static(language.code()));
    headers.insert(header::VARY, HeaderValue::from_static("accept-language"));
    error.headers(headers);
    if matches!(error, ApiError::PayloadTooLarge | ApiError::RequestTimeout) {
        // The rest of the body is still on its way; we will not read it.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn details(error: &ApiError) -> Vec<ErrorDetail> {
    let detail =
        |fault: &FieldFault| ErrorDetail { field: fault.field.clone(), issue: fault.issue.code() };
    match error {
        ApiError::InvalidBody(faults) | ApiError::InvalidQuery(faults) => {
            faults.iter().map(detail).collect()
        }
        _ => Vec::new(),
    }
}

/// The address that counts for limits: the peer's, or what a trusted proxy says about it.
fn client_address(app: &App, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let trusted = |ip: &IpAddr| app.config.trusted_proxies.iter().any(|net| net.contains(ip));
    if !trusted(&peer) {
        return peer;
    }
    headers
        .get_all("x-forwarded-for")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|address| address.trim().parse().ok())
        .rfind(|address| !trusted(address))
        .unwrap_or(peer)
}

/// A fixed list, so that strangers cannot make up label values.
fn route_label(path: &str) -> &'static str {
    const ROUTES: [&str; 8] = [
        "/token",
        "/svcpartner/createPaymentOrder",
        "/svcpartner/paymentByExternalTransaction",
        "/livez",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/docs",
    ];
    ROUTES.into_iter().find(|route| *route == path).unwrap_or("other")
}

fn log(route: &str, status: StatusCode, took: Duration, request_id: &str) {
    let (status, took_us) = (status.as_u16(), took.as_micros());
    if status >= 500 {
        tracing::warn!(route, status, took_us, request_id, "request failed");
    } else {
        tracing::debug!(route, status, took_us, request_id, "request answered");
    }
}
