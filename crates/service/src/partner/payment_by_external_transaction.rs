//! GET /svcpartner/paymentByExternalTransaction (spec 4.3).

use axum::extract::{RawQuery, State};

use crate::app::App;
use crate::domain::{ApplicationUuid, ExternalTransactionId};
use crate::http::{
    ApiError, Caller, Envelope, ErrorReply, OrderData, Reply, application_parameter, parameter,
};

/// The state of an order: a fallback for a webhook that is late.
#[utoipa::path(
    get,
    path = "/svcpartner/paymentByExternalTransaction",
    tag = "Orders",
    security(("bearer" = [])),
    params(
        ("externalTransactionId" = String, Query, description = "Your id of the order"),
        ("applicationUUID" = String, Query, description = "Your publishable key without its prefix"),
    ),
    responses(
        (status = 200, description = "The order", body = Envelope<OrderData>),
        (status = 404, description = "`order_not_found` or `application_not_found`", body = ErrorReply),
    )
)]
pub(super) async fn payment_by_external_transaction(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Reply<OrderData>, ApiError> {
    let (uuid, id) = parse(&query.unwrap_or_default())?;
    app.limits.order_query(caller.partner.id, &id)?;
    let application = caller.application(&app, &uuid).await?;
    let standing = app.store.standing(application.id, &id).await?;
    Ok(Reply::ok(OrderData::new(id, standing.ok_or(ApiError::OrderNotFound)?)))
}

/// Every 422 of this call is born here; an id that cannot exist is simply not found.
fn parse(query: &str) -> Result<(ApplicationUuid, ExternalTransactionId), ApiError> {
    let mut faults = Vec::new();
    let id = parameter(&mut faults, query, "externalTransactionId");
    let uuid = application_parameter(&mut faults, query);
    match (id, uuid) {
        (Some(id), Some(uuid)) if faults.is_empty() => {
            Ok((uuid?, ExternalTransactionId::parse(id).map_err(|_| ApiError::OrderNotFound)?))
        }
        _ => Err(ApiError::InvalidQuery(faults)),
    }
}
