//! A mock ATM and a mock wallet, for people who want to pay by hand.

use askama::Template;
use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;

use super::texts::Texts;
use crate::app::App;
use crate::checkout::css_url;
use crate::domain::{
    About, AttemptId, AttemptState, BankReference, Centimos, Dossier, Notice, PaymentAttempt,
    Reason, Status, Word,
};
use crate::http::{
    ApiError, Exchange, Pairs, Path, is_foreign, json, money, page_response, protect, read_form,
};
use crate::orders;
use crate::rails::{Simulator, payment_id};

pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/sandbox/atm", get(atm).post(pay_at_atm))
        .route("/sandbox/wallet", get(find_code))
        .route("/sandbox/wallet/{attempt}", get(wallet).post(decide))
}

#[derive(Template)]
#[template(path = "sandbox/atm.html")]
struct AtmPage<'a> {
    lang: &'static str,
    t: &'static Texts,
    css_url: String,
    entity: &'a str,
    reference: &'a str,
    amount: &'a str,
    result: &'static str,
}

#[derive(Template)]
#[template(path = "sandbox/wallet.html")]
struct WalletPage<'a> {
    lang: &'static str,
    t: &'static Texts,
    css_url: String,
    merchant: &'a str,
    label: &'a str,
    amount: String,
    /// Where a decision goes: the code may have been typed, which is another address.
    action: String,
    /// It can be approved or refused; else `result` says what became of it.
    open: bool,
    result: &'static str,
}

/// What the machine says to whoever types a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum AtmResult {
    Paid,
    InvalidReference,
    Expired,
    WrongAmount,
    AlreadyPaid,
}

#[derive(Serialize)]
struct AtmReply {
    result: AtmResult,
}

async fn atm(RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let query = Pairs::of_query(query.as_deref());
    let (entity, reference) = (query.value("entity"), query.value("reference"));
    atm_page(&query, &headers, [entity, reference, query.value("amount")], None)
}

/// POST /sandbox/atm: as a form, or for programs that accept JSON.
async fn pay_at_atm(
    State(app): State<App>,
    exchange: Exchange,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = form(&app, &headers, body).await?;
    let typed = ["entity", "reference", "amount"].map(|name| form.value(name));
    let result = pay_reference(&app, typed, &exchange.request_id).await?;
    let wants = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if wants.is_some_and(|kinds| kinds.contains("application/json")) {
        return Ok(json(&AtmReply { result }));
    }
    let query = Pairs::of_query(query.as_deref());
    Ok(atm_page(&query, &headers, typed, Some(result)))
}

/// Checks what a real machine checks, before any money moves.
async fn pay_reference(
    app: &App,
    [entity, reference, amount]: [&str; 3],
    request_id: &str,
) -> Result<AtmResult, ApiError> {
    let digits: String = reference.chars().filter(|c| !c.is_whitespace()).collect();
    let Ok(bank) = BankReference::parse(entity.trim(), &digits) else {
        return Ok(AtmResult::InvalidReference);
    };
    let Some((dossier, attempt)) = find(app, &About::Reference(bank)).await? else {
        return Ok(AtmResult::InvalidReference);
    };
    if dossier.order.status == Status::Confirmed || attempt.state == AttemptState::Accepted {
        return Ok(AtmResult::AlreadyPaid);
    }
    if attempt.state != AttemptState::Issued || app.clock.now() >= attempt.deadline {
        return Ok(AtmResult::Expired);
    }
    let owed = Centimos::from(dossier.order.terms.amount);
    if Centimos::typed(amount) != Some(owed) {
        return Ok(AtmResult::WrongAmount);
    }
    settle(app, &attempt, Word::Paid(owed), request_id).await?;
    Ok(AtmResult::Paid)
}

/// GET /sandbox/wallet?code=ABCD-EFGH: whoever cannot scan, types.
async fn find_code(
    State(app): State<App>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let query = Pairs::of_query(query.as_deref());
    let code = query.value("code").trim().to_uppercase();
    let found = app.store.attempt_by_code(&code).await?;
    let Some(attempt) = found else {
        return Ok(unknown_code(&query, &headers, !code.is_empty()));
    };
    show_wallet(&app, &query, &headers, &attempt).await
}

async fn wallet(
    State(app): State<App>,
    Path(attempt): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let query = Pairs::of_query(query.as_deref());
    match AttemptId::parse(&attempt) {
        Some(attempt) => show_wallet(&app, &query, &headers, &attempt).await,
        None => Ok(unknown_code(&query, &headers, true)),
    }
}

/// POST /sandbox/wallet/{attempt}: `decision` is `approve` or `refuse`; whoever ignores it goes away.
async fn decide(
    State(app): State<App>,
    Path(attempt): Path<String>,
    exchange: Exchange,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let form = form(&app, &headers, body).await?;
    let query = Pairs::of_query(query.as_deref());
    let Some(id) = AttemptId::parse(&attempt) else {
        return Ok(unknown_code(&query, &headers, true));
    };
    if let Some((dossier, attempt)) = find(&app, &About::Attempt(id.clone())).await?
        && is_open(&app, &attempt)
    {
        let word = match form.value("decision") {
            "approve" => Some(Word::Paid(dossier.order.terms.amount.into())),
            "refuse" => Some(Word::Refused(Reason::PayerRefused)),
            _ => None,
        };
        if let Some(word) = word {
            settle(&app, &attempt, word, &exchange.request_id).await?;
        }
    }
    show_wallet(&app, &query, &headers, &id).await
}

async fn settle(
    app: &App,
    attempt: &PaymentAttempt,
    word: Word,
    request_id: &str,
) -> Result<(), ApiError> {
    let notice = Notice::of(attempt, payment_id(&attempt.id), word, "by hand");
    orders::settle(app, notice, request_id).await?;
    Ok(())
}

async fn find(app: &App, about: &About) -> Result<Option<(Dossier, PaymentAttempt)>, ApiError> {
    let Some((reference, Some(id))) = app.store.order_of(about).await? else { return Ok(None) };
    let Some(dossier) = app.store.dossier(&reference).await? else { return Ok(None) };
    let attempt = dossier.attempt(&id).filter(|attempt| attempt.rail == Simulator::NAME).cloned();
    Ok(attempt.map(|attempt| (dossier, attempt)))
}

fn is_open(app: &App, attempt: &PaymentAttempt) -> bool {
    attempt.state == AttemptState::Issued && app.clock.now() < attempt.deadline
}

async fn show_wallet(
    app: &App,
    query: &Pairs,
    headers: &HeaderMap,
    id: &AttemptId,
) -> Result<Response, ApiError> {
    let Some((dossier, attempt)) = find(app, &About::Attempt(id.clone())).await? else {
        return Ok(unknown_code(query, headers, true));
    };
    let known = app.directory.known();
    let merchant = known.application_by_id(dossier.order.application);
    let t = Texts::of(query.language());
    let open = is_open(app, &attempt);
    let result = match attempt.state {
        _ if open => "",
        AttemptState::Accepted => t.paid,
        AttemptState::Rejected => t.refused,
        AttemptState::Unknown => t.unconfirmed,
        _ => t.expired,
    };
    let page = WalletPage {
        lang: query.language().code(),
        t,
        css_url: css_url(),
        merchant: merchant.map_or("", |application| &application.name),
        label: dossier.order.terms.name.as_str(),
        amount: money(dossier.order.terms.amount, query.language()),
        action: format!("/sandbox/wallet/{}?lang={}", id.as_str(), query.language().code()),
        open,
        result,
    };
    Ok(shown(StatusCode::OK, page.render(), headers))
}

/// A form for a code; with a word about the one that was `asked` for.
fn unknown_code(query: &Pairs, headers: &HeaderMap, asked: bool) -> Response {
    let t = Texts::of(query.language());
    let page = WalletPage {
        lang: query.language().code(),
        t,
        css_url: css_url(),
        merchant: "",
        label: "",
        amount: String::new(),
        action: String::new(),
        open: false,
        result: if asked { t.unknown_code } else { "" },
    };
    let status = if asked { StatusCode::NOT_FOUND } else { StatusCode::OK };
    shown(status, page.render(), headers)
}

fn atm_page(
    query: &Pairs,
    headers: &HeaderMap,
    [entity, reference, amount]: [&str; 3],
    result: Option<AtmResult>,
) -> Response {
    let t = Texts::of(query.language());
    let said = match result {
        None => "",
        Some(AtmResult::Paid) => t.paid,
        Some(AtmResult::InvalidReference) => t.invalid_reference,
        Some(AtmResult::Expired) => t.expired_reference,
        Some(AtmResult::WrongAmount) => t.wrong_amount,
        Some(AtmResult::AlreadyPaid) => t.already_paid,
    };
    let page = AtmPage {
        lang: query.language().code(),
        t,
        css_url: css_url(),
        entity: if entity.is_empty() { Simulator::ENTITY } else { entity },
        reference,
        amount,
        result: said,
    };
    shown(StatusCode::OK, page.render(), headers)
}

fn shown(status: StatusCode, html: askama::Result<String>, asked: &HeaderMap) -> Response {
    let html = html.expect("the template only prints strings");
    let mut response = page_response(status, html, asked);
    protect(response.headers_mut(), None);
    let same = HeaderValue::from_static("same-origin");
    response.headers_mut().insert("cross-origin-opener-policy", same);
    response
}

async fn form(app: &App, headers: &HeaderMap, body: Body) -> Result<Pairs, ApiError> {
    if is_foreign(app, headers) {
        return Err(ApiError::ForeignOrigin);
    }
    read_form(headers, body).await
}
