//! GET and PUT /sandbox/chaos: webhooks of one application go wrong on purpose, reproducibly.

use axum::extract::{RawQuery, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::app::App;
use crate::domain::{ApplicationUuid, Chaos};
use crate::http::{
    ApiError, Body, Caller, Envelope, ErrorReply, Issue, Reply, application_parameter, field,
};

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChaosRequest {
    /// Your publishable key without its prefix.
    #[serde(rename = "applicationUUID")]
    #[schema(
        required,
        nullable = false,
        max_length = 64,
        example = "0b6f1d3c-8a55-4c1b-9c86-0f6f6ad0a111"
    )]
    application_uuid: Option<String>,
    /// Every event comes twice.
    #[schema(value_type = Option<bool>, nullable = false)]
    duplicate: Option<Value>,
    /// After the last event of an order, the event before it is sent once more.
    #[schema(value_type = Option<bool>, nullable = false)]
    reorder: Option<Value>,
    /// Milliseconds by which the first attempt is delayed, at most an hour.
    #[schema(value_type = Option<i64>, nullable = false, minimum = 0, maximum = 3_600_000)]
    delay_ms: Option<Value>,
    /// How many attempts of every event are lost, counted from the first; at most 20.
    #[schema(value_type = Option<i64>, nullable = false, minimum = 0, maximum = 20)]
    drop_first: Option<Value>,
    /// The share of all other attempts that is lost, from 0 to 1.
    #[schema(value_type = Option<f64>, nullable = false, minimum = 0.0, maximum = 1.0, example = 0.3)]
    failure_rate: Option<Value>,
    /// Decides which attempts are lost: the same seed loses the same ones.
    #[schema(value_type = Option<i64>, nullable = false, example = 7)]
    seed: Option<Value>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChaosData {
    #[serde(rename = "applicationUUID")]
    application_uuid: String,
    duplicate: bool,
    reorder: bool,
    delay_ms: i64,
    drop_first: i64,
    failure_rate: f64,
    seed: i64,
}

/// How the webhooks of your application are disturbed.
#[utoipa::path(
    get,
    path = "/sandbox/chaos",
    tag = "Sandbox",
    security(("bearer" = [])),
    params(("applicationUUID" = String, Query, description = "Your publishable key without its prefix")),
    responses(
        (status = 200, description = "What is set", body = Envelope<ChaosData>),
        (status = 404, description = "`application_not_found`; `not_found` in production", body = ErrorReply),
    )
)]
pub(super) async fn chaos(
    State(app): State<App>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Reply<ChaosData>, ApiError> {
    let mut faults = Vec::new();
    let uuid = match application_parameter(&mut faults, query.as_deref().unwrap_or_default()) {
        Some(uuid) if faults.is_empty() => uuid?,
        _ => return Err(ApiError::InvalidQuery(faults)),
    };
    let application = caller.application(&app, &uuid).await?;
    Ok(Reply::ok(data(&uuid, &application.chaos.clone().unwrap_or_default())))
}

/// Sets all of it at once; what is left out is off. With everything off, webhooks go as they should.
#[utoipa::path(
    put,
    path = "/sandbox/chaos",
    tag = "Sandbox",
    security(("bearer" = [])),
    request_body = ChaosRequest,
    responses(
        (status = 200, description = "What is set now", body = Envelope<ChaosData>),
        (status = 404, description = "`application_not_found`; `not_found` in production", body = ErrorReply),
    )
)]
pub(super) async fn set_chaos(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<ChaosRequest>,
) -> Result<Reply<ChaosData>, ApiError> {
    let (uuid, chaos) = parse(body)?;
    let application = caller.application(&app, &uuid).await?;
    let stored = Some(chaos.clone()).filter(|chaos| !chaos.is_calm());
    app.store.set_chaos(application.id, stored).await?;
    app.directory.refresh(&app.store).await?;
    Ok(Reply::ok(data(&uuid, &chaos)))
}

fn data(uuid: &ApplicationUuid, chaos: &Chaos) -> ChaosData {
    ChaosData {
        application_uuid: uuid.as_str().to_owned(),
        duplicate: chaos.duplicate,
        reorder: chaos.reorder,
        delay_ms: chaos.delay_ms,
        drop_first: chaos.drop_first,
        failure_rate: chaos.failures_per_mille as f64 / Chaos::PER_MILLE as f64,
        seed: chaos.seed,
    }
}

fn parse(body: ChaosRequest) -> Result<(ApplicationUuid, Chaos), ApiError> {
    let mut faults = Vec::new();
    let uuid = field(&mut faults, "applicationUUID", body.application_uuid, ApplicationUuid::parse);
    let mut flag = |name, given: Option<Value>| {
        let given = Some(given.unwrap_or(Value::Bool(false)));
        field(&mut faults, name, given, |value| {
            value.as_bool().ok_or(Issue::NotOneOf("true, false"))
        })
        .unwrap_or_default()
    };
    let duplicate = flag("duplicate", body.duplicate);
    let reorder = flag("reorder", body.reorder);
    let mut number = |name, given: Option<Value>, min: i64, max: i64| {
        let given = Some(given.unwrap_or(Value::from(0)));
        let parsed = field(&mut faults, name, given, |value| match value.as_i64() {
            None => Err(Issue::NotAnInteger),
            Some(n) if n < min => Err(Issue::Negative),
            Some(n) if n > max => Err(Issue::TooLarge { max }),
            Some(n) => Ok(n),
        });
        parsed.unwrap_or_default()
    };
    let delay_ms = number("delayMs", body.delay_ms, 0, Chaos::DELAY_MS_MAX);
    let drop_first = number("dropFirst", body.drop_first, 0, Chaos::DROP_FIRST_MAX);
    let seed = number("seed", body.seed, i64::MIN, i64::MAX);
    let rate = Some(body.failure_rate.unwrap_or(Value::from(0)));
    let rate = field(&mut faults, "failureRate", rate, |value| {
        value.as_f64().filter(|rate| (0.0..=1.0).contains(rate)).ok_or(Issue::NotARate)
    });
    let failures_per_mille = (rate.unwrap_or_default() * Chaos::PER_MILLE as f64).round() as i64;
    let chaos = Chaos { duplicate, reorder, delay_ms, drop_first, failures_per_mille, seed };
    match uuid {
        Some(uuid) if faults.is_empty() => Ok((uuid, chaos)),
        _ => Err(ApiError::InvalidBody(faults)),
    }
}
