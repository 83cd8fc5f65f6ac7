//! The browser SDK: a file that changes with us, the same file for ever, and what it must hash to.

use std::sync::LazyLock;

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

use crate::app::App;
use crate::http::{Asset, json};

static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("text/javascript; charset=utf-8", include_bytes!("../assets/svc.min.js"))
        .with_brotli(include_bytes!("../assets/svc.min.js.br"))
});
/// Long enough to spare a page's second load, short enough for a mend to arrive.
const A_WHILE: &str = "public, max-age=300";
const FOR_EVER: &str = "public, max-age=31536000, immutable";

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/sdks/v1/svc.min.js", get(current))
        .route(&format!("/sdks/v1/{}/svc.min.js", version()), get(immutable))
        .route("/sdks/v1/manifest.json", get(manifest))
}

/// Another for every content.
fn version() -> String {
    SCRIPT.tag()
}

fn integrity() -> String {
    format!("sha384-{}", STANDARD.encode(SCRIPT.hash()))
}

async fn current(headers: HeaderMap) -> Response {
    let tag = format!("\"{}\"", version());
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|given| given == tag.as_str());
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => SCRIPT.respond(&headers, A_WHILE),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    for_all(response)
}

async fn immutable(headers: HeaderMap) -> Response {
    for_all(SCRIPT.respond(&headers, FOR_EVER))
}

/// Every merchant's page loads it, also those that ask for CORS because of the hash.
fn for_all(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("cross-origin"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

#[derive(Serialize)]
struct Manifest {
    version: String,
    path: String,
    integrity: String,
}

async fn manifest() -> Response {
    let path = format!("/sdks/v1/{}/svc.min.js", version());
    for_all(json(&Manifest { version: version(), path, integrity: integrity() }))
}
