//! GET /checkout/{referenceNumber}: the order as it is now.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::view::{Typed, render};
use super::visit::Visit;
use crate::app::App;

pub(super) async fn page(State(app): State<App>, visit: Visit) -> Response {
    render(&app, &visit, StatusCode::OK, &Typed::default())
}
