//! Coming in: with a password, by an invitation, or by the link of a demo; and going out.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use secrecy::SecretString;

use super::access::{Form, Id, Viewer, closed_session, open_session};
use super::frame::{Bare, Refusal, language, own_path, respond};
use super::{password, totp};
use crate::app::App;
use crate::domain::{Actor, Author, Environment, Login};
use crate::http::{Exchange, Pairs};
use crate::store::{InvitationKind, Person};

#[derive(Template)]
#[template(path = "console/sign_in.html")]
struct SignInPage {
    bare: Bare,
    next: String,
    login: String,
    fault: &'static str,
}

#[derive(Template)]
#[template(path = "console/welcome.html")]
struct WelcomePage {
    bare: Bare,
    login: String,
    fault: &'static str,
    chars_min: usize,
}

/// GET /console/sign-in
pub(super) async fn sign_in(
    State(app): State<App>,
    headers: HeaderMap,
    uri: axum::http::Uri,
) -> Response {
    let next = own_path(Pairs::of_query(uri.query()).value("next"));
    page(&app, &headers, next, "", "")
}

/// POST /console/sign-in
pub(super) async fn check(
    State(app): State<App>,
    exchange: Exchange,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Refusal> {
    let next = own_path(form.value("next"));
    let given = form.value("login");
    let login = Login::parse(given).ok();
    // However it is spelled, it is the same login; what can be none shares one count.
    let counted = login.as_ref().map_or("", Login::as_str);
    if app.limits.sign_in(counted, exchange.from).is_err() {
        return Ok(page(&app, &headers, next, given, "throttled"));
    }
    let person = match &login {
        Some(login) => app.store.person_by_login(login).await?,
        None => None,
    };
    match verified(&app, person, &form).await? {
        Some(person) => {
            let entered = enter(&app, &person, &exchange, next.clone()).await?;
            // Whoever changed the password while this one was checked has ended all sessions but this.
            let now = app.store.person(person.id).await?;
            let proof = |of: &Person| {
                (
                    of.password_hash.clone(),
                    of.totp_sealed.as_deref().map(|sealed| totp::seed(&app, sealed)),
                )
            };
            match now.is_some_and(|now| proof(&now) == proof(&person)) {
                true => Ok(entered),
                false => Ok(page(&app, &headers, next, given, "wrong")),
            }
        }
        None => {
            tracing::warn!(request_id = exchange.request_id, "a sign-in was refused");
            note_refusal(&app, given, &exchange).await?;
            Ok(page(&app, &headers, next, given, "wrong"))
        }
    }
}

/// The right password and, where they are on, the right code. All that is wrong looks alike.
async fn verified(
    app: &App,
    person: Option<Person>,
    form: &Form,
) -> Result<Option<Person>, Refusal> {
    let person = person.filter(|person| person.disabled_at.is_none());
    let hash = person.as_ref().and_then(|person| person.password_hash.clone());
    let given = SecretString::from(
        form.value("password").chars().take(password::CHARS_MAX).collect::<String>(),
    );
    let right = password::matches(hash, given).await;
    let Some(person) = person.filter(|_| right) else { return Ok(None) };
    let Some(sealed) = &person.totp_sealed else { return Ok(Some(person)) };
    if app.limits.code(person.id).is_err() {
        return Ok(None);
    }
    let seed = totp::seed(app, sealed)
        .ok_or_else(|| Refusal::Broken("a seed of codes cannot be opened".into()))?;
    let step = totp::step_of(&seed, form.value("code"), app.clock.machine_now());
    match step {
        Some(step) if app.store.use_totp_step(person.id, step).await? => Ok(Some(person)),
        _ => Ok(None),
    }
}

async fn note_refusal(app: &App, given: &str, exchange: &Exchange) -> Result<(), Refusal> {
    // A password typed into the wrong field must not be kept: only what can be a login is.
    let subject = Login::parse(given).map_or("?".to_owned(), |login| login.as_str().to_owned());
    let by = Author { actor: Actor::Service, request_id: exchange.request_id.clone() };
    let at = app.clock.now();
    Ok(app.store.note(at, &by, "person.sign_in_refused", &subject, "").await?)
}

async fn enter(
    app: &App,
    person: &Person,
    exchange: &Exchange,
    next: String,
) -> Result<Response, Refusal> {
    let cookie = open_session(app, person, &exchange.request_id).await?;
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(&next)).into_response())
}

/// POST /console/sign-out
pub(super) async fn sign_out(
    State(app): State<App>,
    viewer: Viewer,
    _form: Form,
) -> Result<Response, Refusal> {
    let (login, by) = (&viewer.person.login, viewer.author());
    app.store.end_session(viewer.token_hash.clone(), login, app.clock.now(), &by).await?;
    let gone = [(header::SET_COOKIE, closed_session())];
    Ok((gone, Redirect::to("/console/sign-in")).into_response())
}

/// GET /console/welcome/{token}
pub(super) async fn invitation(
    State(app): State<App>,
    Id(token): Id,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let person = invited(&app, &token, InvitationKind::Welcome).await?;
    Ok(welcome_page(&app, &headers, &person, ""))
}

/// POST /console/welcome/{token}
pub(super) async fn welcome(
    State(app): State<App>,
    Id(token): Id,
    exchange: Exchange,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Refusal> {
    let person = invited(&app, &token, InvitationKind::Welcome).await?;
    if let Some(fault) = password::fault(form.value("password"), form.value("again")) {
        return Ok(welcome_page(&app, &headers, &person, fault));
    }
    let hash = password::hash(&app, form.value("password").to_owned().into()).await?;
    let by = Author { actor: person.actor(), request_id: exchange.request_id.clone() };
    let used = app.keys.hash(&token);
    let (now, at) = (app.clock.machine_now(), app.clock.now());
    if !app.store.welcome(used, &person, hash, now, at, &by).await? {
        return Err(Refusal::NotFound);
    }
    if person.totp_sealed.is_some() {
        // The link stands for the password, not for the phone.
        return Ok(Redirect::to("/console/sign-in").into_response());
    }
    enter(&app, &person, &exchange, "/console".to_owned()).await
}

/// GET /console/enter/{token}: the link that `svc demo` prints.
pub(super) async fn entry(
    State(app): State<App>,
    Id(token): Id,
    exchange: Exchange,
) -> Result<Response, Refusal> {
    if app.environment == Environment::Production {
        return Err(Refusal::NotFound);
    }
    let person = invited(&app, &token, InvitationKind::Entry).await?;
    enter(&app, &person, &exchange, "/console".to_owned()).await
}

async fn invited(app: &App, token: &str, kind: InvitationKind) -> Result<Person, Refusal> {
    let now = app.clock.machine_now();
    app.store.invited(app.keys.hash(token), kind, now).await?.ok_or(Refusal::NotFound)
}

fn page(
    app: &App,
    headers: &HeaderMap,
    next: String,
    login: &str,
    fault: &'static str,
) -> Response {
    let login: String = login.chars().take(Login::CHARS_MAX).collect();
    let bare = Bare::new(app, language(headers));
    let status = match fault {
        "" => StatusCode::OK,
        "throttled" => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::UNAUTHORIZED,
    };
    respond(status, &SignInPage { bare, next, login, fault }, headers)
}

fn welcome_page(app: &App, headers: &HeaderMap, person: &Person, fault: &'static str) -> Response {
    let page = WelcomePage {
        bare: Bare::new(app, language(headers)),
        login: person.login.clone(),
        fault,
        chars_min: password::CHARS_MIN,
    };
    respond(StatusCode::OK, &page, headers)
}
