//! The page's two files. Their names change with their content, so that browsers may keep them.

use std::sync::LazyLock;

use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};

use crate::http::{ApiError, Asset, Path};

static CSS: LazyLock<Asset> =
    LazyLock::new(|| Asset::new(Asset::STYLE, include_bytes!("../../assets/checkout.css")));
static JS: LazyLock<Asset> =
    LazyLock::new(|| Asset::new(Asset::SCRIPT, include_bytes!("../../assets/checkout.js")));

fn css_name() -> String {
    format!("checkout.{}.css", CSS.tag())
}

fn js_name() -> String {
    format!("checkout.{}.js", JS.tag())
}

pub(crate) fn css_url() -> String {
    format!("/checkout/assets/{}", css_name())
}

pub(super) fn js_url() -> String {
    format!("/checkout/assets/{}", js_name())
}

/// GET /checkout/assets/{name}
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    match name {
        name if name == css_name() => CSS.respond(&headers, Asset::FOR_EVER),
        name if name == js_name() => JS.respond(&headers, Asset::FOR_EVER),
        // While nodes are replaced one by one, the page may be of another.
        name if name.starts_with("checkout.") && name.ends_with(".css") => {
            CSS.respond(&headers, Asset::NOT_KEPT)
        }
        name if name.starts_with("checkout.") && name.ends_with(".js") => {
            JS.respond(&headers, Asset::NOT_KEPT)
        }
        _ => ApiError::RouteNotFound.into_response(),
    }
}
