//! The description of every route, put together from the handlers themselves (OpenAPI 3.1).

use serde_json::Value;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi as Document, PathsBuilder, RefOr, Schema};
use utoipa::{Modify, OpenApi};

use crate::http::all_errors;
use crate::{partner, sandbox};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Payment orders in kwanza",
        description = "Create payment orders in Angolan kwanza (AOA), query them, and receive signed \
            webhooks. Amounts are whole kwanza. Call this API from your backend only: it needs your \
            client secret. The webhook, not the browser, says that an order is paid.",
    ),
    paths(
        partner::token,
        partner::create_payment_order,
        partner::payment_by_external_transaction,
        partner::events,
        sandbox::simulate,
        sandbox::clock,
        sandbox::advance,
        sandbox::chaos,
        sandbox::set_chaos,
    ),
    modifiers(&Security, &ErrorValues),
    tags(
        (name = "Token", description = "Access tokens"),
        (name = "Orders", description = "Payment orders"),
        (name = "Webhooks", description = "What we send you, and the same events to ask for"),
        (name = "Sandbox", description = "Acting on your orders as payers would; not in production"),
    )
)]
struct Partner;

/// What we send.
#[derive(OpenApi)]
#[openapi(paths(payment_webhook))]
struct Webhooks;

/// One event per state of an order, to its `webhookUrl`.
///
/// Verify `x-svc-content-token` over the raw bytes before you parse them, and answer 2xx within
/// five seconds, also for an event you have seen.
#[utoipa::path(
    post,
    path = "payment",
    tag = "Webhooks",
    params(
        ("x-svc-content-token" = String, Header, description = "64 lower-case hex digits: HMAC-SHA256 of the raw body, keyed with your webhook secret"),
        ("webhook-id" = String, Header, description = "Stable across attempts (Standard Webhooks)"),
        ("webhook-timestamp" = String, Header, description = "Seconds since 1970 (Standard Webhooks)"),
        ("webhook-signature" = String, Header, description = "v1 signatures (Standard Webhooks)"),
    ),
    request_body = WebhookEvent,
    responses((status = 200, description = "Received; any 2xx counts"))
)]
#[expect(dead_code, reason = "only its description is used")]
fn payment_webhook() {}

/// The body of a webhook (spec 6).
#[derive(utoipa::ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct WebhookEvent {
    #[schema(example = "payment")]
    event: String,
    data: WebhookData,
}

#[derive(utoipa::ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct WebhookData {
    /// Your id of the order; your idempotency key too.
    #[schema(example = "order_6f9619ff-8b86-4d01-b42d-00cf4fc964ff")]
    external_transaction_id: String,
    /// `PEN`, `CON` or `CAN`.
    #[schema(example = "CON")]
    payment_status: String,
    #[schema(example = "01JC4E9V7Q3M8Y5T2K6R1N0WXZ")]
    reference_number: String,
    /// Whole kwanza.
    #[schema(example = 15000)]
    amount: i64,
}

struct Security;

/// The closed list of `error` values, from the table that answers them.
struct ErrorValues;

impl Modify for ErrorValues {
    fn modify(&self, document: &mut Document) {
        let values = all_errors().into_iter().map(|(_, value, _)| Value::from(value)).collect();
        let schemas = document.components.as_mut().map(|components| &mut components.schemas);
        let reply = schemas.and_then(|schemas| schemas.get_mut("ErrorReply"));
        let Some(RefOr::T(Schema::Object(reply))) = reply else { return };
        if let Some(RefOr::T(Schema::Object(error))) = reply.properties.get_mut("error") {
            error.enum_values = Some(values);
        }
    }
}

impl Modify for Security {
    fn modify(&self, document: &mut Document) {
        let components = document.components.get_or_insert_default();
        for (name, scheme) in [("basic", HttpAuthScheme::Basic), ("bearer", HttpAuthScheme::Bearer)]
        {
            components.add_security_scheme(name, SecurityScheme::Http(Http::new(scheme)));
        }
    }
}

pub(super) fn document() -> Document {
    let mut document = Partner::openapi();
    let webhooks = Webhooks::openapi();
    if let (Some(ours), Some(theirs)) = (document.components.as_mut(), webhooks.components) {
        ours.schemas.extend(theirs.schemas);
    }
    let mut paths = PathsBuilder::new();
    for (name, item) in webhooks.paths.paths {
        paths = paths.path(name.trim_start_matches('/'), item);
    }
    document.webhooks = Some(paths.build());
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_openapi_3_1_with_every_call_and_the_webhook() {
        let value = serde_json::to_value(document()).unwrap();
        assert!(value["openapi"].as_str().unwrap().starts_with("3.1"), "{}", value["openapi"]);
        for path in [
            "/paths/~1token/post",
            "/paths/~1svcpartner~1createPaymentOrder/post",
            "/paths/~1svcpartner~1paymentByExternalTransaction/get",
            "/paths/~1svcpartner~1events/get",
            "/paths/~1sandbox~1simulate/post",
            "/webhooks/payment/post",
            "/components/schemas/ErrorReply",
            "/components/schemas/WebhookData/properties/externalTransactionId",
        ] {
            assert!(value.pointer(path).is_some(), "{path} is missing");
        }
        let listed = &value["components"]["schemas"]["ErrorReply"]["properties"]["error"]["enum"];
        assert_eq!(listed.as_array().map(Vec::len), Some(all_errors().len()), "{listed}");
    }
}
