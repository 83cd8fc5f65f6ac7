//! For whoever integrates: keys, first steps, helpers, and what their program asked.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};

use super::access::{Form, Id, Viewer};
use super::frame::{Frame, Refusal, Section, done, respond};
use super::links::{Link, PAGE_READ, cut};
use crate::app::App;
use crate::credentials::{self, Takeover};
use crate::domain::{ApplicationUuid, Permission, PublishableKey, WebhookHosts};
use crate::store::{Application, LoggedRequest, Partner};

const OVERLAP_HOURS_MAX: i64 = 30 * 24;

#[derive(Template)]
#[template(path = "console/developers.html")]
struct DevelopersPage {
    frame: Frame,
    partners: Vec<PartnerView>,
    may_manage: bool,
    revealed: String,
    revealed_name: &'static str,
    sdk_url: String,
    sample_key: String,
}

struct PartnerView {
    name: String,
    client_id: String,
    last_used: String,
    previous_until: String,
    applications: Vec<ApplicationView>,
}

struct ApplicationView {
    name: String,
    uuid: String,
    key: String,
    previous_until: String,
    /// Empty where webhooks may go to any public host.
    webhook_hosts: String,
    has_order: bool,
    has_visit: bool,
    has_delivery: bool,
}

/// GET /console/developers
pub(super) async fn developers(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    page(&app, &viewer, &headers, None).await
}

async fn page(
    app: &App,
    viewer: &Viewer,
    headers: &HeaderMap,
    revealed: Option<(&'static str, SecretString)>,
) -> Result<Response, Refusal> {
    /// Operators of many partners find the rest by the command line.
    const PARTNERS_MAX: usize = 20;
    let frame = Frame::new(app, viewer, Section::Developers);
    let known = app.directory.known();
    let mut partners: Vec<_> = known
        .partners()
        .filter(|one| viewer.person.partner.is_none_or(|own| one.id == own))
        .cloned()
        .collect();
    partners.sort_by_key(|partner| partner.id.0);
    let mut views = Vec::new();
    for partner in partners.iter().take(PARTNERS_MAX) {
        views.push(partner_view(app, viewer, &frame, partner).await?);
    }
    let sample = views.iter().flat_map(|one| &one.applications).next();
    let name = revealed.as_ref().map_or("", |(name, _)| name);
    let page = DevelopersPage {
        sample_key: sample.map_or("pk_test_…".to_owned(), |one| one.key.clone()),
        sdk_url: "/sdks/v1/svc.min.js".to_owned(),
        partners: views,
        may_manage: viewer.may(Permission::ManageKeys),
        revealed: revealed.map_or(String::new(), |(_, secret)| secret.expose_secret().to_owned()),
        revealed_name: name,
        frame,
    };
    Ok(respond(StatusCode::OK, &page, headers))
}

async fn partner_view(
    app: &App,
    viewer: &Viewer,
    frame: &Frame,
    partner: &Partner,
) -> Result<PartnerView, Refusal> {
    let now = app.clock.now();
    let until = |until: Option<Timestamp>| {
        until.filter(|until| *until > now).map_or(String::new(), |until| frame.time(until))
    };
    let used = app.store.key_used_at(partner.id).await?;
    let mut applications = Vec::new();
    for one in viewer.applications(app).iter().filter(|one| one.partner == partner.id) {
        let [has_order, has_visit, has_delivery] = app.store.first_steps(one.id).await?;
        let key = PublishableKey::new(app.environment, one.uuid.clone());
        applications.push(ApplicationView {
            name: one.name.clone(),
            uuid: one.uuid.as_str().to_owned(),
            key: key.to_string(),
            previous_until: until(one.previous_webhook_secret.as_ref().map(|old| old.until)),
            webhook_hosts: one
                .webhook_hosts
                .as_ref()
                .map_or(String::new(), WebhookHosts::to_string),
            has_order,
            has_visit,
            has_delivery,
        });
    }
    Ok(PartnerView {
        name: partner.name.clone(),
        client_id: partner.client_id.as_str().to_owned(),
        last_used: used.map_or(String::new(), |at| frame.time(at)),
        previous_until: until(partner.previous_secret.as_ref().map(|(_, until)| *until)),
        applications,
    })
}

/// POST /console/partners/{client}/rotate: a new client secret, shown once.
pub(super) async fn rotate_client_secret(
    State(app): State<App>,
    viewer: Viewer,
    Id(client): Id,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Refusal> {
    viewer.needs(Permission::ManageKeys)?;
    let client = own_partner(&app, &viewer, &client)?.client_id.clone();
    let overlap = overlap(&form)?;
    // One old secret is kept: with another rotation the one that is in use would end now.
    let (anyway, by) = (overlap.is_zero(), viewer.author());
    let secret = credentials::rotate_client_secret(&app, &client, overlap, anyway, &by).await?;
    let secret = secret.ok_or(Refusal::Conflict(|t| t.rotating_already))?;
    app.directory.refresh(&app.store).await?;
    page(&app, &viewer, &headers, Some(("SVC_CLIENT_SECRET", secret))).await
}

/// POST /console/applications/{uuid}/rotate: a new webhook secret, shown once.
pub(super) async fn rotate_webhook_secret(
    State(app): State<App>,
    viewer: Viewer,
    Id(uuid): Id,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Refusal> {
    viewer.needs(Permission::ManageKeys)?;
    let application = own_application(&app, &viewer, &uuid)?;
    let overlap = overlap(&form)?;
    // Half of the time to put the new one in place, half to let the old one go.
    let takeover = Takeover { switch_after: overlap / 2, overlap };
    let by = viewer.author();
    let secret = credentials::rotate_webhook_secret(&app, &application.uuid, takeover, &by).await?;
    app.directory.refresh(&app.store).await?;
    page(&app, &viewer, &headers, Some(("SVC_WEBHOOK_SECRET", secret))).await
}

/// POST /console/partners/{client}/revoke: the secret before the present one stops working now.
pub(super) async fn revoke_previous(
    State(app): State<App>,
    viewer: Viewer,
    Id(client): Id,
    _form: Form,
) -> Result<Response, Refusal> {
    viewer.needs(Permission::ManageKeys)?;
    let partner = own_partner(&app, &viewer, &client)?;
    app.store.revoke_previous_secret(&partner.client_id, app.clock.now(), &viewer.author()).await?;
    app.directory.refresh(&app.store).await?;
    Ok(done("/console/developers", "revoked"))
}

fn overlap(form: &Form) -> Result<SignedDuration, Refusal> {
    let hours: i64 = form.value("overlap").parse().map_err(|_| Refusal::BadForm)?;
    if (0..=OVERLAP_HOURS_MAX).contains(&hours) {
        Ok(SignedDuration::from_hours(hours))
    } else {
        Err(Refusal::BadForm)
    }
}

fn own_partner(
    app: &App,
    viewer: &Viewer,
    client: &str,
) -> Result<std::sync::Arc<Partner>, Refusal> {
    let known = app.directory.known();
    let mut partners = known.partners().filter(|one| one.client_id.as_str() == client);
    let own =
        |one: &&std::sync::Arc<Partner>| viewer.person.partner.is_none_or(|own| one.id == own);
    partners.find(own).cloned().ok_or(Refusal::NotFound)
}

fn own_application(
    app: &App,
    viewer: &Viewer,
    uuid: &str,
) -> Result<std::sync::Arc<Application>, Refusal> {
    let uuid = ApplicationUuid::parse(uuid.to_owned()).map_err(|_| Refusal::NotFound)?;
    let known = app.directory.known();
    let found = known.application(&uuid).filter(|one| viewer.scope.holds(one.id));
    found.cloned().ok_or(Refusal::NotFound)
}

#[derive(Template)]
#[template(path = "console/requests.html")]
struct RequestsPage {
    frame: Frame,
    rows: Vec<RequestRow>,
    refused: bool,
    next_url: String,
}

struct RequestRow {
    id: String,
    at: String,
    partner: String,
    call: String,
    status: u16,
    error: String,
    details: String,
    took: String,
    body: String,
}

/// GET /console/requests
pub(super) async fn requests(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let refused = viewer.asked("show") == "refused";
    let before = viewer.asked("before").split_once('.').and_then(|(ms, id)| {
        Some((Timestamp::from_millisecond(ms.parse().ok()?).ok()?, id.to_owned()))
    });
    let partner = viewer.person.partner;
    let mut found = app.store.logged_requests(partner, refused, before, PAGE_READ).await?;
    let next = cut(&mut found, |one| format!("{}.{}", one.at.as_millisecond(), one.request_id));
    let here = Link::to("/console/requests").with("show", if refused { "refused" } else { "" });
    let frame = Frame::new(&app, &viewer, Section::Developers);
    let page = RequestsPage {
        rows: found.into_iter().map(|one| request_row(&app, &frame, one)).collect(),
        refused,
        next_url: next.map_or(String::new(), |next| here.with("before", &next).text()),
        frame,
    };
    Ok(respond(StatusCode::OK, &page, &headers))
}

/// GET /console/requests/{id}
pub(super) async fn request(
    State(app): State<App>,
    viewer: Viewer,
    Id(id): Id,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let found = app.store.logged_request(viewer.person.partner, &id).await?;
    let found = found.ok_or(Refusal::NotFound)?;
    let frame = Frame::new(&app, &viewer, Section::Developers);
    let rows = vec![request_row(&app, &frame, found)];
    let page = RequestsPage { rows, refused: false, next_url: String::new(), frame };
    Ok(respond(StatusCode::OK, &page, &headers))
}

fn request_row(app: &App, frame: &Frame, one: LoggedRequest) -> RequestRow {
    let known = app.directory.known();
    let partner = one.partner.and_then(|id| known.partner_by_id(id));
    RequestRow {
        id: one.request_id,
        at: frame.exact_time(one.at),
        partner: partner.map_or(String::new(), |partner| partner.name.clone()),
        call: format!("{} {}", one.method, one.path),
        status: one.status,
        error: one.error.unwrap_or_default(),
        details: one.details.unwrap_or_default(),
        took: format!("{}\u{a0}ms", frame.tenths(one.took_us / 100)),
        body: one.body,
    }
}
