//! The page's two files, and gzip for whoever takes it: most payers come over 3G.

use std::io::Write as _;
use std::sync::LazyLock;

use aws_lc_rs::digest;
use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::http::ApiError;

struct Asset {
    /// Changes with the content, so that it may be kept for ever.
    name: String,
    kind: &'static str,
    plain: &'static [u8],
    gzip: Vec<u8>,
}

static CSS: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "checkout",
        "css",
        "text/css; charset=utf-8",
        include_bytes!("../../assets/checkout.css"),
    )
});
static JS: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "checkout",
        "js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../assets/checkout.js"),
    )
});

impl Asset {
    fn new(stem: &str, ending: &str, kind: &'static str, plain: &'static [u8]) -> Self {
        let hash = hex::encode(&digest::digest(&digest::SHA256, plain).as_ref()[..6]);
        Self { name: format!("{stem}.{hash}.{ending}"), kind, plain, gzip: compress(plain) }
    }

    fn url(&self) -> String {
        format!("/checkout/assets/{}", self.name)
    }
}

pub(crate) fn css_url() -> String {
    CSS.url()
}

pub(super) fn js_url() -> String {
    JS.url()
}

/// GET /checkout/assets/{name}
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = [&*CSS, &*JS].into_iter().find(|asset| asset.name == name) else {
        return ApiError::RouteNotFound.into_response();
    };
    let (body, encoding) = if takes_gzip(&headers) {
        (Body::from(asset.gzip.as_slice()), Some("gzip"))
    } else {
        (Body::from(asset.plain), None)
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=31536000, immutable"),
    );
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(encoding) = encoding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}

/// A page of HTML with this status, packed if the browser takes that.
pub(crate) fn page_response(status: StatusCode, html: String, asked: &HeaderMap) -> Response {
    let mut response = gzipped(html.into_bytes(), asked);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn gzipped(plain: Vec<u8>, asked: &HeaderMap) -> Response {
    let packed = takes_gzip(asked);
    let body = if packed { compress(&plain) } else { plain };
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if packed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let taken = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    taken.is_some_and(|list| {
        list.split(',').any(|one| {
            let (name, quality) = one.split_once(';').unwrap_or((one, ""));
            name.trim() == "gzip" && !matches!(quality.trim(), "q=0" | "q=0.0")
        })
    })
}

fn compress(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 3), Compression::default());
    encoder.write_all(plain).and_then(|()| encoder.finish()).expect("memory takes what is written")
}
