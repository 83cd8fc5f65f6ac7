//! Pages and their files, packed for whoever takes that: most payers come over 3G.

use std::io::Write as _;

use aws_lc_rs::digest;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A file built into the binary.
pub(crate) struct Asset {
    kind: &'static str,
    plain: &'static [u8],
    /// Shared by all answers: a slow reader holds no copy.
    gzip: Bytes,
    /// Packed better, when it was built.
    brotli: Option<&'static [u8]>,
    hash: Vec<u8>,
}

impl Asset {
    pub(crate) const SCRIPT: &str = "text/javascript; charset=utf-8";
    pub(crate) const STYLE: &str = "text/css; charset=utf-8";
    pub(crate) const PICTURE: &str = "image/svg+xml";
    /// For what has its content in its name.
    pub(crate) const FOR_EVER: &str = "public, max-age=31536000, immutable";
    pub(crate) const NOT_KEPT: &str = "no-store";

    pub(crate) fn new(kind: &'static str, plain: &'static [u8]) -> Self {
        let hash = digest::digest(&digest::SHA384, plain).as_ref().to_vec();
        Self { kind, plain, gzip: compress(plain).into(), brotli: None, hash }
    }

    pub(crate) fn with_brotli(self, brotli: &'static [u8]) -> Self {
        Self { brotli: Some(brotli), ..self }
    }

    pub(crate) fn plain(&self) -> &'static [u8] {
        self.plain
    }

    /// SHA-384 of the content.
    pub(crate) fn hash(&self) -> &[u8] {
        &self.hash
    }

    /// Short, and another for every content.
    pub(crate) fn tag(&self) -> String {
        hex::encode(&self.hash[..6])
    }

    pub(crate) fn respond(&self, asked: &HeaderMap, cache: &'static str) -> Response {
        let (body, encoding) = match self.brotli {
            Some(brotli) if takes(asked, "br") => (Body::from(brotli), Some("br")),
            _ if takes(asked, "gzip") => (Body::from(self.gzip.clone()), Some("gzip")),
            _ => (Body::from(self.plain), None),
        };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if let Some(encoding) = encoding {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        response
    }
}

/// A page of HTML with this status; never kept by a cache.
pub(crate) fn page_response(status: StatusCode, html: String, asked: &HeaderMap) -> Response {
    let packed = takes(asked, "gzip");
    let body = if packed { compress(html.as_bytes()) } else { html.into_bytes() };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if packed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn takes(asked: &HeaderMap, encoding: &str) -> bool {
    let taken = asked.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    taken.is_some_and(|list| {
        list.split(',').any(|one| {
            let (name, quality) = one.split_once(';').unwrap_or((one, ""));
            name.trim() == encoding && !matches!(quality.trim(), "q=0" | "q=0.0")
        })
    })
}

fn compress(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 3), Compression::default());
    encoder.write_all(plain).and_then(|()| encoder.finish()).expect("memory takes what is written")
}
