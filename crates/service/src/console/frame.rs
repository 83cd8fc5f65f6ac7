//! What every page of the console has around it, and the page that says no.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;

use super::access::{Viewer, cookie};
use super::assets;
use super::texts::Texts;
use crate::app::App;
use crate::domain::{Environment, Permission, luanda};
use crate::http::{Exchange, Language, centimos, luanda_time, page_response, protect};
use crate::store::StoreError;

pub(super) const LANGUAGE_COOKIE: &str = "__Host-svc-language";

/// A page for somebody who is not signed in.
pub(super) struct Bare {
    pub lang: &'static str,
    pub t: &'static Texts,
    pub production: bool,
    pub css_url: String,
    pub icon_url: String,
    pub uplot_css_url: String,
}

impl Bare {
    pub(super) fn new(app: &App, language: Language) -> Self {
        Self {
            lang: language.code(),
            t: Texts::of(language),
            production: app.environment == Environment::Production,
            css_url: assets::url("console.css"),
            icon_url: assets::url("console.svg"),
            uplot_css_url: assets::url("uplot.css"),
        }
    }
}

/// The part of the console somebody is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Home,
    Orders,
    Webhooks,
    Exceptions,
    Developers,
    Audit,
    People,
    Account,
}

pub(super) struct MenuItem {
    pub href: &'static str,
    pub label: &'static str,
    pub is_here: bool,
}

/// The sections this person may go to. One's own account has its link beside the name.
fn menu(viewer: &Viewer, here: Section) -> Vec<MenuItem> {
    let t = Texts::of(viewer.language);
    let sections = [
        (Section::Home, "/console", t.nav_home, true),
        (Section::Orders, "/console/orders", t.nav_orders, true),
        (Section::Webhooks, "/console/webhooks", t.nav_webhooks, true),
        (Section::Exceptions, "/console/exceptions", t.nav_exceptions, true),
        (Section::Developers, "/console/developers", t.nav_developers, true),
        (Section::Audit, "/console/audit", t.nav_audit, viewer.is_operator()),
        (Section::People, "/console/people", t.nav_people, viewer.may(Permission::ManagePeople)),
    ];
    sections
        .into_iter()
        .filter(|(.., may)| *may)
        .map(|(section, href, label, _)| MenuItem { href, label, is_here: section == here })
        .collect()
}

/// Navigation, who is signed in, and what just happened.
pub(super) struct Frame {
    pub bare: Bare,
    pub t: &'static Texts,
    pub menu: Vec<MenuItem>,
    pub login: String,
    pub role: &'static str,
    pub partner: String,
    pub operator: bool,
    pub done: &'static str,
    /// What the sandbox's clock shows, for those who may move it.
    pub clock: String,
    /// The page they are on, to come back to.
    pub here: String,
    pub js_url: String,
    pub news: u64,
    language: Language,
}

impl Frame {
    pub(super) fn new(app: &App, viewer: &Viewer, section: Section) -> Self {
        let t = Texts::of(viewer.language);
        let known = app.directory.known();
        let partner = viewer.person.partner.and_then(|id| known.partner_by_id(id).cloned());
        Self {
            bare: Bare::new(app, viewer.language),
            t,
            menu: menu(viewer, section),
            login: viewer.person.login.clone(),
            role: t.role(viewer.person.role),
            partner: partner.map_or(String::new(), |partner| partner.name.clone()),
            operator: viewer.is_operator(),
            done: t.done(viewer.asked("done")),
            clock: match app.environment {
                Environment::Sandbox if viewer.may(Permission::Simulate) => {
                    luanda_time(app.clock.now(), viewer.language)
                }
                _ => String::new(),
            },
            here: viewer.here.split('?').next().unwrap_or_default().to_owned(),
            js_url: assets::url("console.js"),
            news: viewer.news,
            language: viewer.language,
        }
    }

    pub(super) fn time(&self, at: Timestamp) -> String {
        luanda_time(at, self.language)
    }

    /// To the second, where the order of things matters.
    pub(super) fn exact_time(&self, at: Timestamp) -> String {
        format!("{}{}", self.time(at), luanda(at).strftime(":%S"))
    }

    pub(super) fn kwanza(&self, amount: i64) -> String {
        self.centimos(amount.saturating_mul(100))
    }

    pub(super) fn centimos(&self, amount: i64) -> String {
        centimos(amount, self.language)
    }

    /// A share in percent; a dash where there is nothing to share.
    pub(super) fn percent(&self, part: i64, whole: i64) -> String {
        if whole == 0 {
            return "–".to_owned();
        }
        let tenths = part.saturating_mul(1_000) / whole;
        format!("{}\u{a0}%", self.tenths(tenths))
    }

    /// With the reader's decimal mark.
    pub(super) fn tenths(&self, tenths: i64) -> String {
        let mark = if self.language == Language::En { '.' } else { ',' };
        format!("{}{mark}{}", tenths / 10, tenths % 10)
    }
}

/// Why somebody does not get what they asked for.
#[derive(Clone, Debug)]
pub(super) enum Refusal {
    SignIn {
        next: String,
    },
    NotFound,
    Forbidden,
    /// A form that another site's page sent.
    Foreign,
    BadForm,
    /// Nothing was done, for this reason.
    Conflict(fn(&Texts) -> &'static str),
    /// They, or all together, have as many of it as this node gives at once.
    TooMany,
    Unavailable(String),
    Broken(String),
}

impl From<StoreError> for Refusal {
    fn from(fault: StoreError) -> Self {
        match fault {
            StoreError::Unavailable(reason) | StoreError::Broken(reason) => {
                Self::Unavailable(reason)
            }
            StoreError::Unknown(_) => Self::NotFound,
            StoreError::Taken(_) => Self::Conflict(|t| t.taken_already),
            StoreError::Refused(what) | StoreError::Corrupt(what) => Self::Broken(what),
        }
    }
}

impl IntoResponse for Refusal {
    /// `refusals` makes the page, in the reader's language.
    fn into_response(self) -> Response {
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

#[derive(Template)]
#[template(path = "console/refusal.html")]
struct RefusalPage {
    bare: Bare,
    title: &'static str,
    text: String,
    request_id: String,
}

/// Around every route of the console: refusals become pages, and browsers are told to be strict.
pub(super) async fn refusals(State(app): State<App>, request: Request, next: Next) -> Response {
    let headers = request.headers().clone();
    let request_id = request.extensions().get::<Exchange>().map(|e| e.request_id.clone());
    let mut response = next.run(request).await;
    if let Some(refusal) = response.extensions_mut().remove::<Refusal>() {
        response = refused(&app, &refusal, &headers, request_id.unwrap_or_default());
    }
    let sent = response.headers_mut();
    protect(sent, None);
    sent.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    response
}

fn refused(app: &App, refusal: &Refusal, headers: &HeaderMap, request_id: String) -> Response {
    let t = Texts::of(language(headers));
    let (status, title, text) = match refusal {
        Refusal::SignIn { next } => return to_sign_in(headers, next),
        Refusal::NotFound => (StatusCode::NOT_FOUND, t.not_found, t.not_found_text.to_owned()),
        Refusal::Forbidden => (StatusCode::FORBIDDEN, t.forbidden, t.forbidden_text.to_owned()),
        Refusal::Foreign => (StatusCode::FORBIDDEN, t.forbidden, t.foreign_text.to_owned()),
        Refusal::BadForm => {
            (StatusCode::UNPROCESSABLE_ENTITY, t.bad_form, t.bad_form_text.to_owned())
        }
        Refusal::Conflict(why) => (StatusCode::CONFLICT, t.not_done, why(t).to_owned()),
        Refusal::TooMany => (StatusCode::TOO_MANY_REQUESTS, t.too_many, t.too_many_text.to_owned()),
        Refusal::Unavailable(reason) => {
            tracing::error!(request_id, reason, "a page of the console failed");
            (StatusCode::SERVICE_UNAVAILABLE, t.unavailable, t.unavailable_text.to_owned())
        }
        Refusal::Broken(what) => {
            tracing::error!(request_id, what, "a page of the console failed");
            (StatusCode::INTERNAL_SERVER_ERROR, t.unavailable, t.unavailable_text.to_owned())
        }
    };
    let bare = Bare::new(app, language(headers));
    respond(status, &RefusalPage { bare, title, text, request_id }, headers)
}

/// What an open page fetches by itself, a fragment or its stream, cannot be led away: its script is told.
fn to_sign_in(headers: &HeaderMap, next: &str) -> Response {
    let next: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
    let address = format!("/console/sign-in?next={next}");
    let is_stream = headers.get(header::ACCEPT).is_some_and(|accept| accept == "text/event-stream");
    if is_stream || headers.contains_key("hx-request") {
        let mut response = StatusCode::UNAUTHORIZED.into_response();
        let address = HeaderValue::from_static("/console/sign-in");
        response.headers_mut().insert("hx-redirect", address);
        return response;
    }
    Redirect::to(&address).into_response()
}

pub(super) fn respond(status: StatusCode, page: &impl Template, asked: &HeaderMap) -> Response {
    match page.render() {
        Ok(html) => page_response(status, html, asked),
        Err(fault) => Refusal::Unavailable(fault.to_string()).into_response(),
    }
}

/// What they chose, or what their browser says.
pub(super) fn language(headers: &HeaderMap) -> Language {
    let chosen = cookie(headers, LANGUAGE_COOKIE).and_then(|code| Language::from_code(&code));
    chosen.unwrap_or_else(|| Language::of(headers))
}

/// Back to a page that says what was done.
pub(super) fn done(page: &str, what: &str) -> Response {
    let joint = if page.contains('?') { '&' } else { '?' };
    Redirect::to(&format!("{page}{joint}done={what}")).into_response()
}

/// Where the reader was, on this site.
pub(super) fn referer_path(headers: &HeaderMap) -> String {
    let referer = headers.get(header::REFERER).and_then(|value| value.to_str().ok());
    let url = referer.and_then(|text| url::Url::parse(text).ok());
    own_path(url.as_ref().map_or("", |url| &url[url::Position::BeforePath..]))
}

/// Back to a page of the console, never to another site.
pub(super) fn own_path(next: &str) -> String {
    let own =
        (next == "/console" || next.starts_with("/console/") || next.starts_with("/console?"))
            && !next.contains(|c: char| c == '\\' || c.is_control());
    if own { next.to_owned() } else { "/console".to_owned() }
}
