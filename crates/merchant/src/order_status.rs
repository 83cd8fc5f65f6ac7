//! GET /api/svc/order/:externalTransactionId/status (spec 4.6 C): for when a webhook is late.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use svc_client::PaymentStatus;

use crate::Shop;
use crate::nowhere::Path;
use crate::reconcile::heal;
use crate::reply::{answer, refuse, unavailable};

pub(crate) async fn order_status(State(shop): State<Shop>, Path(id): Path) -> Response {
    let unknown = || refuse(StatusCode::NOT_FOUND, "order_not_found", "There is no such order.");
    let mut order = match shop.store.order(&id) {
        Ok(Some(order)) => order,
        Ok(None) => return unknown(),
        Err(fault) => return unavailable(&fault),
    };
    if order.status == PaymentStatus::Pending {
        // What the service cannot tell now, it tells by its webhook.
        if let Err(fault) = heal(&shop, &id).await {
            tracing::warn!(order = id, %fault, "the state of an order could not be asked for");
        }
        order = match shop.store.order(&id) {
            Ok(Some(order)) => order,
            Ok(None) => return unknown(),
            Err(fault) => return unavailable(&fault),
        };
    }
    let reply = json!({
        "externalTransactionId": order.external_transaction_id,
        "status": order.status.code(),
        "referenceNumber": order.reference_number,
        "amount": order.amount,
    });
    answer(StatusCode::OK, &reply)
}
