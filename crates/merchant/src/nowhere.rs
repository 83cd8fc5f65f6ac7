//! Addresses that lead nowhere: a page for readers, JSON for programs.

use axum::extract::{self, FromRequestParts, RawQuery, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;

use crate::Shop;
use crate::order_page::note;
use crate::reply::refuse;
use crate::texts::language;

/// What stands in the path of an address; what cannot be text leads nowhere.
pub(crate) struct Path(pub String);

impl FromRequestParts<Shop> for Path {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, shop: &Shop) -> Result<Self, Response> {
        let given = extract::Path::from_request_parts(parts, shop).await;
        given
            .map(|extract::Path(given)| Self(given))
            .map_err(|_| not_found(shop, parts.uri.query().unwrap_or_default(), &parts.headers))
    }
}

pub(crate) async fn nowhere(
    State(shop): State<Shop>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    not_found(&shop, query.as_deref().unwrap_or_default(), &headers)
}

fn not_found(shop: &Shop, query: &str, headers: &HeaderMap) -> Response {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if !accepted.is_some_and(|accepted| accepted.contains("text/html")) {
        return refuse(StatusCode::NOT_FOUND, "not_found", "There is no such page.");
    }
    let (_, t) = language(query, headers);
    let mut page = note(shop, t, t.nowhere, t.nowhere_text);
    *page.status_mut() = StatusCode::NOT_FOUND;
    page
}
