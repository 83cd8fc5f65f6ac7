//! Webhooks: every delivery with what was sent and answered, and sending again.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use jiff::SignedDuration;

use super::access::{Form, Id, Viewer};
use super::frame::{Frame, Refusal, Section, done, respond};
use super::links::{Link, PAGE_ROWS};
use crate::app::{App, joined};
use crate::domain::{ApplicationId, EventId, Permission, before};
use crate::store::{EventFilter, EventKind, EventLine, EventRecord, EventState, Scope};
use crate::webhook::signature_headers;

const DESTINATIONS_MAX: usize = 50;
/// Events whose attempts tell how a destination is.
const RECENT_EVENTS: usize = 200;
/// Who recovers a great many is told that it goes on.
const ANSWER_AFTER: Duration = Duration::from_secs(5);

#[derive(Template)]
#[template(path = "console/webhooks.html")]
struct WebhooksPage {
    frame: Frame,
    rows: Vec<EventRow>,
    destinations: Vec<DestinationRow>,
    applications: Vec<(String, String)>,
    application: String,
    state: String,
    may_resend: bool,
    recover_url: String,
    next_url: String,
    first_url: String,
    /// Where fresh rows come from; older pages stay as they are.
    live_url: String,
}

struct EventRow {
    id: String,
    reference: String,
    status: &'static str,
    state: &'static str,
    state_text: &'static str,
    origin: String,
    attempts: i64,
    next_attempt: String,
    at: String,
}

struct DestinationRow {
    origin: String,
    application: String,
    waiting: i64,
    oldest: String,
    next_attempt: String,
    taken: String,
    latency: String,
    healthy: bool,
}

/// GET /console/webhooks
pub(super) async fn webhooks(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let scope = viewer.narrowed(&app);
    let kind = match viewer.asked("state") {
        "failing" => Some(EventKind::Failing),
        word => EventState::from_text(word).map(EventKind::State),
    };
    let before = Some(viewer.asked("before").to_owned()).filter(|cursor| !cursor.is_empty());
    let page = app.store.event_lines(&scope, kind, before.clone(), PAGE_ROWS).await?;
    let frame = Frame::new(&app, &viewer, Section::Webhooks);
    let here = Link::to("/console/webhooks")
        .with("application", viewer.asked("application"))
        .with("state", viewer.asked("state"));
    let page = WebhooksPage {
        rows: page.rows.iter().map(|line| row(&frame, line)).collect(),
        destinations: destinations(&app, &frame, &scope).await?,
        applications: viewer.application_choices(&app),
        application: viewer.asked("application").to_owned(),
        state: viewer.asked("state").to_owned(),
        may_resend: viewer.may(Permission::ResendWebhooks),
        recover_url: Link::to("/console/webhooks/recover")
            .with("application", viewer.asked("application"))
            .text(),
        next_url: page.next.map_or(String::new(), |next| here.clone().with("before", &next).text()),
        first_url: before.as_ref().map_or(String::new(), |_| here.text()),
        live_url: if before.is_none() { here.text() } else { String::new() },
        frame,
    };
    Ok(respond(StatusCode::OK, &page, &headers))
}

fn row(frame: &Frame, line: &EventLine) -> EventRow {
    let waits = line.state == EventState::Queued;
    EventRow {
        id: line.id.as_str().to_owned(),
        reference: line.reference_number.as_str().to_owned(),
        status: line.status.code(),
        state: state_class(line.state, line.failures),
        state_text: frame.t.event_state(line.state, line.failures),
        origin: line.origin.clone(),
        attempts: line.attempts,
        next_attempt: if waits { frame.exact_time(line.next_attempt_at) } else { String::new() },
        at: frame.exact_time(line.created_at),
    }
}

/// How it is coloured.
fn state_class(state: EventState, failures: u32) -> &'static str {
    match state {
        EventState::Queued if failures > 0 => "failing",
        _ => state.as_str(),
    }
}

/// Where events go: how many wait, and how the last ones were taken.
async fn destinations(
    app: &App,
    frame: &Frame,
    scope: &Scope,
) -> Result<Vec<DestinationRow>, Refusal> {
    let waiting = app.store.waiting_destinations(scope, DESTINATIONS_MAX).await?;
    let recent = app.store.recent_deliveries(scope, RECENT_EVENTS).await?;
    let mut places: Vec<(ApplicationId, String)> = Vec::new();
    let known = waiting.iter().map(|one| (one.application, &one.origin));
    for (application, origin) in
        known.chain(recent.iter().map(|one| (one.application, &one.origin)))
    {
        if !places.iter().any(|(a, o)| *a == application && o == origin) {
            places.push((application, origin.clone()));
        }
    }
    let directory = app.directory.known();
    let row = |(application, origin): (ApplicationId, String)| {
        let queue =
            waiting.iter().find(|one| one.application == application && one.origin == origin);
        let tries: Vec<_> = recent
            .iter()
            .filter(|one| one.application == application && one.origin == origin)
            .collect();
        let taken = tries.iter().filter(|one| is_success(one.http_status)).count() as i64;
        let latency: i64 = tries.iter().map(|one| one.latency_ms).sum();
        let last = tries.iter().max_by_key(|one| one.at);
        DestinationRow {
            application: directory
                .application_by_id(application)
                .map_or(String::new(), |one| one.name.clone()),
            waiting: queue.map_or(0, |one| one.waiting),
            oldest: queue.map_or(String::new(), |one| frame.time(one.oldest_at)),
            next_attempt: queue.map_or(String::new(), |one| frame.exact_time(one.next_attempt_at)),
            taken: frame.percent(taken, tries.len() as i64),
            latency: match tries.len() {
                0 => "–".to_owned(),
                count => format!("{}\u{a0}ms", latency / count as i64),
            },
            healthy: last.is_none_or(|one| is_success(one.http_status)),
            origin,
        }
    };
    Ok(places.into_iter().map(row).collect())
}

fn is_success(status: Option<i64>) -> bool {
    status.is_some_and(|status| (200..300).contains(&status))
}

#[derive(Template)]
#[template(path = "console/webhook.html")]
struct WebhookPage {
    frame: Frame,
    id: String,
    reference: String,
    status: &'static str,
    state: &'static str,
    state_text: &'static str,
    url: String,
    body: String,
    headers: Vec<(String, String)>,
    curl: String,
    next_attempt: String,
    at: String,
    may_resend: bool,
    attempts: Vec<AttemptView>,
}

struct AttemptView {
    number: u32,
    at: String,
    answer: String,
    taken: bool,
    latency_ms: i64,
    answer_start: String,
}

/// GET /console/webhooks/{event}
pub(super) async fn webhook(
    State(app): State<App>,
    viewer: Viewer,
    Id(id): Id,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let event = find(&app, &viewer, &id).await?;
    let frame = Frame::new(&app, &viewer, Section::Webhooks);
    // Whoever may not send it again is not given what it takes.
    let may_resend = viewer.may(Permission::ResendWebhooks);
    let signed = if may_resend { signed(&app, &event) } else { Vec::new() };
    let attempts = app.store.deliveries_of(&event.id).await?;
    let queued = event.state == EventState::Queued;
    let body = String::from_utf8_lossy(&event.body).into_owned();
    let page = WebhookPage {
        id: event.id.as_str().to_owned(),
        reference: event.reference_number.as_str().to_owned(),
        status: event.status.code(),
        state: state_class(event.state, event.failures),
        state_text: frame.t.event_state(event.state, event.failures),
        curl: curl(&event.webhook_url, &signed, &body),
        url: event.webhook_url,
        body,
        headers: signed,
        next_attempt: if queued { frame.exact_time(event.next_attempt_at) } else { String::new() },
        at: frame.exact_time(event.created_at),
        may_resend,
        attempts: attempts
            .into_iter()
            .map(|attempt| AttemptView {
                number: attempt.number,
                at: frame.exact_time(attempt.at),
                taken: attempt.is_taken(),
                answer: attempt.told(),
                latency_ms: attempt.latency_ms,
                answer_start: String::from_utf8_lossy(&attempt.answer_start).into_owned(),
            })
            .collect(),
        frame,
    };
    Ok(respond(StatusCode::OK, &page, &headers))
}

/// The headers as they would be sent now; the secret itself is never shown.
fn signed(app: &App, event: &EventRecord) -> Vec<(String, String)> {
    let known = app.directory.known();
    let Some(application) = known.application_by_id(event.application) else { return Vec::new() };
    let now = app.clock.now();
    let headers = signature_headers(app, application, &event.id, &event.body, now);
    let headers = headers.unwrap_or_default();
    let own = headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), value.to_str().unwrap_or_default().to_owned())
    });
    std::iter::once(("content-type".to_owned(), "application/json".to_owned())).chain(own).collect()
}

fn curl(url: &str, headers: &[(String, String)], body: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let mut command = format!("curl -sS -X POST {}", quoted(url));
    for (name, value) in headers {
        command.push_str(&format!(" \\\n  -H {}", quoted(&format!("{name}: {value}"))));
    }
    command.push_str(&format!(" \\\n  --data-binary {}", quoted(body)));
    command
}

/// POST /console/webhooks/{event}/resend
pub(super) async fn resend(
    State(app): State<App>,
    viewer: Viewer,
    Id(id): Id,
    _form: Form,
) -> Result<Response, Refusal> {
    viewer.needs(Permission::ResendWebhooks)?;
    let event = find(&app, &viewer, &id).await?;
    let filter = EventFilter { id: Some(event.id.clone()), ..Default::default() };
    let resent = replay(&app, &viewer, filter, event.id.as_str()).await?;
    let what = if resent == 0 { "not_resent" } else { "resent" };
    Ok(done(&format!("/console/webhooks/{id}"), what))
}

/// POST /console/webhooks/recover: all that was given up or is failing, since a time; of one application, if
/// the page showed one.
pub(super) async fn recover(
    State(app): State<App>,
    viewer: Viewer,
    form: Form,
) -> Result<Response, Refusal> {
    const HOURS_MAX: i64 = 35 * 24;
    viewer.needs(Permission::ResendWebhooks)?;
    let hours: i64 = form.value("hours").parse().map_err(|_| Refusal::BadForm)?;
    if !(1..=HOURS_MAX).contains(&hours) {
        return Err(Refusal::BadForm);
    }
    let since = before(app.clock.now(), SignedDuration::from_hours(hours));
    let application = viewer.asked("application");
    let applications = match &viewer.scope {
        // A name that is nobody's does not mean everybody.
        _ if !application.is_empty() => {
            vec![Some(viewer.application(&app).ok_or(Refusal::NotFound)?)]
        }
        Scope::Everything => vec![None],
        Scope::Applications(own) => own.iter().copied().map(Some).collect(),
    };
    let page = Link::to("/console/webhooks").with("application", application).text();
    let Ok(turn) = Arc::clone(&app.recovering).try_acquire_owned() else {
        return Ok(done(&page, "recovery_waits"));
    };
    // On its own: with a million of them it outlives the request.
    let recovering = tokio::spawn(async move {
        let _turn = turn;
        for application in applications {
            // Those that wait first: what was given up joins them.
            for state in [EventState::Queued, EventState::Exhausted] {
                let filter = EventFilter {
                    application,
                    state: Some(state),
                    failed: true,
                    since: Some(since),
                    ..Default::default()
                };
                let subject = format!("{} since {since}", state.as_str());
                replay(&app, &viewer, filter, &subject).await.inspect_err(|fault| {
                    tracing::error!(?fault, "recovering webhooks broke off");
                })?;
            }
        }
        Ok(())
    });
    match tokio::time::timeout(ANSWER_AFTER, recovering).await {
        Ok(ended) => joined(ended)?.map(|()| done(&page, "recovered")),
        Err(_) => Ok(done(&page, "recovering")),
    }
}

async fn replay(
    app: &App,
    viewer: &Viewer,
    filter: EventFilter,
    subject: &str,
) -> Result<u64, Refusal> {
    let (at, by) = (app.clock.now(), viewer.author());
    Ok(app.store.replay(filter, at, by, subject).await?)
}

/// Foreign and unknown look alike.
pub(super) async fn find(app: &App, viewer: &Viewer, id: &str) -> Result<EventRecord, Refusal> {
    let id = EventId::parse(id).ok_or(Refusal::NotFound)?;
    let filter = EventFilter { id: Some(id), ..Default::default() };
    let event = app.store.events(filter, 1).await?.pop().ok_or(Refusal::NotFound)?;
    if viewer.scope.holds(event.application) { Ok(event) } else { Err(Refusal::NotFound) }
}
