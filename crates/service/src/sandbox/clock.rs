//! GET and POST /sandbox/clock: what time the sandbox thinks it is, and a way to tomorrow.

use axum::extract::State;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::http::{ApiError, Body, Caller, Envelope, Issue, Reply, field};
use crate::simulation::travel;

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClockRequest {
    /// How far to move the clock, at most 400 days.
    #[schema(required, nullable = false, value_type = i64, example = 86400, minimum = 1, maximum = 34_560_000)]
    advance_seconds: Option<serde_json::Value>,
}

#[derive(Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClockData {
    /// The sandbox's time.
    #[schema(example = "2026-11-16T09:00:00Z")]
    now: String,
    /// How far it is ahead of the machine's.
    #[schema(example = 86400)]
    ahead_seconds: i64,
    /// `false` while the sandbox is still on its way; ask again.
    arrived: bool,
}

const ADVANCE_SECONDS_MAX: i64 = 400 * 86_400;

/// The sandbox's time.
#[utoipa::path(
    get,
    path = "/sandbox/clock",
    tag = "Sandbox",
    security(("bearer" = [])),
    responses(
        (status = 200, description = "The time", body = Envelope<ClockData>),
    )
)]
pub(super) async fn clock(State(app): State<App>, _caller: Caller) -> Reply<ClockData> {
    Reply::ok(reading(&app, app.travel.try_lock().is_ok()))
}

/// Moves the clock of the whole sandbox. Every deadline and every retry on the way happens at its
/// own moment, in order.
#[utoipa::path(
    post,
    path = "/sandbox/clock",
    tag = "Sandbox",
    security(("bearer" = [])),
    request_body = ClockRequest,
    responses(
        (status = 200, description = "The time on arrival", body = Envelope<ClockData>),
    )
)]
pub(super) async fn advance(
    State(app): State<App>,
    _caller: Caller,
    Body(body): Body<ClockRequest>,
) -> Result<Reply<ClockData>, ApiError> {
    let arrived = travel(&app, parse(body)?).await?;
    Ok(Reply::ok(reading(&app, arrived)))
}

fn reading(app: &App, arrived: bool) -> ClockData {
    ClockData {
        now: app.clock.now().to_string(),
        ahead_seconds: app.clock.ahead().as_secs(),
        arrived,
    }
}

fn parse(body: ClockRequest) -> Result<SignedDuration, ApiError> {
    let mut faults = Vec::new();
    let seconds =
        field(&mut faults, "advanceSeconds", body.advance_seconds, |given| match given.as_i64() {
            None => Err(Issue::NotAnInteger),
            Some(..=0) => Err(Issue::TooSmall),
            Some(s) if s > ADVANCE_SECONDS_MAX => Err(Issue::TooLarge { max: ADVANCE_SECONDS_MAX }),
            Some(s) => Ok(s),
        });
    seconds.map(SignedDuration::from_secs).ok_or(ApiError::InvalidBody(faults))
}
