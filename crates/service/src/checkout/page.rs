//! GET /checkout/{referenceNumber}: the order as it is now.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::notice;
use super::presence;
use super::view::{Typed, render};
use super::visit::Visit;
use crate::app::App;
use crate::http::ApiError;

pub(super) async fn page(State(app): State<App>, visit: Visit) -> Response {
    if let Err(limited) = app.limits.checkout_page(&visit.dossier.order.reference_number) {
        return notice::too_many(&visit.asker(), limited);
    }
    match presence::seen(&app, &visit, false).await {
        Ok(()) => render(&app, &visit, StatusCode::OK, &Typed::default()),
        Err(ApiError::RateLimited(limited)) => notice::too_many(&visit.asker(), limited),
        Err(fault) => notice::failed(&visit.asker(), &fault),
    }
}
