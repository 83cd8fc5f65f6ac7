//! What browsers are told about our pages, and whose requests are heard.

use axum::http::{HeaderMap, HeaderValue, header};
use url::Url;

use crate::app::App;

/// Everything is our own and nothing is inline. Only the shop the order comes from may frame the
/// page; a window it opens must be able to talk to it, so there is no Cross-Origin-Opener-Policy.
pub(crate) fn protect(headers: &mut HeaderMap, framed_by: Option<&str>) {
    let ancestors = framed_by.unwrap_or("'none'");
    // Old browsers know no `report-to`; new ones that are given both tell a minute later.
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' \
         data:; form-action 'self'; base-uri 'none'; frame-ancestors {ancestors}; report-uri /policy-reports"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Not "no-referrer": with that a browser sends a form of our own page with "Origin: null".
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert(
        "permissions-policy",
        HeaderValue::from_static("camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    );
}

/// Whether a change was asked for by another site's page. Programs that send neither header are no
/// browsers, and have no payer to be tricked.
pub(crate) fn is_foreign(app: &App, headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let fetched_elsewhere =
        text("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    // A page may have been opened at another address of ours than the public one.
    let is_own = |origin: &str| {
        let own = [own_origin(app, headers), asked_origin(app, headers)];
        own.iter().flatten().any(|own| own == origin)
    };
    let origin_elsewhere = text("origin").is_some_and(|origin| !is_own(origin));
    fetched_elsewhere || origin_elsewhere
}

/// How the payer's browser reaches us.
pub(crate) fn own_origin(app: &App, headers: &HeaderMap) -> Option<String> {
    match &app.config.public_url {
        Some(public) => Some(public.origin().ascii_serialization()),
        None => asked_origin(app, headers),
    }
}

/// Where this request was sent to.
fn asked_origin(app: &App, headers: &HeaderMap) -> Option<String> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let scheme = match &app.config.public_url {
        Some(public) => public.scheme(),
        None if app.config.tls.is_some() => "https",
        None => "http",
    };
    Url::parse(&format!("{scheme}://{host}")).ok().map(|url| url.origin().ascii_serialization())
}

/// The origin of one of the merchant's pages.
pub(crate) fn origin_of(url: &str) -> Option<String> {
    let origin = Url::parse(url).ok()?.origin();
    origin.is_tuple().then(|| origin.ascii_serialization())
}
