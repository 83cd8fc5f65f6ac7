//! GET /checkout/{referenceNumber}: the order as it is now.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::presence;
use super::view::{self, Typed, render};
use super::visit::{Visit, too_many};
use crate::app::App;

pub(super) async fn page(State(app): State<App>, visit: Visit) -> Response {
    if let Err(limited) = app.limits.checkout_poll(&visit.dossier.order.reference_number) {
        return too_many(&visit.headers, visit.options.language, limited);
    }
    if let Err(fault) = presence::seen(&app, &visit, false).await {
        return view::failed(&visit.headers, visit.options.language, &fault.into());
    }
    render(&app, &visit, StatusCode::OK, &Typed::default())
}
