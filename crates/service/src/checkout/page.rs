//! GET /checkout/{referenceNumber}: the order as it is now.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::presence;
use super::view::{self, Typed, render};
use super::visit::Visit;
use crate::app::App;
use crate::http::ApiError;

pub(super) async fn page(State(app): State<App>, visit: Visit) -> Response {
    let language = visit.options.language;
    match presence::seen(&app, &visit, false).await {
        Ok(()) => render(&app, &visit, StatusCode::OK, &Typed::default()),
        Err(ApiError::RateLimited(limited)) => view::too_many(&visit.headers, language, limited),
        Err(fault) => view::failed(&visit.headers, language, &fault),
    }
}
