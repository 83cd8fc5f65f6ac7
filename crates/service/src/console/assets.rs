//! The files of the console's pages: built in, so that it works where there is no internet.

use std::sync::LazyLock;

use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};

use crate::http::{ApiError, Asset, Path};

static FILES: LazyLock<[(&str, Asset); 4]> = LazyLock::new(|| {
    [
        ("console.css", Asset::new(Asset::STYLE, include_bytes!("../../assets/console.css"))),
        ("console.svg", Asset::new(Asset::PICTURE, include_bytes!("../../assets/console.svg"))),
        ("console.js", Asset::new(Asset::SCRIPT, include_bytes!("../../assets/console.js"))),
        ("uplot.css", Asset::new(Asset::STYLE, include_bytes!("../../assets/uplot.css"))),
    ]
});

/// With its content in its name: browsers may keep it for ever.
pub(super) fn url(name: &str) -> String {
    let asset = FILES.iter().find(|(known, _)| *known == name);
    let tag = asset.map_or(String::new(), |(_, asset)| asset.tag());
    format!("/console/assets/{tag}/{name}")
}

/// GET /console/assets/{tag}/{name}
pub(super) async fn asset(
    Path((tag, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    match FILES.iter().find(|(known, _)| *known == name) {
        Some((_, asset)) if asset.tag() == tag => asset.respond(&headers, Asset::FOR_EVER),
        // While nodes are replaced one by one, the page may be of another.
        Some((_, asset)) => asset.respond(&headers, Asset::NOT_KEPT),
        None => ApiError::RouteNotFound.into_response(),
    }
}
