//! POST /svcpartner/createPaymentOrder (spec 4.2).

use axum::extract::State;
use serde::Deserialize;

use crate::app::{AdditionalInfos, App};
use crate::domain::{
    ApplicationUuid, ExternalTransactionId, Kwanza, Label, PayerId, Quantity, Terms,
};
use crate::http::{
    ApiError, Body, Caller, Envelope, ErrorReply, Exchange, FieldFault, Issue, OrderData, Reply,
    field, whole_number,
};
use crate::orders::{self, OrderRequest};

/// A payment to be made.
// Every field is optional here so that all that are missing can be named at once.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateRequest {
    /// Your id of the order and its idempotency key: printable ASCII without spaces.
    #[schema(
        required,
        nullable = false,
        min_length = 1,
        max_length = 128,
        example = "order_6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
    )]
    external_transaction_id: Option<String>,
    /// Stable id of the end user in your system.
    #[schema(required, nullable = false, min_length = 1, max_length = 128, example = "user-42")]
    client_id: Option<String>,
    /// Your publishable key without its `pk_test_` or `pk_live_` prefix.
    #[serde(rename = "applicationUUID")]
    #[schema(
        required,
        nullable = false,
        max_length = 64,
        example = "0b6f1d3c-8a55-4c1b-9c86-0f6f6ad0a111"
    )]
    application_uuid: Option<String>,
    /// What is bought, as the payer reads it.
    #[schema(required, nullable = false, min_length = 1, max_length = 255, example = "Livro")]
    name: Option<String>,
    /// The total in whole kwanza.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(
        required,
        nullable = false,
        minimum = 1,
        maximum = 999_999_999_999i64,
        example = 15000
    )]
    amount: Option<i64>,
    /// How many; it never multiplies the amount.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(required, nullable = false, minimum = 1, maximum = 1_000_000, example = 1)]
    quantity: Option<i64>,
    /// A JSON object written as a string, with `returnUrl`, `cancelUrl` and `webhookUrl`.
    #[schema(
        required,
        nullable = false,
        max_length = 8192,
        example = r#"{"returnUrl":"https://shop.ao/ok","cancelUrl":"https://shop.ao/no","webhookUrl":"https://shop.ao/api/svc/webhook"}"#
    )]
    additional_info: Option<String>,
}

/// Creates a payment order, or answers the one that already has this externalTransactionId.
#[utoipa::path(
    post,
    path = "/svcpartner/createPaymentOrder",
    tag = "Orders",
    security(("bearer" = [])),
    request_body = CreateRequest,
    responses(
        (status = 200, description = "The order. `Idempotent-Replayed: true` when it existed already.", body = Envelope<OrderData>, headers(("Idempotent-Replayed" = String, description = "`true` when the order existed already"))),
        (status = 404, description = "`application_not_found`", body = ErrorReply),
        (status = 409, description = "`idempotency_conflict`: same id, other content; nothing changed", body = ErrorReply),
    )
)]
pub(super) async fn create_payment_order(
    State(app): State<App>,
    caller: Caller,
    exchange: Exchange,
    Body(body): Body<CreateRequest>,
) -> Result<Reply<OrderData>, ApiError> {
    let (uuid, id, terms) = parse(body, &app.additional_infos)?;
    let application = caller.application(&app, &uuid).await?;
    let request = OrderRequest {
        application,
        external_transaction_id: id,
        terms,
        request_id: exchange.request_id,
    };
    let created = orders::create(&app, request).await?;
    Ok(Reply::ok(created.order.into()).replayed(created.replayed))
}

/// Every 422 of this call is born here, with all its faults.
fn parse(
    body: CreateRequest,
    additional_infos: &AdditionalInfos,
) -> Result<(ApplicationUuid, ExternalTransactionId, Terms), ApiError> {
    let mut faults = Vec::new();
    let id = field(
        &mut faults,
        "externalTransactionId",
        body.external_transaction_id,
        ExternalTransactionId::parse,
    );
    let payer_id = field(&mut faults, "clientId", body.client_id, PayerId::parse);
    let uuid = field(&mut faults, "applicationUUID", body.application_uuid, ApplicationUuid::parse);
    let name = field(&mut faults, "name", body.name, Label::parse);
    let amount = field(&mut faults, "amount", body.amount, Kwanza::parse);
    let quantity = field(&mut faults, "quantity", body.quantity, Quantity::parse);
    let additional_info = match body.additional_info {
        None => Err(vec![FieldFault::new("additionalInfo", Issue::Required)]),
        Some(text) => additional_infos.parse(&text).map_err(FieldFault::of_additional_info),
    };
    let additional_info = additional_info.map_err(|wrong| faults.extend(wrong)).ok();
    match (uuid, id, payer_id, name, amount, quantity, additional_info) {
        (
            Some(uuid),
            Some(id),
            Some(payer_id),
            Some(name),
            Some(amount),
            Some(quantity),
            Some(additional_info),
        ) => Ok((uuid, id, Terms { payer_id, name, amount, quantity, additional_info })),
        _ => Err(ApiError::InvalidBody(faults)),
    }
}
