//! The partner API: one file per endpoint, named as the spec names it.

mod create_payment_order;
mod events;
mod payment_by_external_transaction;
mod token;

use axum::Router;
use axum::routing::{MethodRouter, get, post};

use crate::app::App;
use crate::http::ApiError;

pub(crate) use create_payment_order::__path_create_payment_order;
pub(crate) use events::__path_events;
pub(crate) use payment_by_external_transaction::__path_payment_by_external_transaction;
pub(crate) use token::__path_token;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/token", post(token::token))
        .route("/svcpartner/events", without_head(get(events::events)))
        .route("/svcpartner/createPaymentOrder", post(create_payment_order::create_payment_order))
        .route(
            "/svcpartner/paymentByExternalTransaction",
            without_head(get(payment_by_external_transaction::payment_by_external_transaction)),
        )
}

/// axum answers HEAD wherever GET is; this API does not.
fn without_head(routes: MethodRouter<App>) -> MethodRouter<App> {
    let refuse = async || ([(axum::http::header::ALLOW, "GET")], ApiError::MethodNotAllowed);
    routes.head(refuse).fallback(refuse)
}
