//! POST /sandbox/simulate: what a payer or a rail would do to the merchant's own order.

use axum::extract::State;
use serde::Deserialize;

use crate::app::App;
use crate::domain::{ApplicationUuid, ExternalTransactionId};
use crate::http::{
    ApiError, Body, Caller, Envelope, ErrorReply, Exchange, Issue, OrderData, Reply, field,
};
use crate::simulation::{Outcome, act};

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SimulateRequest {
    /// Your publishable key without its prefix.
    #[serde(rename = "applicationUUID")]
    #[schema(
        required,
        nullable = false,
        max_length = 64,
        example = "0b6f1d3c-8a55-4c1b-9c86-0f6f6ad0a111"
    )]
    application_uuid: Option<String>,
    #[schema(required, nullable = false, example = "order_6f9619ff-8b86-4d01-b42d-00cf4fc964ff")]
    external_transaction_id: Option<String>,
    /// `confirm`: the payer pays; `decline`: an attempt is refused, the order stays pending;
    /// `pending`: a bank reference is issued; `cancel`: the payer gives up; `expire`: the deadline
    /// passes.
    #[schema(
        required,
        nullable = false,
        pattern = "^(confirm|decline|pending|cancel|expire)$",
        example = "confirm"
    )]
    outcome: Option<String>,
}

/// Does to your own order what a payer, a rail or time would; a settled order stays as it is.
#[utoipa::path(
    post,
    path = "/sandbox/simulate",
    tag = "Sandbox",
    security(("bearer" = [])),
    request_body = SimulateRequest,
    responses(
        (status = 200, description = "The order as it is now; its webhook is on its way", body = Envelope<OrderData>),
        (status = 404, description = "`order_not_found`, `application_not_found`; `not_found` in production", body = ErrorReply),
    )
)]
pub(super) async fn simulate(
    State(app): State<App>,
    caller: Caller,
    exchange: Exchange,
    Body(body): Body<SimulateRequest>,
) -> Result<Reply<OrderData>, ApiError> {
    let (uuid, id, outcome) = parse(body)?;
    let application = caller.application(&app, &uuid).await?;
    let standing = app.store.standing(application.id, &id).await?;
    let reference = standing.ok_or(ApiError::OrderNotFound)?.reference_number;
    let order = app.store.order_by_reference(&reference).await?;
    act(&app, order.ok_or(ApiError::OrderNotFound)?, outcome, exchange.request_id).await?;
    let order = app.store.order_by_reference(&reference).await?;
    Ok(Reply::ok(order.ok_or(ApiError::OrderNotFound)?.into()))
}

fn parse(
    body: SimulateRequest,
) -> Result<(ApplicationUuid, ExternalTransactionId, Outcome), ApiError> {
    let mut faults = Vec::new();
    let uuid = field(&mut faults, "applicationUUID", body.application_uuid, ApplicationUuid::parse);
    let id = field(
        &mut faults,
        "externalTransactionId",
        body.external_transaction_id,
        ExternalTransactionId::parse,
    );
    let outcome = field(&mut faults, "outcome", body.outcome, |text| {
        Outcome::parse(&text).ok_or(Issue::NotOneOf(Outcome::WORDS))
    });
    match (uuid, id, outcome) {
        (Some(uuid), Some(id), Some(outcome)) => Ok((uuid, id, outcome)),
        _ => Err(ApiError::InvalidBody(faults)),
    }
}
