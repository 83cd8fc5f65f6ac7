//! One POST as the service makes it, or with a fault that is put in on purpose.

use std::time::Duration;

use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use svc_service::app::{Clock, Random};
use svc_service::credentials;
use svc_service::domain::{EventId, ReferenceNumber, sign, sign_standard};

use super::orders::Order;
use crate::http::{Exchange, Http};
use crate::signed_headers::signed_headers;

/// Longer than the five seconds a handler has: so that it can be said how slow it is.
const PATIENCE: Duration = Duration::from_secs(8);

/// A body and the id it has in every attempt.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub id: EventId,
    pub body: Vec<u8>,
}

/// What stands in `x-svc-content-token`.
#[derive(Clone, Debug)]
pub(super) enum Signature {
    Right,
    Missing,
    /// This text. The signature of Standard Webhooks is then wrong too: a handler may check either.
    Text(String),
}

#[derive(Clone)]
pub(super) struct Sender {
    http: Http,
    url: String,
    secret: SecretString,
}

#[derive(Serialize)]
struct Body<'a> {
    event: &'a str,
    data: Data<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    external_transaction_id: &'a str,
    payment_status: &'a str,
    reference_number: &'a str,
    amount: i64,
}

impl Event {
    /// In the very form of the service.
    pub(super) fn payment(order: &Order, status: &str) -> Self {
        Self::of("payment", order, status)
    }

    pub(super) fn of(event: &str, order: &Order, status: &str) -> Self {
        let data = Data {
            external_transaction_id: &order.id,
            payment_status: status,
            reference_number: &order.reference,
            amount: order.amount,
        };
        let body = serde_json::to_vec(&Body { event, data }).expect("text and numbers serialise");
        Self::with_body(body)
    }

    /// The same meaning in a form no library writes: other spaces, other key order, an escape.
    pub(super) fn oddly_formatted(order: &Order) -> Self {
        let text = |text: &str| serde_json::to_string(text).expect("text serialises");
        let (id, reference) = (text(&order.id), text(&order.reference));
        let body = format!(
            "{{ \"data\" : {{\"amount\":{}, \"referenceNumber\" :{reference},\n\t\
             \"paymentStatus\":  \"\\u0043ON\",\"externalTransactionId\": {id} }} ,\r\n  \
             \"event\":\"payment\"}}\n",
            order.amount
        );
        Self::with_body(body.into_bytes())
    }

    pub(super) fn with_body(body: Vec<u8>) -> Self {
        Self { id: EventId::assign(Clock::system().now(), Random::system().bytes()), body }
    }
}

impl Sender {
    pub(super) fn new(http: Http, url: &str, secret: SecretString) -> Self {
        Self { http, url: url.to_owned(), secret }
    }

    pub(super) fn secret(&self) -> &str {
        self.secret.expose_secret()
    }

    /// The signature this body should have.
    pub(super) fn sign(&self, body: &[u8]) -> String {
        sign(self.secret(), body)
    }

    pub(super) async fn send(&self, event: &Event, signature: Signature) -> Exchange {
        let now = Clock::system().now();
        let mut headers = signed_headers(self.secret(), &event.id, &event.body, 1, now);
        let mut set = |name: &'static str, text: &str| {
            // A header is Latin-1 on the wire, not UTF-8.
            let bytes: Vec<u8> = text.chars().map(|c| c as u8).collect();
            let value = HeaderValue::from_bytes(&bytes).expect("what we send can be seen");
            headers.insert(HeaderName::from_static(name), value);
        };
        match signature {
            Signature::Right => {}
            Signature::Missing => {
                headers.remove("x-svc-content-token");
                headers.remove("webhook-signature");
            }
            Signature::Text(text) => {
                let secret = foreign_secret();
                let id = event.id.as_str();
                let standard = sign_standard(secret.expose_secret(), id, now, &event.body);
                set("x-svc-content-token", &text);
                set("webhook-signature", &standard.unwrap_or_default());
            }
        }
        self.http.send(Method::POST, &self.url, headers, event.body.clone(), PATIENCE).await
    }
}

/// A secret of the right form that is nobody's.
pub(super) fn foreign_secret() -> SecretString {
    credentials::webhook_secret(&Random::system())
}

/// An order that no merchant knows.
pub(super) fn stranger(amount: i64) -> Order {
    let random = Random::system();
    let reference = ReferenceNumber::assign(Clock::system().now(), random.bytes());
    let hex = hex::encode(random.bytes::<16>());
    let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    let id = format!("order_{a}-{b}-{c}-{d}-{e}");
    Order { id, reference: reference.as_str().to_owned(), amount }
}
