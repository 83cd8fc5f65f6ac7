//! Around every request: an id, a time limit, one count, and the body of every error.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, header};
use axum::response::IntoResponse;
use serde::Serialize;
use tower::ServiceExt;

use super::error::ApiError;
use super::issues::FieldFault;
use super::language::Language;
use super::messages::message;
use super::reply::json;
use crate::app::{App, PARTNER_ROUTES, Panicked, ROUTES, Trace, caught};
use crate::domain::Environment;
use crate::store::LoggedRequest;

/// Longest target we read; the path and query of every call fit in a small part of it.
const URI_BYTES_MAX: usize = 4_096;
/// From the last byte of the head to the first byte of the answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// What the machines beside us ask for, without secrets of anybody and without TLS.
const WATCHED: [&str; 3] = ["/livez", "/readyz", "/metrics"];

const ONE_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000; includeSubDomains");

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a handler may want to know about the exchange it is part of.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub request_id: String,
    pub from: IpAddr,
    /// Where the request log hears more of this request.
    pub trace: Option<Arc<Trace>>,
}

impl<S: Sync> FromRequestParts<S> for Exchange {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().expect("`answer` gives one to every request"))
    }
}

impl Exchange {
    pub(super) fn trace_of(parts: &Parts) -> Option<&Trace> {
        parts.extensions.get::<Self>()?.trace.as_deref()
    }

    /// From this machine or a private network.
    pub(crate) fn is_near(&self) -> bool {
        match self.from {
            IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
            IpAddr::V6(ip) => {
                ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
            }
        }
    }
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

/// Several lines of it are one list.
fn accept_language(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut lines = headers.get_all(header::ACCEPT_LANGUAGE).iter();
    let first = lines.next()?.clone();
    let joined = |list: HeaderValue, line: &HeaderValue| {
        HeaderValue::from_bytes(&[list.as_bytes(), b",", line.as_bytes()].concat())
    };
    lines.try_fold(first, joined).ok()
}

pub(crate) async fn answer(
    app: App,
    router: Router,
    peer: IpAddr,
    mut request: Request<Body>,
) -> Response<Body> {
    let watch = app.clock.stopwatch();
    let request_id = request_id(app.random.bytes());
    let route = route_of(request.uri().path());
    let wanted = accept_language(request.headers());
    let from = client_address(&app, peer, request.headers());
    name_host(&mut request);
    let trace = if route < PARTNER_ROUTES { app.request_log.trace() } else { None };
    let exchange = Exchange { request_id: request_id.clone(), from, trace: trace.clone() };
    let method = request.method().clone();
    request.extensions_mut().insert(exchange);

    let mut response = match refused_at_the_door(&app, peer, route, &request) {
        Some(error) => error.into_response(),
        None => handled(router, request).await,
    };
    let error = response.extensions_mut().remove::<ApiError>();
    let word = error.as_ref().map(|error| error.table().1);
    let why = error.as_ref().and_then(why);
    if let Some(error) = error {
        log_failure(&error, ROUTES[route], &request_id);
        response = render(&error, &response, wanted.as_ref(), &request_id, ROUTES[route]);
    }
    let status = response.status().as_u16();
    response.headers_mut().insert(
        X_REQUEST_ID,
        HeaderValue::from_str(&request_id).expect("hex digits are a header value"),
    );
    if app.environment == Environment::Production {
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, ONE_YEAR);
    }
    let took = watch.elapsed();
    app.metrics.request(route, status, took);
    if let Some(trace) = trace {
        let traced = trace.read();
        app.request_log.note(LoggedRequest {
            request_id: request_id.clone(),
            at: app.clock.now(),
            partner: traced.partner,
            method: word_of(&method).to_owned(),
            path: ROUTES[route].to_owned(),
            status,
            error: word.map(str::to_owned),
            details: why,
            took_us: i64::try_from(took.as_micros()).unwrap_or(i64::MAX),
            body: traced.body,
        });
    }
    tracing::debug!(
        route = ROUTES[route],
        status,
        took_us = took.as_micros(),
        request_id,
        "request answered"
    );
    response
}

/// `hex::encode` would write it letter by letter.
fn request_id(random: [u8; 12]) -> String {
    let mut digits = vec![0; 24];
    hex::encode_to_slice(random, &mut digits).expect("two digits for each byte");
    String::from_utf8(digits).expect("digits are text")
}

/// Whatever is asked for.
fn refused_at_the_door(
    app: &App,
    peer: IpAddr,
    route: usize,
    request: &Request<Body>,
) -> Option<ApiError> {
    let target = request.uri().path_and_query().map_or("", |target| target.as_str());
    if target.len() > URI_BYTES_MAX {
        return Some(ApiError::UriTooLong);
    }
    // A proxy may have looked at the other one.
    if request.headers().get_all(header::HOST).iter().nth(1).is_some() {
        return Some(ApiError::MalformedRequest);
    }
    if !WATCHED.contains(&ROUTES[route]) && is_plain(app, peer, request.headers()) {
        tell_plain(peer);
        return Some(ApiError::HttpsRequired);
    }
    None
}

/// Within a time, and whatever a handler does.
async fn handled(router: Router, request: Request<Body>) -> Response<Body> {
    match tokio::time::timeout(REQUEST_TIMEOUT, caught(router.oneshot(request))).await {
        Ok(Ok(Ok(response))) => response,
        Ok(Ok(Err(never))) => match never {},
        Ok(Err(Panicked)) => ApiError::Internal("a handler panicked".into()).into_response(),
        // A write that was begun goes on; the same call again tells how it ended.
        Err(_) => ApiError::StorageUnavailable("no answer in time".into()).into_response(),
    }
}

/// What a caller may write as its method is as long as its head.
fn word_of(method: &Method) -> &str {
    const KNOWN: [Method; 7] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    if KNOWN.contains(method) { method.as_str() } else { "OTHER" }
}

/// The spec's error shape in the reader's language.
fn render(
    error: &ApiError,
    shell: &Response<Body>,
    wanted: Option<&HeaderValue>,
    request_id: &str,
    route: &str,
) -> Response<Body> {
    let language = Language::wanted(wanted);
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
    let headers = response.headers_mut();
    // `Allow` of a 405 is the router's; who may read the answer is the checkout's.
    for kept in [header::ALLOW, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS] {
        headers.extend(shell.headers().get(&kept).map(|value| (kept, value.clone())));
    }
    headers.insert(header::CONTENT_LANGUAGE, HeaderValue::from_static(language.code()));
    headers.insert(header::VARY, HeaderValue::from_static("accept-language"));
    error.headers(headers);
    if let ApiError::PayloadTooLarge | ApiError::RequestTimeout | ApiError::MalformedRequest = error
    {
        // The rest of the body is still on its way; we will not read it.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn details(error: &ApiError) -> Vec<ErrorDetail> {
    let detail =
        |fault: &FieldFault| ErrorDetail { field: fault.field.clone(), issue: fault.issue.code() };
    faults(error).iter().map(detail).collect()
}

fn faults(error: &ApiError) -> &[FieldFault] {
    match error {
        ApiError::InvalidBody(faults) | ApiError::InvalidQuery(faults) => faults,
        _ => &[],
    }
}

/// For whoever looks at the call later, in the words of programs. A field's name may be the caller's, and no text of
/// PostgreSQL holds a zero byte.
fn why(error: &ApiError) -> Option<String> {
    let fields: Vec<_> = match error {
        ApiError::IdempotencyConflict(fields) => {
            fields.iter().map(|field| format!("{field}: differs")).collect()
        }
        error => {
            let told = |fault: &FieldFault| {
                format!("{}: {}", fault.field.escape_debug(), fault.issue.code())
            };
            faults(error).iter().map(told).collect()
        }
    };
    (!fields.is_empty()).then(|| fields.join(", "))
}

/// The address that counts for limits: the peer's, or what a trusted proxy says about it.
///
/// Read from the right, where trusted proxies write; what stands left of the first stranger, or of
/// something that is no address, was written by the client.
fn client_address(app: &App, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let trusted = |ip: &IpAddr| is_proxy(app, ip);
    if !trusted(&peer) {
        return peer;
    }
    let written = headers.get_all("x-forwarded-for").iter().flat_map(|value| {
        let text = value.to_str().unwrap_or_default();
        // A proxy that listens for both families writes IPv4 as IPv6.
        text.split(',')
            .map(|address| address.trim().parse().ok().map(|ip: IpAddr| ip.to_canonical()))
    });
    written.rev().map_while(|address| address).find(|address| !trusted(address)).unwrap_or(peer)
}

pub(super) fn is_proxy(app: &App, ip: &IpAddr) -> bool {
    app.config.trusted_proxies.iter().any(|net| net.contains(ip))
}

/// Production answers over TLS: its own, or that of a proxy, which may say that it got something else.
fn is_plain(app: &App, peer: IpAddr, headers: &HeaderMap) -> bool {
    if app.environment != Environment::Production || app.config.tls.is_some() {
        return false;
    }
    let mut schemes = headers
        .get_all("x-forwarded-proto")
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii));
    !is_proxy(app, &peer) || schemes.any(|scheme| !scheme.eq_ignore_ascii_case(b"https"))
}

/// Once: an operator whose proxy is not named, or says the wrong thing, finds out why nothing works.
fn tell_plain(peer: IpAddr) {
    static TOLD: std::sync::Once = std::sync::Once::new();
    TOLD.call_once(|| {
        tracing::warn!(
            %peer,
            "a call came without TLS and was refused: is this address in trusted_proxies, and does it say X-Forwarded-Proto: https?"
        );
    });
}

/// In HTTP/2 the host is a part of the address. Who asks how we are reached finds it in one place.
fn name_host(request: &mut Request<Body>) {
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    if let Some(host) = authority.and_then(|host| HeaderValue::from_maybe_shared(host).ok())
        && !request.headers().contains_key(header::HOST)
    {
        request.headers_mut().insert(header::HOST, host);
    }
}

/// The place of a path in the list of routes; strangers cannot make up new ones.
fn route_of(path: &str) -> usize {
    let place = |path: &str| ROUTES.iter().position(|route| *route == path);
    // Where a path carries an id, its first part counts.
    let first = || path.match_indices('/').nth(1).and_then(|(end, _)| place(&path[..end]));
    place(path).or_else(first).unwrap_or(ROUTES.len() - 1)
}

/// A failure of ours is logged once, here; the caller is told only the request id.
fn log_failure(error: &ApiError, route: &str, request_id: &str) {
    if let ApiError::StorageUnavailable(reason) | ApiError::Internal(reason) = error {
        tracing::error!(route, request_id, reason, "request failed");
    }
}
