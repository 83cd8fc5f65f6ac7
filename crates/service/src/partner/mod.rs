//! The partner API: one file per endpoint, named as the spec names it.

mod create_payment_order;
mod payment_by_external_transaction;
mod token;

use axum::Router;
use axum::routing::{MethodRouter, get, post};

use crate::app::App;
use crate::domain::Order;
use crate::http::ApiError;
use serde::Serialize;

pub(crate) use create_payment_order::__path_create_payment_order;
pub(crate) use payment_by_external_transaction::__path_payment_by_external_transaction;
pub(crate) use token::__path_token;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/token", post(token::token))
        .route("/svcpartner/createPaymentOrder", post(create_payment_order::create_payment_order))
        .route(
            "/svcpartner/paymentByExternalTransaction",
            without_head(get(payment_by_external_transaction::payment_by_external_transaction)),
        )
}

/// axum answers HEAD wherever GET is; this API does not.
fn without_head(routes: MethodRouter<App>) -> MethodRouter<App> {
    routes.head(async || ([(axum::http::header::ALLOW, "GET")], ApiError::MethodNotAllowed))
}

/// An order as both calls report it (spec 2.3), so that one parser serves both.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OrderData {
    /// The merchant's id of the order.
    #[schema(example = "order_6f9619ff-8b86-4d01-b42d-00cf4fc964ff")]
    external_transaction_id: String,
    /// `PEN`, `CON` or `CAN`.
    #[schema(example = "PEN")]
    payment_status: &'static str,
    /// Handed to the SDK popup.
    #[schema(example = "01JC4E9V7Q3M8Y5T2K6R1N0WXZ")]
    reference_number: String,
    /// Whole kwanza.
    #[schema(example = 15000, minimum = 1, maximum = 999_999_999_999i64)]
    amount: i64,
}

impl From<Order> for OrderData {
    fn from(order: Order) -> Self {
        Self {
            external_transaction_id: order.external_transaction_id.as_str().to_owned(),
            payment_status: order.status.code(),
            reference_number: order.reference_number.as_str().to_owned(),
            amount: order.terms.amount.get(),
        }
    }
}
