//! The description of every route, put together from the handlers themselves (OpenAPI 3.1).

use serde_json::Value;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{
    Content, ObjectBuilder, OpenApi as Document, PathsBuilder, Ref, RefOr, Required,
    ResponseBuilder, Schema, Type,
};
use utoipa::{Modify, OpenApi};

use crate::domain::{Environment, Status};
use crate::http::all_errors;
use crate::store::EventState;
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
    modifiers(&Security, &OfEveryCall),
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
        ("x-svc-delivery-attempt" = i64, Header, description = "1 for the first attempt"),
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

/// What any call may answer, and the headers of every answer.
struct OfEveryCall;

impl Modify for OfEveryCall {
    fn modify(&self, document: &mut Document) {
        for path in document.paths.paths.values_mut() {
            [&mut path.get, &mut path.put, &mut path.post].into_iter().flatten().for_each(complete);
        }
    }
}

/// What its handler says of a status stands.
fn complete(call: &mut Operation) {
    let language = ParameterBuilder::new()
        .name("Accept-Language")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("Language of messages: pt (default), en, fr"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)));
    let usual = answers_of_its_kind(call);
    call.parameters.get_or_insert_default().push(language.build().into());
    let answers = &mut call.responses.responses;
    for (status, what) in usual {
        let error = Content::new(Some(Ref::from_schema_name("ErrorReply")));
        let answer = ResponseBuilder::new().description(what).content("application/json", error);
        answers.entry(status.into()).or_insert_with(|| answer.build().into());
    }
    for (status, answer) in answers {
        let RefOr::T(answer) = answer else { continue };
        let mut told = |name: &str, what: &str| {
            answer.headers.insert(name.into(), header(what).into());
        };
        told("X-Request-Id", "The id of this exchange; give it to support");
        if status == "429" || status == "503" {
            told("Retry-After", "Seconds to wait");
        }
    }
}

/// What calls of its kind answer.
fn answers_of_its_kind(call: &Operation) -> Vec<(&'static str, &'static str)> {
    let mut answers = vec![
        ("401", "`invalid_token`"),
        ("429", "`rate_limited`"),
        ("503", "`storage_unavailable`: repeat the same call"),
        ("default", "Any other `error` of the list"),
    ];
    if let Some(body) = &call.request_body {
        let is_json = |body: &RequestBody| body.content.contains_key("application/json");
        answers.extend([
            ("400", "`malformed_request`: the body broke off"),
            ("408", "`request_timeout`: the body did not arrive"),
            ("413", "`payload_too_large`: more than 64 KiB"),
            ("415", "`unsupported_media_type`"),
        ]);
        if matches!(body, RefOr::T(body) if is_json(body)) {
            answers.push(("422", "`invalid_body`; `details` names each field"));
        }
    }
    let in_query =
        |given: &_| matches!(given, RefOr::T(Parameter { parameter_in: ParameterIn::Query, .. }));
    if call.parameters.iter().flatten().any(in_query) {
        answers.push(("414", "`uri_too_long`"));
        answers.push(("422", "`invalid_query`; `details` names each parameter"));
    }
    answers
}

fn header(what: &str) -> Header {
    let text = ObjectBuilder::new().schema_type(Type::String);
    HeaderBuilder::new().schema(Some(text)).description(Some(what)).build()
}

/// Closed lists, from the tables that answer them: generated clients get types of their own.
fn close_lists(document: &mut Document) {
    let statuses = Status::ALL.map(Status::code);
    let states = EventState::ALL.map(EventState::as_str);
    let errors: Vec<_> = all_errors().into_iter().map(|(_, value, _)| value).collect();
    for (schema, property, values) in [
        ("ErrorReply", "error", &errors[..]),
        ("OrderData", "paymentStatus", &statuses),
        ("WebhookData", "paymentStatus", &statuses),
        ("TokenRequest", "grant_type", &["client_credentials"]),
        ("WebhookEvent", "event", &["payment"]),
        ("DeliveryData", "state", &states),
    ] {
        let schemas = document.components.as_mut().map(|components| &mut components.schemas);
        let found = schemas.and_then(|schemas| schemas.get_mut(schema));
        let Some(RefOr::T(Schema::Object(found))) = found else { continue };
        if let Some(RefOr::T(Schema::Object(text))) = found.properties.get_mut(property) {
            text.enum_values = Some(values.iter().map(|value| Value::from(*value)).collect());
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

pub(super) fn document(environment: Environment) -> Document {
    let mut document = Partner::openapi();
    document.info.license = None;
    if environment == Environment::Production {
        document.paths.paths.retain(|path, _| !path.starts_with("/sandbox"));
        document.tags.iter_mut().for_each(|tags| tags.retain(|tag| tag.name != "Sandbox"));
    }
    let webhooks = Webhooks::openapi();
    if let (Some(ours), Some(theirs)) = (document.components.as_mut(), webhooks.components) {
        ours.schemas.extend(theirs.schemas);
    }
    let mut paths = PathsBuilder::new();
    for (name, item) in webhooks.paths.paths {
        paths = paths.path(name.trim_start_matches('/'), item);
    }
    document.webhooks = Some(paths.build());
    close_lists(&mut document);
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_is_openapi_3_1_with_every_call_and_the_webhook() {
        let value = serde_json::to_value(document(Environment::Sandbox)).unwrap();
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
        let values = |schema: &str, property: &str| {
            let listed = &value["components"]["schemas"][schema]["properties"][property]["enum"];
            listed.as_array().unwrap_or_else(|| panic!("{schema}.{property}")).len()
        };
        assert_eq!(values("ErrorReply", "error"), all_errors().len());
        assert_eq!(values("OrderData", "paymentStatus"), 3);
        assert_eq!(values("WebhookData", "paymentStatus"), 3);
        assert_eq!(values("WebhookEvent", "event"), 1);
        assert_eq!(values("DeliveryData", "state"), 4);
        let answers = &value["paths"]["/svcpartner/createPaymentOrder"]["post"]["responses"];
        assert!(answers["429"]["headers"]["Retry-After"].is_object(), "{answers}");
        assert!(answers["default"]["headers"]["X-Request-Id"].is_object(), "{answers}");
        let told = |path: &str, call: &str, status: &str| {
            let answer = &value["paths"][path][call]["responses"][status];
            answer["description"].as_str().unwrap_or_default().to_owned()
        };
        let token = |status| told("/token", "post", status);
        assert!(token("401").contains("invalid_client"), "what a handler says stands");
        assert!(token("413").contains("8 KiB") && token("422").is_empty());
        let feed = |status| told("/svcpartner/events", "get", status);
        assert!(feed("401").contains("invalid_token") && feed("422").contains("invalid_query"));
        assert!(feed("415").is_empty(), "it has no body");
    }

    #[test]
    fn production_describes_only_what_it_has() {
        let value = serde_json::to_value(document(Environment::Production)).unwrap();
        assert!(!value.to_string().contains("/sandbox/"), "{value}");
    }
}
