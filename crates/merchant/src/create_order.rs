//! POST /api/svc/create-order (spec 4.6 A): called by the page before the popup.

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use svc_client::{Error, NewOrder, Urls};

use crate::Shop;
use crate::body::read;
use crate::catalogue::product;
use crate::reply::{answer, refuse, unavailable};
use crate::store::StoreError;
use crate::texts::{language, named_language};

const CLIENT_ID_CHARS_MAX: usize = 128;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CreateOrderRequest {
    items: Vec<ItemRequest>,
    client_id: Option<Value>,
}

#[derive(Deserialize)]
struct ItemRequest {
    id: String,
    quantity: i64,
}

const ITEMS_MAX: usize = 50;
const QUANTITY_MAX: i64 = 99;

pub(crate) async fn create_order(
    State(shop): State<Shop>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let query = query.unwrap_or_default();
    let (cart, client_id) = match parse(&query, &headers, body).await {
        Ok(asked) => asked,
        Err(refused) => return refused,
    };
    let id = format!("order_{}", new_uuid());
    match shop.store.insert(&id, cart.total, &cart.items, shop.now_ms()) {
        Ok(()) => {}
        Err(StoreError::SoldOut(product)) => {
            return refuse(StatusCode::CONFLICT, "sold_out", &format!("{product} is sold out."));
        }
        Err(fault) => return unavailable(&fault),
    }
    let order = NewOrder {
        external_transaction_id: id.clone(),
        client_id,
        name: cart.label,
        amount: cart.total,
        quantity: 1,
        urls: urls(&public_url(&shop, &headers), &query),
    };
    let reference = match shop.client.create_payment_order(&order).await {
        Ok(reference) => reference,
        Err(fault) => return not_taken(&shop, &id, &fault),
    };
    if let Err(fault) = shop.store.set_reference(&id, &reference, shop.now_ms()) {
        return unavailable(&fault);
    }
    let reply = json!({ "referenceNumber": reference, "externalTransactionId": id });
    answer(StatusCode::OK, &reply)
}

/// What is bought, and by whom.
async fn parse(query: &str, headers: &HeaderMap, body: Body) -> Result<(Cart, String), Response> {
    if !is_json(headers) {
        let text = "Send the order as JSON, with Content-Type: application/json.";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", text));
    }
    let raw = read(body).await?;
    let wrong = |text: &str| refuse(StatusCode::UNPROCESSABLE_ENTITY, "invalid_items", text);
    let request: CreateOrderRequest = serde_json::from_slice(&raw)
        .map_err(|_| wrong("Send {\"items\":[{\"id\",\"quantity\"}]}."))?;
    let client_id = payer(request.client_id).ok_or_else(|| {
        let text = "clientId is a text of at most 128 characters, all of which can be seen.";
        refuse(StatusCode::UNPROCESSABLE_ENTITY, "invalid_client_id", text)
    })?;
    let (language, _) = language(query, headers);
    let cart = Cart::of(&request.items, language).map_err(|text| wrong(&text))?;
    Ok((cart, client_id))
}

/// The order is given up only if that is sure: what else came of it, a webhook or the safety net tells.
fn not_taken(shop: &Shop, id: &str, fault: &Error) -> Response {
    tracing::warn!(order = id, %fault, "the service did not take an order");
    let refused = matches!(fault, Error::Refused { .. }) && !fault.is_passing();
    if refused
        && let Err(fault) = shop.store.give_up(id, "the payment service refused", shop.now_ms())
    {
        return unavailable(&fault);
    }
    let text = match fault {
        _ if refused => "The payment service does not take this order. The shop's log says why.",
        Error::Malformed(_) => {
            "The payment service answered something else than it should. The shop's log says what."
        }
        _ => "The payment service cannot be reached. Try again in a moment.",
    };
    refuse(StatusCode::BAD_GATEWAY, "payment_service", text)
}

/// Another site's page may send plain text or a form here without asking, and reserve the stock; JSON it may
/// not.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Who buys, if the service takes the id.
fn payer(given: Option<Value>) -> Option<String> {
    match given {
        None => Some("guest".to_owned()),
        Some(Value::String(id)) if id.trim().is_empty() => Some("guest".to_owned()),
        Some(Value::String(id)) => {
            let fits = id.chars().count() <= CLIENT_ID_CHARS_MAX && !id.contains(is_unseen);
            fits.then_some(id)
        }
        Some(_) => None,
    }
}

/// Control and text-direction characters, and what looks like nothing.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{AD}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{200B}'..='\u{200F}')
        || matches!(c, '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{2800}')
        || matches!(c, '\u{3164}' | '\u{FEFF}' | '\u{FFA0}')
}

/// What is bought, with the shop's own prices.
struct Cart {
    items: Vec<(&'static str, i64)>,
    total: i64,
    label: String,
}

impl Cart {
    fn of(asked: &[ItemRequest], language: usize) -> Result<Self, String> {
        if asked.is_empty() || asked.len() > ITEMS_MAX {
            return Err(format!("An order has 1 to {ITEMS_MAX} items."));
        }
        let mut items: Vec<(&'static str, i64)> = Vec::new();
        let (mut total, mut label) = (0, String::new());
        for item in asked {
            let found = product(&item.id).ok_or_else(|| format!("There is no {:?}.", item.id))?;
            if !(1..=QUANTITY_MAX).contains(&item.quantity) {
                return Err(format!("A quantity is 1 to {QUANTITY_MAX}."));
            }
            if items.iter().any(|(id, _)| *id == found.id) {
                return Err(format!("{} is there twice.", found.id));
            }
            items.push((found.id, item.quantity));
            total += found.price * item.quantity;
            if label.is_empty() {
                label = found.names[language].to_owned();
            }
        }
        if items.len() > 1 {
            label = format!("{label} + {}", items.len() - 1);
        }
        Ok(Self { items, total, label })
    }
}

/// The payer comes back to the language of the page that asks.
fn urls(base: &str, query: &str) -> Urls {
    let lang = named_language(query).map(|lang| format!("?lang={lang}")).unwrap_or_default();
    Urls {
        return_url: format!("{base}/success{lang}"),
        cancel_url: format!("{base}/cancelled{lang}"),
        webhook_url: format!("{base}/api/svc/webhook"),
    }
}

/// How payers reach the shop.
fn public_url(shop: &Shop, headers: &HeaderMap) -> String {
    if let Some(url) = &shop.settings.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    format!("http://{}", host.unwrap_or("127.0.0.1:3000"))
}

#[expect(clippy::disallowed_methods, reason = "the one place of the shop that rolls dice")]
fn new_uuid() -> uuid::Uuid {
    uuid::Uuid::new_v4()
}
