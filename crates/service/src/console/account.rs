//! One's own account: the password, and codes from a phone beside it.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::access::{Form, Viewer, open_session};
use super::frame::{Frame, Refusal, Section, done, respond};
use super::{password, totp};
use crate::app::App;
use crate::http::qr;
use crate::store::PersonChange;

#[derive(Template)]
#[template(path = "console/account.html")]
struct AccountPage {
    frame: Frame,
    has_totp: bool,
    fault: &'static str,
    /// A seed that is not in force yet, sealed so that the form can bring it back.
    offered: String,
    spelled: String,
    qr: String,
    chars_min: usize,
}

/// GET /console/account
pub(super) async fn account(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    Ok(page(&app, &viewer, &headers, "", None))
}

/// Who mistyped a code is shown the seed again that their phone has by now.
fn page(
    app: &App,
    viewer: &Viewer,
    headers: &HeaderMap,
    fault: &'static str,
    seed: Option<Vec<u8>>,
) -> Response {
    let seed = seed.unwrap_or_else(|| app.random.bytes::<{ totp::SEED_BYTES }>().to_vec());
    let spelled = totp::spelled(&seed);
    let sealed = app.keys.seal(&STANDARD.encode(seed), app.random.bytes());
    let label: String = form_urlencoded::byte_serialize(viewer.person.login.as_bytes()).collect();
    let address = format!("otpauth://totp/svc:{label}?secret={spelled}&issuer=svc");
    let page = AccountPage {
        frame: Frame::new(app, viewer, Section::Account),
        has_totp: viewer.person.totp_sealed.is_some(),
        fault,
        offered: offer(app, viewer, &STANDARD.encode(sealed)),
        qr: qr(&address),
        spelled,
        chars_min: password::CHARS_MIN,
    };
    let status = match fault {
        "" => StatusCode::OK,
        "throttled" => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    respond(status, &page, headers)
}

/// POST /console/account/password
pub(super) async fn change_password(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Refusal> {
    if let Some(fault) = password::fault(form.value("password"), form.value("again")) {
        return Ok(page(&app, &viewer, &headers, fault, None));
    }
    if let Some(fault) = present_fault(&app, &viewer, &form).await {
        return Ok(page(&app, &viewer, &headers, fault, None));
    }
    let hash = password::hash(&app, form.value("password").to_owned().into()).await?;
    change(&app, &viewer, &headers, PersonChange::Password(hash)).await
}

/// What is wrong with the present password: a page left open is no proof of who sits before it.
async fn present_fault(app: &App, viewer: &Viewer, form: &Form) -> Option<&'static str> {
    if app.limits.sign_in(&viewer.person.login, viewer.exchange.from).is_err() {
        return Some("throttled");
    }
    // Who has none yet came by a link that proves as much.
    let hash = viewer.person.password_hash.clone()?;
    let present = form.value("present").to_owned().into();
    if password::matches(Some(hash), present).await { None } else { Some("wrong") }
}

/// POST /console/account/totp
pub(super) async fn change_totp(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Refusal> {
    let offered = offered(&app, &viewer, form.value("offered"));
    let seed = offered.as_ref().and_then(|sealed| totp::seed(&app, sealed));
    if let Some(fault) = present_fault(&app, &viewer, &form).await {
        return Ok(page(&app, &viewer, &headers, fault, seed));
    }
    if form.value("change") == "off" {
        return change(&app, &viewer, &headers, PersonChange::Totp(None)).await;
    }
    let seed = seed.ok_or(Refusal::BadForm)?;
    let step = totp::step_of(&seed, form.value("code"), app.clock.machine_now());
    let Some(step) = step else {
        return Ok(page(&app, &viewer, &headers, "code", Some(seed)));
    };
    // It proved the phone; whoever looked on cannot sign in with it.
    app.store.use_totp_step(viewer.person.id, step).await?;
    // The offer may be of a master key that is about to go.
    let sealed = app.keys.seal(&STANDARD.encode(&seed), app.random.bytes());
    change(&app, &viewer, &headers, PersonChange::Totp(Some(sealed))).await
}

/// Every session of theirs ends with the change; this browser gets a new one.
async fn change(
    app: &App,
    viewer: &Viewer,
    headers: &HeaderMap,
    change: PersonChange,
) -> Result<Response, Refusal> {
    // Somebody else may have changed the password while this one was checked.
    let (at, by) = (app.clock.now(), viewer.author());
    if !app.store.change_own(&viewer.person, change, at, &by).await? {
        return Ok(page(app, viewer, headers, "wrong", None));
    }
    let cookie = open_session(app, &viewer.person, &viewer.exchange.request_id).await?;
    Ok(([(header::SET_COOKIE, cookie)], done("/console/account", "changed")).into_response())
}

/// A sealed seed that was offered to this person: nobody is shown what is another's.
fn offer(app: &App, viewer: &Viewer, sealed: &str) -> String {
    let proof = app.keys.hash(&offer_name(viewer, sealed));
    format!("{sealed}.{}", STANDARD.encode(proof))
}

fn offered(app: &App, viewer: &Viewer, offer: &str) -> Option<Vec<u8>> {
    let (sealed, proof) = offer.split_once('.')?;
    let proof = STANDARD.decode(proof).ok()?;
    let proven = app.keys.matches(&proof, &offer_name(viewer, sealed));
    STANDARD.decode(sealed).ok().filter(|_| proven)
}

fn offer_name(viewer: &Viewer, sealed: &str) -> String {
    format!("totp offered to {}: {sealed}", viewer.person.id)
}
