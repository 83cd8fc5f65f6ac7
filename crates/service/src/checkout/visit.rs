//! Who looks at which order, and how the merchant wants it shown.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;

use super::notice::{self, Asker};
use crate::app::App;
use crate::domain::{Dossier, PaymentMethod, PublishableKey, ReferenceNumber};
use crate::http::{ApiError, Exchange, Language, Pairs, Path};
use crate::store::Application;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theme {
    Light,
    Dark,
    Auto,
}

impl Theme {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
            Self::Auto => "auto",
        }
    }
}

/// What the merchant's button asked for. Nonsense becomes the default: it comes from an address.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub key: String,
    pub language: Language,
    pub theme: Theme,
    pub methods: Vec<PaymentMethod>,
    pub reference_life_minutes: i64,
    pub show_amount: bool,
    /// Proves to the SDK that a message is from the window it opened.
    pub nonce: String,
    /// The screen the payer went to: a method, `choose` or `phone`.
    pub view: String,
}

/// Minutes a bank reference may live; the first is the default.
const LIFE_DEFAULT: i64 = 1_440;
const LIFE_MAX: i64 = 43_200;
const WORD_CHARS_MAX: usize = 64;

/// A word that a script made up; anything else counts as none.
pub(super) fn plain_word(given: &str) -> Option<&str> {
    let is_plain = (1..=WORD_CHARS_MAX).contains(&given.len())
        && given.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    is_plain.then_some(given)
}

impl Options {
    pub(super) fn parse(query: Option<&str>) -> Self {
        let given = Pairs::of_query(query);
        Self {
            key: given.value("key").to_owned(),
            language: given.language(),
            theme: match given.value("theme") {
                "dark" => Theme::Dark,
                "auto" => Theme::Auto,
                _ => Theme::Light,
            },
            methods: methods(given.value("methods")),
            reference_life_minutes: given
                .value("life")
                .parse()
                .map_or(LIFE_DEFAULT, |minutes: i64| minutes.clamp(1, LIFE_MAX)),
            show_amount: given.value("amount") != "0",
            nonce: plain_word(given.value("nonce")).unwrap_or_default().to_owned(),
            view: given.value("view").to_owned(),
        }
    }

    /// The query that brings a payer back to the same order, shown the same way.
    pub(super) fn query(&self, view: &str) -> String {
        let codes: Vec<&str> = self.methods.iter().map(|method| method.code()).collect();
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("key", &self.key).append_pair("lang", self.language.code());
        query.append_pair("theme", self.theme.as_str()).append_pair("methods", &codes.join(","));
        query.append_pair("life", &self.reference_life_minutes.to_string());
        if !self.show_amount {
            query.append_pair("amount", "0");
        }
        if !self.nonce.is_empty() {
            query.append_pair("nonce", &self.nonce);
        }
        if !view.is_empty() {
            query.append_pair("view", view);
        }
        query.finish()
    }
}

/// Allowed methods, of which the direct one always is (spec 1). None named means all.
fn methods(given: &str) -> Vec<PaymentMethod> {
    let named: Vec<_> = given.split(',').filter_map(PaymentMethod::from_code).collect();
    let allowed = |method: &PaymentMethod| {
        given.is_empty() || *method == PaymentMethod::Direct || named.contains(method)
    };
    PaymentMethod::ALL.into_iter().filter(allowed).collect()
}

/// A look at an order by somebody who has its reference and its merchant's key.
pub(super) struct Visit {
    pub dossier: Dossier,
    pub application: Arc<Application>,
    pub options: Options,
    pub headers: HeaderMap,
    pub exchange: Exchange,
}

impl Visit {
    /// A path of this order, with the merchant's options.
    pub(super) fn at(&self, verb: &str, view: &str) -> String {
        let reference = self.dossier.order.reference_number.as_str();
        format!("/checkout/{reference}{verb}?{}", self.options.query(view))
    }

    pub(super) fn asker(&self) -> Asker<'_> {
        Asker {
            headers: &self.headers,
            language: self.options.language,
            page: self.at("", &self.options.view),
        }
    }
}

impl FromRequestParts<App> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let Path(reference) = Path::<PathReference>::from_request_parts(parts, app)
            .await
            .map_err(|_| notice::not_found(&parts.headers, Language::Pt))?;
        let options = Options::parse(parts.uri.query());
        let Ok(exchange) = Exchange::from_request_parts(parts, app).await;
        let headers = parts.headers.clone();
        match find(app, &reference.reference, &options).await {
            Ok(Some((dossier, application))) => {
                Ok(Self { dossier, application, options, headers, exchange })
            }
            // Who guesses is slowed down; unknown, malformed and foreign look alike.
            Ok(None) => Err(match app.limits.checkout_miss(exchange.from) {
                Ok(()) => notice::not_found(&headers, options.language),
                Err(limited) => notice::too_many(&asker(&parts.uri, &headers, &options), limited),
            }),
            Err(fault) => Err(notice::failed(&asker(&parts.uri, &headers, &options), &fault)),
        }
    }
}

/// Of an order that was not looked at. The path of a form is no page.
fn asker<'a>(uri: &Uri, headers: &'a HeaderMap, options: &Options) -> Asker<'a> {
    let path: Vec<&str> = uri.path().split('/').take(3).collect();
    let page = format!("{}?{}", path.join("/"), options.query(&options.view));
    Asker { headers, language: options.language, page }
}

#[derive(serde::Deserialize)]
struct PathReference {
    reference: String,
}

async fn find(
    app: &App,
    reference: &str,
    options: &Options,
) -> Result<Option<(Dossier, Arc<Application>)>, ApiError> {
    let key =
        PublishableKey::parse(&options.key).filter(|key| key.environment() == app.environment);
    // An unknown reference costs the same look-up as a known one.
    let reference = ReferenceNumber::parse(reference).ok();
    let dossier = match &reference {
        Some(reference) => app.store.dossier(reference).await?,
        None => None,
    };
    let (Some(key), Some(dossier)) = (key, dossier) else { return Ok(None) };
    let application = app.directory.known().application_by_id(dossier.order.application).cloned();
    let own = application.filter(|application| application.uuid == *key.application_uuid());
    Ok(own.map(|application| (dossier, application)))
}
