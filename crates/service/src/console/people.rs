//! People who may sign in: of the service, or of one partner. Owners only.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::SignedDuration;
use secrecy::{ExposeSecret, SecretString};

use super::access::{Form, Id, Viewer};
use super::frame::{Frame, Refusal, Section, done, respond};
use crate::app::App;
use crate::domain::{Author, Login, PartnerId, Permission, Role, after};
use crate::http::own_origin;
use crate::store::{InvitationKind, NewInvitation, Person, PersonChange, StoreError};

/// An invitation nobody used in this time is worth nothing.
const INVITATION_LIFE: SignedDuration = SignedDuration::from_hours(72);
/// The link of a demo: as long as a demo may run.
const ENTRY_LIFE: SignedDuration = SignedDuration::from_hours(24 * 30);

/// A person, and the link that lets them in once.
pub struct Invited {
    pub login: String,
    /// The path of the link; it holds the token.
    pub path: SecretString,
}

/// Makes somebody known, and a link with which they choose a password.
pub async fn invite(
    app: &App,
    login: &Login,
    partner: Option<PartnerId>,
    role: Role,
    by: &Author,
) -> Result<Invited, StoreError> {
    let at = app.clock.now();
    if !app.store.create_person(login, partner, role, at, by).await? {
        return Err(StoreError::Taken("a person with this login"));
    }
    link(app, login, &WELCOME, by).await
}

/// A new link for somebody who lost theirs, or their password.
pub async fn invite_again(app: &App, login: &Login, by: &Author) -> Result<Invited, StoreError> {
    let person = app.store.person_by_login(login).await?;
    if person.is_some_and(|person| person.disabled_at.is_some()) {
        let why = format!("{} is disabled: enable them first", login.as_str());
        return Err(StoreError::Refused(why));
    }
    link(app, login, &WELCOME, by).await
}

/// A link that signs somebody in as it is, for the demo of a sandbox.
pub async fn entry(app: &App, login: &Login, by: &Author) -> Result<Invited, StoreError> {
    link(app, login, &ENTRY, by).await
}

/// What a link is for, how long it lasts, and where it leads.
struct LinkTerms {
    kind: InvitationKind,
    life: SignedDuration,
    path: &'static str,
}

const WELCOME: LinkTerms =
    LinkTerms { kind: InvitationKind::Welcome, life: INVITATION_LIFE, path: "/console/welcome/" };
const ENTRY: LinkTerms =
    LinkTerms { kind: InvitationKind::Entry, life: ENTRY_LIFE, path: "/console/enter/" };

async fn link(
    app: &App,
    login: &Login,
    terms: &LinkTerms,
    by: &Author,
) -> Result<Invited, StoreError> {
    let &LinkTerms { kind, life, path } = terms;
    let person = app.store.person_by_login(login).await?.ok_or(StoreError::Unknown("the login"))?;
    let token = URL_SAFE_NO_PAD.encode(app.random.bytes::<32>());
    let expires_at = after(app.clock.machine_now(), life);
    let invitation = NewInvitation { token_hash: app.keys.hash(&token), kind, expires_at };
    app.store.invite(&person, invitation, app.clock.now(), by).await?;
    Ok(Invited { login: person.login, path: format!("{path}{token}").into() })
}

#[derive(Template)]
#[template(path = "console/people.html")]
struct PeoplePage {
    frame: Frame,
    rows: Vec<PersonView>,
    invited: String,
    invited_url: String,
    roles: Vec<(&'static str, &'static str)>,
}

struct PersonView {
    id: i64,
    login: String,
    role: &'static str,
    role_text: &'static str,
    has_password: bool,
    has_totp: bool,
    disabled: bool,
    is_self: bool,
    at: String,
}

/// GET /console/people
pub(super) async fn people(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    viewer.needs(Permission::ManagePeople)?;
    page(&app, &viewer, &headers, None).await
}

async fn page(
    app: &App,
    viewer: &Viewer,
    headers: &HeaderMap,
    invited: Option<Invited>,
) -> Result<Response, Refusal> {
    let frame = Frame::new(app, viewer, Section::People);
    let people = app.store.people(viewer.person.partner).await?;
    let origin = own_origin(app, headers).unwrap_or_default();
    let page = PeoplePage {
        rows: people.into_iter().map(|person| view(viewer, &frame, person)).collect(),
        invited_url: invited
            .as_ref()
            .map_or(String::new(), |one| format!("{origin}{}", one.path.expose_secret())),
        invited: invited.map_or(String::new(), |one| one.login),
        roles: Role::ALL.into_iter().map(|role| (role.as_str(), frame.t.role(role))).collect(),
        frame,
    };
    Ok(respond(StatusCode::OK, &page, headers))
}

fn view(viewer: &Viewer, frame: &Frame, person: Person) -> PersonView {
    PersonView {
        id: person.id,
        role: person.role.as_str(),
        role_text: frame.t.role(person.role),
        has_password: person.password_hash.is_some(),
        has_totp: person.totp_sealed.is_some(),
        disabled: person.disabled_at.is_some(),
        is_self: person.id == viewer.person.id,
        at: frame.time(person.created_at),
        login: person.login,
    }
}

/// POST /console/people
pub(super) async fn add(
    State(app): State<App>,
    viewer: Viewer,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Refusal> {
    viewer.needs(Permission::ManagePeople)?;
    let login = Login::parse(form.value("login")).map_err(|_| Refusal::BadForm)?;
    let role = Role::from_text(form.value("role")).ok_or(Refusal::BadForm)?;
    let invited = invite(&app, &login, viewer.person.partner, role, &viewer.author()).await?;
    page(&app, &viewer, &headers, Some(invited)).await
}

/// POST /console/people/{id}
pub(super) async fn change(
    State(app): State<App>,
    viewer: Viewer,
    id: Id,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Refusal> {
    viewer.needs(Permission::ManagePeople)?;
    let person = app.store.person(id.number()?).await?.ok_or(Refusal::NotFound)?;
    if person.partner != viewer.person.partner {
        return Err(Refusal::NotFound);
    }
    // Nobody locks themselves out.
    if person.id == viewer.person.id {
        return Err(Refusal::Forbidden);
    }
    let change = match form.value("change") {
        "role" => PersonChange::Role(Role::from_text(form.value("role")).ok_or(Refusal::BadForm)?),
        "disable" => PersonChange::Disable,
        "enable" => PersonChange::Enable,
        "totp_off" => PersonChange::Totp(None),
        "invite" if person.disabled_at.is_some() => {
            return Err(Refusal::Conflict(|t| t.person_disabled));
        }
        "invite" => {
            let login =
                Login::parse(&person.login).map_err(|fault| Refusal::Broken(fault.to_string()))?;
            let invited = invite_again(&app, &login, &viewer.author()).await?;
            return page(&app, &viewer, &headers, Some(invited)).await;
        }
        _ => return Err(Refusal::BadForm),
    };
    app.store.change_person(&person, change, app.clock.now(), &viewer.author()).await?;
    Ok(done("/console/people", "changed"))
}
