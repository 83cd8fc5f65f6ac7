//! The browser SDK: a file that changes with us, each version of it for ever, and what it must hash to.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

use crate::app::App;
use crate::http::{ApiError, Asset, Path, json};
use crate::store::StoreError;

static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(Asset::SCRIPT, include_bytes!("../assets/svc.min.js"))
        .with_brotli(include_bytes!("../assets/svc.min.js.br"))
});
/// Long enough to spare a page's second load, short enough for a mend to arrive.
const A_WHILE: &str = "public, max-age=300";

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/sdks/v1/svc.min.js", get(current))
        .route("/sdks/v1/{version}/svc.min.js", get(immutable))
        .route("/sdks/v1/manifest.json", get(manifest))
}

/// Before it is given out: pages that name this version load it from every later one of us as well.
pub(crate) async fn keep(app: &App) -> Result<(), StoreError> {
    let script = std::str::from_utf8(SCRIPT.plain()).expect("the SDK is text");
    app.store.keep_file(&name(&version()), script).await
}

fn name(version: &str) -> String {
    format!("sdk {version}")
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

async fn immutable(
    State(app): State<App>,
    Path(asked): Path<String>,
    headers: HeaderMap,
) -> Response {
    if asked == version() {
        return for_all(SCRIPT.respond(&headers, Asset::FOR_EVER));
    }
    // Nobody makes us look for what cannot be one.
    if asked.len() != version().len() || !asked.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return ApiError::RouteNotFound.into_response();
    }
    match app.store.kept_file(&name(&asked)).await {
        Ok(Some(script)) => {
            let kind = HeaderValue::from_static(Asset::SCRIPT);
            let cache = HeaderValue::from_static(Asset::FOR_EVER);
            let no_sniff = HeaderValue::from_static("nosniff");
            let headers = [
                (header::CONTENT_TYPE, kind),
                (header::CACHE_CONTROL, cache),
                (header::X_CONTENT_TYPE_OPTIONS, no_sniff),
            ];
            for_all((headers, script).into_response())
        }
        Ok(None) => ApiError::RouteNotFound.into_response(),
        Err(fault) => ApiError::from(fault).into_response(),
    }
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
