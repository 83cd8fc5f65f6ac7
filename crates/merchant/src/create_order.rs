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
use crate::server::public_url;
use crate::store::StoreError;
use crate::texts::named_language;

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
    if !is_json(&headers) {
        let text = "Send the order as JSON, with Content-Type: application/json.";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", text);
    }
    let raw = match read(body).await {
        Ok(raw) => raw,
        Err(refused) => return refused,
    };
    let wrong = |text: &str| refuse(StatusCode::UNPROCESSABLE_ENTITY, "invalid_items", text);
    let Ok(request) = serde_json::from_slice::<CreateOrderRequest>(&raw) else {
        return wrong("Send {\"items\":[{\"id\",\"quantity\"}]}.");
    };
    let Some(client_id) = payer(request.client_id) else {
        let text = "clientId is a text of at most 128 characters, all of which can be seen.";
        return refuse(StatusCode::UNPROCESSABLE_ENTITY, "invalid_client_id", text);
    };
    let cart = match Cart::of(&request.items) {
        Ok(cart) => cart,
        Err(text) => return wrong(&text),
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
        urls: urls(&public_url(&shop, &headers), query.as_deref().unwrap_or_default()),
    };
    let reference = match shop.client.create_payment_order(&order).await {
        Ok(reference) => reference,
        Err(fault) => {
            tracing::warn!(order = id, %fault, "the service did not take an order");
            // Only a refusal is sure. What else came of it, a webhook or the safety net tells.
            let refused = matches!(fault, Error::Refused { .. }) && !fault.is_passing();
            let told = match refused {
                true => shop.store.give_up(&id, "the payment service refused", shop.now_ms()),
                false => Ok(()),
            };
            if let Err(fault) = told {
                return unavailable(&fault);
            }
            let text = match fault {
                _ if refused => {
                    "The payment service does not take this order. The shop's log says why."
                }
                Error::Malformed(_) => {
                    "The payment service answered something else than it should. The shop's log says what."
                }
                _ => "The payment service cannot be reached. Try again in a moment.",
            };
            return refuse(StatusCode::BAD_GATEWAY, "payment_service", text);
        }
    };
    if let Err(fault) = shop.store.set_reference(&id, &reference, shop.now_ms()) {
        return unavailable(&fault);
    }
    let reply = json!({ "referenceNumber": reference, "externalTransactionId": id });
    answer(StatusCode::OK, &reply)
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
    fn of(asked: &[ItemRequest]) -> Result<Self, String> {
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
            label = found.names[0].to_owned();
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

#[expect(clippy::disallowed_methods, reason = "the one place of the shop that rolls dice")]
fn new_uuid() -> uuid::Uuid {
    uuid::Uuid::new_v4()
}
