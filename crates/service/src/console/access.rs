//! Who is looking: a cookie becomes a person with a scope. No page of the console is without one.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::SignedDuration;

use super::frame::{Refusal, language, referer_path};
use crate::app::{App, House};
use crate::domain::{ApplicationId, ApplicationUuid, Author, Permission, after, may};
use crate::http::{Exchange, Language, Pairs, Path, own_origin, read_form};
use crate::store::{Application, NewSession, Partner, PartnerState, Person, Scope, StoreError};

/// The prefix binds it to this host, to https and to every path. Browsers take it from localhost too.
const COOKIE: &str = "__Host-svc-console";
const SESSION_LIFE: SignedDuration = SignedDuration::from_hours(12);
/// Left alone for so long, a session ends.
const SESSION_IDLE: SignedDuration = SignedDuration::from_hours(2);
/// How often a session in use is noted.
const SEEN_PERIOD: SignedDuration = SignedDuration::from_mins(5);

/// Somebody who is signed in.
pub(super) struct Viewer {
    pub person: Person,
    pub token_hash: Vec<u8>,
    pub scope: Scope,
    pub language: Language,
    pub exchange: Exchange,
    /// The page they are on, with its query.
    pub here: String,
    pub query: Pairs,
    /// What was known before anything was read: what comes after it is news to their page.
    pub news: u64,
}

impl FromRequestParts<App> for Viewer {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let news = app.news.count().unwrap_or_default();
        let Ok(exchange) = Exchange::from_request_parts(parts, app).await;
        let here = parts.uri.path_and_query().map_or("/console", |target| target.as_str());
        // A deed is not done again by signing in: back to the page it was on.
        let sign_in = || Refusal::SignIn {
            next: match parts.method {
                Method::GET => here.to_owned(),
                _ => referer_path(&parts.headers),
            },
        };
        let token = cookie(&parts.headers, COOKIE).ok_or_else(sign_in)?;
        let token_hash = app.keys.hash(&token);
        let now = app.clock.machine_now();
        let (person, seen_at) =
            app.store.session(token_hash.clone(), now).await?.ok_or_else(sign_in)?;
        if now.duration_since(seen_at) > SESSION_IDLE {
            return Err(sign_in());
        }
        // A page that refreshes itself is not somebody at work.
        let follows =
            parts.headers.get(header::ACCEPT).is_some_and(|kind| kind == "text/event-stream");
        let by_itself = follows || parts.headers.contains_key("hx-request");
        if !by_itself && now.duration_since(seen_at) > SEEN_PERIOD {
            app.store.session_seen(token_hash.clone(), now).await?;
        }
        if let Some(partner) = person.partner {
            let known = app.directory.known();
            let active = |partner: &Arc<Partner>| partner.state == PartnerState::Active;
            if !known.partner_by_id(partner).is_some_and(active) {
                return Err(sign_in());
            }
        }
        Ok(Self {
            scope: scope(app, &person),
            person,
            token_hash,
            language: language(&parts.headers),
            exchange,
            here: here.to_owned(),
            news,
            query: Pairs::of_query(parts.uri.query()),
        })
    }
}

fn scope(app: &App, person: &Person) -> Scope {
    match person.partner {
        None => Scope::Everything,
        Some(partner) => {
            let known = app.directory.known();
            let own = known.applications().filter(|application| application.partner == partner);
            Scope::Applications(own.map(|application| application.id).collect())
        }
    }
}

impl Viewer {
    pub(super) fn is_operator(&self) -> bool {
        self.person.partner.is_none()
    }

    /// Who shares what a node has few of.
    pub(super) fn house(&self) -> House {
        match self.person.partner {
            Some(partner) => House::Merchant(partner),
            None => House::Operator(self.person.id),
        }
    }

    pub(super) fn may(&self, permission: Permission) -> bool {
        may(self.person.role, self.is_operator(), permission)
    }

    pub(super) fn needs(&self, permission: Permission) -> Result<(), Refusal> {
        if self.may(permission) { Ok(()) } else { Err(Refusal::Forbidden) }
    }

    pub(super) fn author(&self) -> Author {
        let request_id = self.exchange.request_id.clone();
        Author { actor: self.person.actor(), request_id }
    }

    pub(super) fn asked(&self, name: &str) -> &str {
        self.query.value(name).trim()
    }

    /// What they see of what they asked to see: one application, if they name one of theirs.
    pub(super) fn narrowed(&self, app: &App) -> Scope {
        match self.application(app) {
            Some(application) => Scope::Applications(vec![application]),
            None => self.scope.clone(),
        }
    }

    /// The one they name, if it is theirs.
    pub(super) fn application(&self, app: &App) -> Option<ApplicationId> {
        let uuid = ApplicationUuid::parse(self.asked("application").to_owned()).ok()?;
        let known = app.directory.known();
        let application = known.application(&uuid)?;
        self.scope.holds(application.id).then_some(application.id)
    }

    /// Theirs, in the order they were made.
    pub(super) fn applications(&self, app: &App) -> Vec<std::sync::Arc<Application>> {
        let known = app.directory.known();
        let mut own: Vec<_> =
            known.applications().filter(|one| self.scope.holds(one.id)).cloned().collect();
        own.sort_by_key(|application| application.id.0);
        own
    }

    /// Theirs, to choose from: id and name.
    pub(super) fn application_choices(&self, app: &App) -> Vec<(String, String)> {
        let own = self.applications(app);
        own.iter().map(|one| (one.uuid.as_str().to_owned(), one.name.clone())).collect()
    }
}

/// The id in the path of a page. What can be no id of ours is not there.
pub(super) struct Id(pub String);

impl FromRequestParts<App> for Id {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let Path(id) =
            Path::<String>::from_request_parts(parts, app).await.map_err(|_| Refusal::NotFound)?;
        if id.chars().any(char::is_control) { Err(Refusal::NotFound) } else { Ok(Self(id)) }
    }
}

impl Id {
    pub(super) fn number(&self) -> Result<i64, Refusal> {
        self.0.parse().map_err(|_| Refusal::NotFound)
    }
}

/// A form that one of our own pages sent: a cookie alone proves nothing.
pub(super) struct Form(Pairs);

impl FromRequest<App> for Form {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refusal> {
        let (parts, body) = request.into_parts();
        if !is_own_form(app, &parts.headers) {
            return Err(Refusal::Foreign);
        }
        read_form(&parts.headers, body).await.map(Self).map_err(|_| Refusal::BadForm)
    }
}

impl Form {
    pub(super) fn value(&self, name: &str) -> &str {
        self.0.value(name)
    }
}

/// Browsers say where a form comes from, in one header or the other; who says nothing is refused.
fn is_own_form(app: &App, headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let site = text("sec-fetch-site");
    let origin = text("origin");
    let own_origin = own_origin(app, headers);
    site.is_none_or(|site| site == "same-origin")
        && origin.is_none_or(|origin| own_origin.as_deref() == Some(origin))
        && (site.is_some() || origin.is_some())
}

/// Signs somebody in: the header that sets their cookie.
pub(super) async fn open_session(
    app: &App,
    person: &Person,
    request_id: &str,
) -> Result<HeaderValue, StoreError> {
    let token = URL_SAFE_NO_PAD.encode(app.random.bytes::<32>());
    let opened_at = app.clock.machine_now();
    let session = NewSession {
        token_hash: app.keys.hash(&token),
        person: person.id,
        opened_at,
        expires_at: after(opened_at, SESSION_LIFE),
    };
    let by = Author { actor: person.actor(), request_id: request_id.to_owned() };
    app.store.open_session(session, &person.login, app.clock.now(), &by).await?;
    let life_s = SESSION_LIFE.as_secs();
    Ok(set_cookie(&format!("{COOKIE}={token}; Max-Age={life_s}; HttpOnly")))
}

pub(super) fn closed_session() -> HeaderValue {
    set_cookie(&format!("{COOKIE}=; Max-Age=0; HttpOnly"))
}

pub(super) fn set_cookie(text: &str) -> HeaderValue {
    let text = format!("{text}; Path=/; Secure; SameSite=Lax");
    HeaderValue::from_str(&text).expect("names and base64 are a header value")
}

pub(super) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|one| one.split_once('='));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}
