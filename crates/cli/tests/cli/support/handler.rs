//! A merchant's backend on a real socket, sound but for one thing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::hmac;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::support::receiver::{Received, Receiver};

pub(crate) const SECRET: &str = "whsec_c3ZjLWRvY3MtZXhhbXBsZS1rZXktMzItYnl0ZXMhISE=";

/// What the handler does at each step; the sound one is changed in one place.
#[derive(Clone, Copy)]
pub(crate) struct Handler {
    /// Everything is answered so.
    pub(crate) instead: Option<u16>,
    pub(crate) secret: fn() -> Vec<u8>,
    /// What is hashed.
    pub(crate) bytes: fn(&[u8]) -> Vec<u8>,
    /// Whether the header fits the digest.
    pub(crate) verify: fn(&str, &str) -> bool,
    /// Checks the signature of Standard Webhooks instead, which will do.
    pub(crate) standard: bool,
    pub(crate) refused: u16,
    pub(crate) parses_first: bool,
    pub(crate) acts_first: bool,
    pub(crate) unreadable: u16,
    pub(crate) looks_at_event: bool,
    pub(crate) unknown: u16,
    pub(crate) makes_orders_up: bool,
    /// The answer for an order that has ended.
    pub(crate) settled: u16,
    pub(crate) apply: fn(&mut Order, &str),
    pub(crate) holds_other_amounts: bool,
    pub(crate) locks: bool,
    pub(crate) works_before_it_answers: bool,
}

#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) status: String,
    pub(crate) fulfilments: u64,
}

/// What every order of this shop costs.
const AMOUNT: i64 = 7;

type Orders = Mutex<HashMap<String, Order>>;

impl Handler {
    pub(crate) fn sound() -> Self {
        Self {
            instead: None,
            secret: || SECRET.as_bytes().to_vec(),
            bytes: <[u8]>::to_vec,
            verify: |given, expected| given == expected,
            standard: false,
            refused: 401,
            parses_first: false,
            acts_first: false,
            unreadable: 422,
            looks_at_event: true,
            unknown: 200,
            makes_orders_up: false,
            settled: 200,
            apply: settle,
            holds_other_amounts: true,
            locks: true,
            works_before_it_answers: false,
        }
    }

    fn webhook(self, orders: &Orders, received: &Received) -> u16 {
        if let Some(status) = self.instead {
            return status;
        }
        let body: Option<Value> = serde_json::from_slice(&received.body).ok();
        if self.parses_first && body.is_none() {
            return 500;
        }
        if let Some(body) =
            body.as_ref().filter(|body| body["event"] == "payment" && self.acts_first)
        {
            self.act(orders, body);
        }
        if !self.is_genuine(received) {
            return self.refused;
        }
        match body {
            None => self.unreadable,
            Some(body) if self.looks_at_event && body["event"] != "payment" => 200,
            Some(body) => self.act(orders, &body),
        }
    }

    fn is_genuine(self, received: &Received) -> bool {
        if self.standard {
            return received.header("webhook-signature") == standard_signature(received);
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, &(self.secret)());
        let digest = hmac::sign(&key, &(self.bytes)(&received.body));
        let expected: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        (self.verify)(received.header("x-svc-content-token"), &expected)
    }

    fn act(self, orders: &Orders, body: &Value) -> u16 {
        let text = |key: &str| body["data"][key].as_str().unwrap_or_default();
        let (id, status) = (text("externalTransactionId"), text("paymentStatus"));
        let mut known = orders.lock().expect("nobody fails inside");
        if self.makes_orders_up {
            known.entry(id.to_owned()).or_insert(Order { status: "PEN".into(), fulfilments: 0 });
        }
        let Some(order) = known.get_mut(id) else { return self.unknown };
        if order.status != "PEN" && self.settled != 200 {
            return self.settled;
        }
        let before = order.status.clone();
        if self.locks {
            let fulfilled = order.fulfilments;
            (self.apply)(order, status);
            if self.holds_other_amounts && body["data"]["amount"] != AMOUNT {
                order.fulfilments = fulfilled;
            }
        } else {
            let mut copy = order.clone();
            drop(known);
            // Long enough for the others to read the same.
            std::thread::sleep(Duration::from_millis(300));
            (self.apply)(&mut copy, status);
            let mut known = orders.lock().expect("nobody fails inside");
            let order = known.get_mut(id).expect("orders stay");
            let is_full = body["data"]["amount"] == AMOUNT;
            order.fulfilments += copy.fulfilments.min(1) * u64::from(before == "PEN" && is_full);
            order.status = copy.status;
            return 200;
        }
        let worked = before != order.status && order.status == "CON";
        drop(known);
        if self.works_before_it_answers && worked {
            std::thread::sleep(Duration::from_secs(6));
        }
        200
    }
}

fn standard_signature(received: &Received) -> String {
    let (id, at) = (received.header("webhook-id"), received.header("webhook-timestamp"));
    let signed = [format!("{id}.{at}.").as_bytes(), &received.body].concat();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &decoded());
    format!("v1,{}", STANDARD.encode(hmac::sign(&key, &signed)))
}

/// As spec 3 has it.
pub(crate) fn settle(order: &mut Order, status: &str) {
    if order.status == "PEN" && matches!(status, "CON" | "CAN") {
        order.status = status.to_owned();
        order.fulfilments += u64::from(status == "CON");
    }
}

/// The handler, its create-order and its status.
pub(crate) struct Shop(Receiver);

impl Shop {
    pub(crate) fn open(handler: Handler) -> Self {
        let orders = Arc::new(Orders::default());
        Self(Receiver::start(move |received| answer(handler, &orders, received)))
    }

    pub(crate) fn url(&self) -> String {
        self.0.url().replace("/api/svc/webhook", "")
    }
}

fn answer(handler: Handler, orders: &Orders, received: &Received) -> (u16, String) {
    let target = received.head.split(' ').nth(1).unwrap_or_default();
    if target == "/api/svc/webhook" {
        return (handler.webhook(orders, received), String::new());
    }
    let mut known = orders.lock().expect("nobody fails inside");
    if target == "/api/svc/create-order" {
        let id = format!("order_{}", known.len());
        known.insert(id.clone(), Order { status: "PEN".into(), fulfilments: 0 });
        return (200, json!({ "externalTransactionId": id, "referenceNumber": "R" }).to_string());
    }
    let id = target.trim_start_matches("/api/svc/order/").trim_end_matches("/status");
    match known.get(id) {
        None => (404, String::new()),
        Some(Order { status, fulfilments }) => (
            200,
            json!({ "status": status, "fulfilments": fulfilments, "amount": AMOUNT }).to_string(),
        ),
    }
}

/// Read into a type and written again.
pub(crate) fn compact(body: &[u8]) -> Vec<u8> {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return body.to_vec() };
    let data = &value["data"];
    format!(
        r#"{{"event":{},"data":{{"externalTransactionId":{},"paymentStatus":{},"referenceNumber":{},"amount":{}}}}}"#,
        value["event"],
        data["externalTransactionId"],
        data["paymentStatus"],
        data["referenceNumber"],
        data["amount"]
    )
    .into_bytes()
}

pub(crate) fn spaced(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(compact(body)).expect("it is text");
    text.replace("\":", "\": ").replace(",\"", ", \"").into_bytes()
}

/// Read into a map that knows no order.
pub(crate) fn sorted(body: &[u8]) -> Vec<u8> {
    serde_json::from_slice::<Value>(body).map_or(body.to_vec(), |value| value.to_string().into())
}

pub(crate) fn decoded() -> Vec<u8> {
    STANDARD.decode(&SECRET[6..]).expect("it is base64")
}

pub(crate) fn is_base64_of(given: &str, expected: &str) -> bool {
    let pairs = expected.as_bytes().chunks(2);
    let digest: Vec<u8> = pairs
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("hex is text");
            u8::from_str_radix(pair, 16).expect("it is hex")
        })
        .collect();
    given == STANDARD.encode(digest)
}
