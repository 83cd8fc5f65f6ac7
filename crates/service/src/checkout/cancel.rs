//! POST /checkout/{referenceNumber}/cancel: the payer gives up.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::notice;
use super::pay::{Form, anew, see_page};
use super::visit::Visit;
use crate::app::App;
use crate::domain::{Author, CancelReason, Status};
use crate::orders::{self, Cancelling};

pub(super) async fn cancel(State(app): State<App>, visit: Visit, body: Body) -> Response {
    if let Err(refused) = Form::read(&app, &visit, body).await {
        return *refused;
    }
    let by = Author::payer(&visit.exchange.request_id);
    let reference = &visit.dossier.order.reference_number;
    match orders::cancel(&app, reference, CancelReason::Payer, &by).await {
        Ok(Cancelling::Waits | Cancelling::Settled(Status::Cancelled)) => see_page(&visit, ""),
        Ok(Cancelling::Settled(_)) => anew(&app, visit, StatusCode::CONFLICT).await,
        Err(fault) => notice::failed(&visit.asker(), &fault.into()),
    }
}
