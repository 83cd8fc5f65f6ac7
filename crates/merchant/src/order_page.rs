//! The three pages a payment leads to (spec 4.6): what is known of the order, and its story so far.

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::get;
use serde_json::json;
use svc_client::PaymentStatus;

use crate::Shop;
use crate::nowhere::Path;
use crate::pages::{checkout_url, money, shown};
use crate::reply::{answer, refuse, unavailable};
use crate::store::{Happening, MerchantOrder};
use crate::texts::{Texts, language, value};

pub(crate) fn routes() -> Router<Shop> {
    Router::new()
        .route("/success", get(async |s, q, h| order_page(s, q, h, End::Success).await))
        .route("/pending", get(async |s, q, h| order_page(s, q, h, End::Pending).await))
        .route("/cancelled", get(async |s, q, h| order_page(s, q, h, End::Cancelled).await))
        .route("/api/shop/order/{id}", get(story))
}

/// A method whose code is to be approved elsewhere.
const DIRECT: &str = "FPSOLPG";

/// Where the payer's window led, which is not yet how the order ends.
#[derive(Clone, Copy)]
enum End {
    Success,
    Pending,
    Cancelled,
}

#[derive(Template)]
#[template(path = "order.html")]
struct OrderPage<'a> {
    t: &'static Texts,
    title: &'static str,
    text: &'static str,
    order: &'a str,
    amount: String,
    /// What is to be paid, as banks print it.
    slip: Option<Slip>,
    /// Where the payer can go on, while there is something to pay.
    checkout_url: String,
    story: Vec<HappeningView>,
    /// More may happen, so the page listens.
    open: bool,
    paid: bool,
    cancelled: bool,
}

struct Slip {
    entity: String,
    reference: String,
}

impl Slip {
    /// As the address names it (spec 4.6). Anybody can write an address, so nothing but figures is printed, and
    /// only while the order, if one is named, can be paid.
    fn named(query: &str) -> Option<Self> {
        let (entity, reference) = (value(query, "entity"), value(query, "ref"));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let right = entity.len() == 5 && is_number(&entity);
        if !right || !(9..=15).contains(&reference.len()) || !is_number(&reference) {
            return None;
        }
        let groups: Vec<_> = reference.as_bytes().chunks(3).map(String::from_utf8_lossy).collect();
        Some(Self { entity, reference: groups.join(" ") })
    }
}

struct HappeningView {
    what: String,
    text: &'static str,
    detail: String,
    time: String,
}

async fn order_page(
    State(shop): State<Shop>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    end: End,
) -> Response {
    let query = query.unwrap_or_default();
    let (_, t) = language(&query, &headers);
    let id = value(&query, "orderId");
    let (known, story) = match shop.store.story(&id) {
        Ok(found) => found.unzip(),
        Err(fault) => return unavailable(&fault),
    };
    let end = match end {
        // The checkout's own way back also leads here with a reference that is still to be paid.
        End::Success if value(&query, "status") == "PEN" => End::Pending,
        end => end,
    };
    // An address may name no order (spec 4.6), but not one that does not exist.
    if known.is_none() && !id.is_empty() {
        return note(&shop, t, t.unknown, t.unknown_text);
    }
    let is_code = value(&query, "method") == DIRECT;
    let is_payable = is_code || !value(&query, "ref").is_empty();
    // Where money may be on its way, nobody is sent back to pay.
    let can_be_paid = matches!(end, End::Pending) && known.as_ref().is_none_or(is_pending);
    let slip = Slip::named(&query).filter(|_| can_be_paid);
    let to_open = known
        .as_ref()
        .filter(|_| can_be_paid && is_payable)
        .and_then(|order| order.reference_number.as_deref());
    let (title, text) = match to_open {
        Some(_) if is_code => (t.pending, t.approve_text),
        Some(_) => (t.pending, t.pending_text),
        None if slip.is_some() => (t.pending, t.pay_text),
        None => headline(t, known.as_ref(), end),
    };
    let page = OrderPage {
        t,
        title,
        text,
        order: &id,
        amount: known.as_ref().map(|order| money(t, order.amount)).unwrap_or_default(),
        slip,
        checkout_url: to_open.map(|number| checkout_url(&shop, t, number)).unwrap_or_default(),
        story: story.into_iter().flatten().map(|happening| view(t, happening)).collect(),
        paid: known.as_ref().is_some_and(|order| order.status == PaymentStatus::Confirmed),
        cancelled: known.as_ref().is_some_and(|order| order.status == PaymentStatus::Cancelled),
        open: known.is_some_and(|order| !order.is_over()),
    };
    shown(&shop, page.render())
}

/// A page about no order.
pub(crate) fn note(
    shop: &Shop,
    t: &'static Texts,
    title: &'static str,
    text: &'static str,
) -> Response {
    let page = OrderPage {
        t,
        title,
        text,
        order: "",
        amount: String::new(),
        slip: None,
        checkout_url: String::new(),
        story: Vec::new(),
        open: false,
        paid: false,
        cancelled: false,
    };
    shown(shop, page.render())
}

fn is_pending(order: &MerchantOrder) -> bool {
    order.status == PaymentStatus::Pending
}

/// The order itself, once it has ended; until then where the payer came from.
fn headline(
    t: &'static Texts,
    order: Option<&MerchantOrder>,
    end: End,
) -> (&'static str, &'static str) {
    match (order.map(|order| (order.status, &order.held)), end) {
        (Some((PaymentStatus::Confirmed, None)), _) => (t.success, t.paid_text),
        (Some((PaymentStatus::Confirmed, Some(_))), _) => (t.success, t.held_text),
        (Some((PaymentStatus::Cancelled, _)), _) | (_, End::Cancelled) => {
            (t.cancelled, t.cancelled_text)
        }
        (_, End::Success) => (t.success, t.success_text),
        // Money may be on its way.
        (_, End::Pending) => (t.confirming, t.confirming_text),
    }
}

fn view(t: &'static Texts, Happening { at_ms, what, detail }: Happening) -> HappeningView {
    let amount = detail.strip_suffix(" Kz").and_then(|amount| amount.parse().ok());
    let detail = match what.as_str() {
        // Why is for those who run the shop.
        "held" | "failed" => String::new(),
        _ => amount.map_or(detail, |amount| money(t, amount)),
    };
    HappeningView { text: t.happening(&what), what, detail, time: time_in_luanda(at_ms) }
}

/// An hour ahead of UTC, in summer and winter.
fn time_in_luanda(at_ms: i64) -> String {
    let seconds = (at_ms / 1000 + 3600).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// GET /api/shop/order/{id}: the story of an order, for programs.
async fn story(State(shop): State<Shop>, Path(id): Path) -> Response {
    match shop.store.story(&id) {
        Ok(Some((order, story))) => answer(
            StatusCode::OK,
            &json!({ "status": order.status.code(), "held": order.held, "story": story }),
        ),
        Ok(None) => refuse(StatusCode::NOT_FOUND, "order_not_found", "There is no such order."),
        Err(fault) => unavailable(&fault),
    }
}
