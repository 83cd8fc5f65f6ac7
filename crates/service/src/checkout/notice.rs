//! A page with nothing on it but a sentence, and where it helps a way to ask again.

use askama::Template;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

use super::assets::css_url;
use super::texts::Texts;
use crate::app::Limited;
use crate::http::{ApiError, Language, page_response, protect};

/// Whom it is for.
pub(super) struct Asker<'a> {
    pub headers: &'a HeaderMap,
    pub language: Language,
    /// The page of the order: whatever was asked for, this can be asked for again.
    pub page: String,
}

#[derive(Template)]
#[template(path = "checkout/notice.html")]
struct Notice<'a> {
    lang: &'static str,
    theme: &'static str,
    t: &'static Texts,
    title: &'static str,
    text: &'static str,
    /// Empty where asking again would bring the same.
    again_url: &'a str,
    css_url: String,
}

pub(super) fn not_found(headers: &HeaderMap, language: Language) -> Response {
    let t = Texts::of(language);
    let asker = Asker { headers, language, page: String::new() };
    notice(&asker, StatusCode::NOT_FOUND, t.not_found_title, t.not_found_text)
}

pub(super) fn too_many(asker: &Asker<'_>, limited: Limited) -> Response {
    let t = Texts::of(asker.language);
    let status = StatusCode::TOO_MANY_REQUESTS;
    let mut response = notice(asker, status, t.too_many_title, t.too_many_text);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(limited.retry_after_s));
    response
}

pub(super) fn failed(asker: &Asker<'_>, fault: &ApiError) -> Response {
    let t = Texts::of(asker.language);
    let (status, _) = fault.table();
    tracing::error!(?fault, "a checkout page could not be shown");
    notice(asker, status, t.down, t.unshown_text)
}

fn notice(
    asker: &Asker<'_>,
    status: StatusCode,
    title: &'static str,
    text: &'static str,
) -> Response {
    let page = Notice {
        lang: asker.language.code(),
        theme: "auto",
        t: Texts::of(asker.language),
        title,
        text,
        again_url: &asker.page,
        css_url: css_url(),
    };
    let html = page.render().expect("the template only prints strings");
    let mut response = page_response(status, html, asker.headers);
    protect(response.headers_mut(), None);
    // It says nothing about anybody, and an SDK on any page should be able to tell that from silence.
    let any = HeaderValue::from_static("*");
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    let told = HeaderValue::from_static("x-request-id, retry-after");
    response.headers_mut().insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, told);
    response
}
