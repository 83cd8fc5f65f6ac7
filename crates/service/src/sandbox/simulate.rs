//! POST /sandbox/simulate: what a payer or a rail would do to the merchant's own order.

use axum::Extension;
use axum::extract::State;
use serde::Deserialize;

use crate::app::App;
use jiff::SignedDuration;

use crate::domain::{
    About, ApplicationUuid, Author, CancelReason, ExternalTransactionId, Notice, Order,
    PaymentAttempt, PhoneNumber, Reason, ReferenceNumber, Word,
};
use crate::http::{
    ApiError, Body, Caller, Envelope, ErrorReply, Exchange, Issue, OrderData, Reply, field,
};
use crate::orders::{self, Choice, PayError};
use crate::rails::{Simulator, payment_id};

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SimulateRequest {
    /// Your publishable key without its prefix.
    #[serde(rename = "applicationUUID")]
    #[schema(required, nullable = false, example = "0b6f1d3c-8a55-4c1b-9c86-0f6f6ad0a111")]
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

#[derive(Clone, Copy)]
pub(crate) enum SimulatedOutcome {
    Confirm,
    Decline,
    Cancel,
    Expire,
    Pending,
}

/// Does to your own order what a payer, a rail or time would; a settled order stays as it is.
#[utoipa::path(
    post,
    path = "/sandbox/simulate",
    tag = "Sandbox",
    security(("bearer" = [])),
    params(("Accept-Language" = Option<String>, Header, description = "Language of messages: pt (default), en, fr")),
    request_body = SimulateRequest,
    responses(
        (status = 200, description = "The order as it is now; its webhook is on its way", body = Envelope<OrderData>),
        (status = 400, description = "`malformed_request`: the body broke off", body = ErrorReply),
        (status = 401, description = "`invalid_token`", body = ErrorReply),
        (status = 404, description = "`order_not_found`, `application_not_found`; `not_found` in production", body = ErrorReply),
        (status = 408, description = "`request_timeout`: the body did not arrive", body = ErrorReply),
        (status = 413, description = "`payload_too_large`: more than 64 KiB", body = ErrorReply),
        (status = 415, description = "`unsupported_media_type`", body = ErrorReply),
        (status = 422, description = "`invalid_body`; `details` names each field", body = ErrorReply),
        (status = 429, description = "`rate_limited`", body = ErrorReply),
        (status = 503, description = "`storage_unavailable`: repeat the same call", body = ErrorReply),
    )
)]
pub(super) async fn simulate(
    State(app): State<App>,
    caller: Caller,
    Extension(exchange): Extension<Exchange>,
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

pub(crate) async fn act(
    app: &App,
    order: Order,
    outcome: SimulatedOutcome,
    request_id: String,
) -> Result<(), ApiError> {
    if order.clone().pending().is_err() {
        return Ok(());
    }
    let reference = order.reference_number.clone();
    let payer = Author::payer(&request_id);
    match outcome {
        SimulatedOutcome::Confirm => {
            // For an attempt in flight this is its answer; else the order is paid directly.
            let dossier = app.store.dossier(&reference).await?;
            let word = Word::Paid(order.terms.amount.into());
            let notice = match dossier.as_ref().and_then(|d| d.in_flight()) {
                Some(attempt) => answer_to(attempt, word),
                None => direct_payment(app, reference, word),
            };
            orders::settle(app, notice, &request_id).await?;
        }
        SimulatedOutcome::Decline => decline(app, &order, &payer).await?,
        SimulatedOutcome::Pending => {
            let choice = Choice::Reference { life: REFERENCE_LIFE };
            match orders::pay(app, &reference, &choice, &payer).await {
                // An attempt is under way, or it is too late: the order is what it is.
                Ok(_)
                | Err(PayError::Refused(_) | PayError::NotOffered | PayError::TooOften(_)) => {}
                Err(PayError::Store(fault)) => return Err(fault.into()),
            }
        }
        SimulatedOutcome::Cancel => {
            orders::cancel(app, &reference, CancelReason::Payer, &payer).await?;
        }
        SimulatedOutcome::Expire => orders::expire_now(app, &reference).await?,
    }
    Ok(())
}

/// The attempt in flight is refused; if there is none, one is made for it.
async fn decline(app: &App, order: &Order, payer: &Author) -> Result<(), ApiError> {
    const REFUSED_BY_PAYER: &str = "900003000";
    let phone = PhoneNumber::parse(REFUSED_BY_PAYER).expect("a number of the simulator");
    let reference = &order.reference_number;
    let dossier = match orders::pay(app, reference, &Choice::Push(phone), payer).await {
        Ok(dossier) => Some(dossier),
        Err(PayError::Refused(_) | PayError::NotOffered | PayError::TooOften(_)) => {
            app.store.dossier(reference).await?
        }
        Err(PayError::Store(fault)) => return Err(fault.into()),
    };
    let Some(attempt) = dossier.as_ref().and_then(|d| d.in_flight()) else { return Ok(()) };
    let word = Word::Refused(Reason::PayerRefused);
    // Whatever its number was going to do, it does not.
    app.store.forget_forecasts(&attempt.id).await?;
    orders::settle(app, answer_to(attempt, word), &payer.request_id).await?;
    Ok(())
}

/// What the rail of an attempt would say. Should the simulator say it too, it is the same news.
fn answer_to(attempt: &PaymentAttempt, word: Word) -> Notice {
    Notice {
        rail: attempt.rail.clone(),
        rail_payment_id: payment_id(&attempt.id),
        about: About::Attempt(attempt.id.clone()),
        word,
        raw: b"simulate".to_vec(),
    }
}

fn direct_payment(app: &App, order: ReferenceNumber, word: Word) -> Notice {
    Notice {
        rail: Simulator::NAME.to_owned(),
        rail_payment_id: format!("sim_{}", hex::encode(app.random.bytes::<12>())),
        about: About::Order(order),
        word,
        raw: b"simulate".to_vec(),
    }
}

const REFERENCE_LIFE: SignedDuration = SignedDuration::from_mins(1_440);

fn parse(
    body: SimulateRequest,
) -> Result<(ApplicationUuid, ExternalTransactionId, SimulatedOutcome), ApiError> {
    let mut faults = Vec::new();
    let uuid = field(&mut faults, "applicationUUID", body.application_uuid, ApplicationUuid::parse);
    let id = field(
        &mut faults,
        "externalTransactionId",
        body.external_transaction_id,
        ExternalTransactionId::parse,
    );
    let outcome = field(&mut faults, "outcome", body.outcome, |text| outcome_of(&text));
    match (uuid, id, outcome) {
        (Some(uuid), Some(id), Some(outcome)) => Ok((uuid, id, outcome)),
        _ => Err(ApiError::InvalidBody(faults)),
    }
}

pub(crate) fn outcome_of(word: &str) -> Result<SimulatedOutcome, Issue> {
    match word {
        "confirm" => Ok(SimulatedOutcome::Confirm),
        "decline" => Ok(SimulatedOutcome::Decline),
        "cancel" => Ok(SimulatedOutcome::Cancel),
        "expire" => Ok(SimulatedOutcome::Expire),
        "pending" => Ok(SimulatedOutcome::Pending),
        _ => Err(Issue::NotOneOf("confirm, decline, cancel, expire, pending")),
    }
}
