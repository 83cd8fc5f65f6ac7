//! One order: what it is, everything that happened to it, and what can be done about it.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use jiff::Timestamp;

use super::access::{Form, Id, Viewer};
use super::frame::{Frame, Refusal, Section, done, respond};
use crate::app::App;
use crate::domain::{
    AdditionalInfo, CancelReason, Dossier, Environment, Instrument, PaymentAttempt, Permission,
    ReferenceNumber, Status,
};
use crate::orders::{self, Cancelling};
use crate::simulation::{Outcome, act};
use crate::store::{DeliveryRecord, EventFilter, EventRecord, ExceptionFilter};

/// Events of one order: at most three, and replays add none.
const EVENTS_MAX: usize = 10;
const EXCEPTIONS_MAX: usize = 20;

#[derive(Template)]
#[template(path = "console/order.html")]
struct OrderPage {
    frame: Frame,
    reference: String,
    external: String,
    application: String,
    name: String,
    payer: String,
    quantity: i64,
    amount: String,
    status: &'static str,
    status_text: &'static str,
    created_at: String,
    expires_at: String,
    waiting_cancel: bool,
    may_cancel: bool,
    may_simulate: bool,
    urls: Vec<(&'static str, String)>,
    attempts: Vec<AttemptView>,
    story: Vec<StoryLine>,
}

struct AttemptView {
    id: String,
    method: &'static str,
    rail: String,
    state: &'static str,
    reason: String,
    instrument: String,
    at: String,
    until: String,
}

/// Something that happened: when, what, by whom.
pub(super) struct StoryLine {
    moment: Timestamp,
    pub at: String,
    pub kind: &'static str,
    pub what: String,
    pub detail: String,
    pub by: String,
    pub link: String,
}

/// GET /console/orders/{reference}
pub(super) async fn order(
    State(app): State<App>,
    viewer: Viewer,
    Id(reference): Id,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let dossier = find(&app, &viewer, &reference).await?;
    let frame = Frame::new(&app, &viewer, Section::Orders);
    let story = story(&app, &viewer, &frame, &dossier).await?;
    let pending = dossier.order.status == Status::Pending;
    let sandbox = app.environment == Environment::Sandbox;
    let known = app.directory.known();
    let application = known.application_by_id(dossier.order.application);
    let order = &dossier.order;
    let page = OrderPage {
        reference: order.reference_number.as_str().to_owned(),
        external: order.external_transaction_id.as_str().to_owned(),
        application: application.map_or(String::new(), |one| one.name.clone()),
        name: order.terms.name.as_str().to_owned(),
        payer: order.terms.payer_id.as_str().to_owned(),
        quantity: order.terms.quantity.get(),
        amount: frame.kwanza(order.terms.amount.get()),
        status: order.status.code(),
        status_text: frame.t.status(order.status),
        created_at: frame.time(order.created_at),
        expires_at: frame.time(order.expires_at),
        waiting_cancel: pending && dossier.cancel_requested.is_some(),
        may_cancel: pending && viewer.may(Permission::CancelOrders),
        may_simulate: pending && sandbox && viewer.may(Permission::Simulate),
        urls: urls(&order.terms.additional_info),
        attempts: dossier.attempts.iter().map(|one| attempt(&frame, one)).collect(),
        story,
        frame,
    };
    Ok(respond(StatusCode::OK, &page, &headers))
}

/// POST /console/orders/{reference}/cancel
pub(super) async fn cancel(
    State(app): State<App>,
    viewer: Viewer,
    Id(reference): Id,
    _form: Form,
) -> Result<Response, Refusal> {
    viewer.needs(Permission::CancelOrders)?;
    let dossier = find(&app, &viewer, &reference).await?;
    let reason = if viewer.is_operator() { CancelReason::Operator } else { CancelReason::Partner };
    let reference = &dossier.order.reference_number;
    let what = match orders::cancel(&app, reference, reason, &viewer.author()).await? {
        Cancelling::Settled(Status::Cancelled) => "cancelled",
        Cancelling::Settled(_) => "settled",
        Cancelling::Waits => "cancel_waits",
    };
    Ok(done(&format!("/console/orders/{}", reference.as_str()), what))
}

/// POST /console/orders/{reference}/simulate: what a payer, a rail or time would do.
pub(super) async fn simulate(
    State(app): State<App>,
    viewer: Viewer,
    Id(reference): Id,
    form: Form,
) -> Result<Response, Refusal> {
    viewer.needs(Permission::Simulate)?;
    if app.environment == Environment::Production {
        return Err(Refusal::NotFound);
    }
    let dossier = find(&app, &viewer, &reference).await?;
    let at = app.clock.now();
    let (by, outcome) = (viewer.author(), form.value("outcome"));
    let request_id = viewer.exchange.request_id.clone();
    let simulate = Outcome::parse(outcome).ok_or(Refusal::BadForm)?;
    // First who did it: what comes of it is told by others.
    app.store.note(at, &by, "order.simulate", &reference, outcome).await?;
    act(&app, dossier.order, simulate, request_id).await?;
    Ok(done(&format!("/console/orders/{reference}"), "simulated"))
}

/// Foreign and unknown look alike.
async fn find(app: &App, viewer: &Viewer, reference: &str) -> Result<Dossier, Refusal> {
    let reference = ReferenceNumber::parse(reference).map_err(|_| Refusal::NotFound)?;
    let dossier = app.store.dossier(&reference).await?.ok_or(Refusal::NotFound)?;
    if viewer.scope.holds(dossier.order.application) { Ok(dossier) } else { Err(Refusal::NotFound) }
}

fn urls(info: &AdditionalInfo) -> Vec<(&'static str, String)> {
    vec![
        ("webhookUrl", info.webhook_url()),
        ("returnUrl", info.return_url()),
        ("cancelUrl", info.cancel_url()),
    ]
}

fn attempt(frame: &Frame, attempt: &PaymentAttempt) -> AttemptView {
    let instrument = match &attempt.instrument {
        Instrument::Push { phone_masked, .. } => phone_masked.clone(),
        Instrument::Reference(Some(reference)) => {
            format!("{} / {}", reference.entity(), reference.number())
        }
        Instrument::Code(Some(_)) => "QR".to_owned(),
        Instrument::Reference(None) | Instrument::Code(None) => String::new(),
    };
    AttemptView {
        id: attempt.id.as_str().to_owned(),
        method: attempt.instrument.method().code(),
        rail: attempt.rail.clone(),
        state: frame.t.attempt_state(attempt.state),
        reason: attempt.reason.as_ref().map_or(String::new(), |reason| reason.to_text()),
        instrument,
        at: frame.exact_time(attempt.created_at),
        until: frame.time(attempt.deadline),
    }
}

/// Every transition, attempt, delivery and exception, in the order it happened.
async fn story(
    app: &App,
    viewer: &Viewer,
    frame: &Frame,
    dossier: &Dossier,
) -> Result<Vec<StoryLine>, Refusal> {
    let order = &dossier.order;
    let reference = &order.reference_number;
    let t = frame.t;
    let mut story = vec![line(frame, order.created_at, "order", t.story_created.to_owned())];
    // Exceptions are told below, with the way to them.
    let history = app.store.audit_of(reference.as_str()).await?;
    for row in history.into_iter().filter(|row| row.action != "exception.enter") {
        let change = match (&row.before, &row.after) {
            (Some(before), Some(after)) => {
                format!("{} → {}", t.state_word(before), t.state_word(after))
            }
            (None, Some(after)) => t.state_word(after).to_owned(),
            _ => String::new(),
        };
        // A partner need not know who of the service's people it was.
        let by = if viewer.is_operator() || !row.actor.starts_with("operator:") {
            row.actor
        } else {
            t.operator.to_owned()
        };
        let detail = [change, row.cause].into_iter().filter(|part| !part.is_empty());
        story.push(StoryLine {
            detail: detail.collect::<Vec<_>>().join(" · "),
            by,
            ..line(frame, row.at, "order", t.action(&row.action).to_owned())
        });
    }
    let filter = EventFilter { reference_number: Some(reference.clone()), ..Default::default() };
    for event in app.store.events(filter, EVENTS_MAX).await? {
        story.push(StoryLine {
            detail: format!(
                "{} · {}",
                event.status.code(),
                t.event_state(event.state, event.failures)
            ),
            link: format!("/console/webhooks/{}", event.id.as_str()),
            ..line(frame, event.created_at, "event", t.story_event.to_owned())
        });
        for attempt in app.store.deliveries_of(&event.id).await? {
            story.push(delivery(frame, &event, &attempt));
        }
    }
    let filter = ExceptionFilter {
        reference_number: Some(reference.clone()),
        resolved_too: true,
        ..Default::default()
    };
    for exception in app.store.exceptions(filter, EXCEPTIONS_MAX).await? {
        story.push(StoryLine {
            detail: format!(
                "{} · {}",
                t.exception_kind(exception.kind),
                frame.centimos(exception.amount.get())
            ),
            by: format!("rail:{}", exception.rail),
            link: "/console/exceptions".to_owned(),
            ..line(frame, exception.created_at, "exception", t.story_exception.to_owned())
        });
    }
    story.sort_by_key(|line| line.moment);
    Ok(story)
}

fn delivery(frame: &Frame, event: &EventRecord, attempt: &DeliveryRecord) -> StoryLine {
    let kind = if attempt.is_taken() { "delivered" } else { "failed" };
    StoryLine {
        detail: format!("{} · {} ms", attempt.told(), attempt.latency_ms),
        link: format!("/console/webhooks/{}", event.id.as_str()),
        ..line(frame, attempt.at, kind, format!("{} {}", frame.t.story_delivery, attempt.number))
    }
}

fn line(frame: &Frame, at: Timestamp, kind: &'static str, what: String) -> StoryLine {
    StoryLine {
        moment: at,
        at: frame.exact_time(at),
        kind,
        what,
        detail: String::new(),
        by: String::new(),
        link: String::new(),
    }
}
