//! GET /checkout/{referenceNumber}: the order as it is now.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::presence;
use super::view::{self, Typed, render};
use super::visit::Visit;
use crate::app::App;

pub(super) async fn page(State(app): State<App>, visit: Visit) -> Response {
    if let Err(fault) = presence::seen(&app, &visit, false).await {
        return view::failed(&visit.headers, visit.options.language, &fault.into());
    }
    render(&app, &visit, StatusCode::OK, &Typed::default())
}
