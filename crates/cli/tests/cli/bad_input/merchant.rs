//! A merchant for the tests that tell a story: signs in, creates, asks.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::running::Credentials;
use super::wire::{self, Answer, Connection};

pub(crate) struct Merchant {
    pub address: SocketAddr,
    pub credentials: Credentials,
    pub token: String,
}

impl Merchant {
    /// Signs in at once.
    pub(crate) fn new(address: SocketAddr, credentials: Credentials) -> Self {
        let token = token_for(address, &credentials, "grant_type=client_credentials");
        Self { address, credentials, token }
    }

    /// The same merchant with another token.
    pub(crate) fn with_token(&self, token: String) -> Self {
        Self { address: self.address, credentials: self.credentials.clone(), token }
    }

    /// A right order of this merchant.
    pub(crate) fn order(&self, external_transaction_id: &str) -> Value {
        let info = json!({
            "returnUrl": "https://loja.ao/ok",
            "cancelUrl": "https://loja.ao/cancelado",
            "webhookUrl": "https://loja.ao/api/svc/webhook",
        });
        json!({
            "externalTransactionId": external_transaction_id,
            "clientId": "user-1",
            "applicationUUID": self.credentials.application_uuid,
            "name": "Livro",
            "amount": 15_000,
            "quantity": 1,
            "additionalInfo": info.to_string(),
        })
    }

    pub(crate) fn create(&self, order: &Value) -> Answer {
        send(self.address, &self.create_request(order))
    }

    pub(crate) fn create_request(&self, order: &Value) -> Vec<u8> {
        self.post_request("/svcpartner/createPaymentOrder", order)
    }

    pub(crate) fn post(&self, target: &str, body: &Value) -> Answer {
        send(self.address, &self.post_request(target, body))
    }

    fn post_request(&self, target: &str, body: &Value) -> Vec<u8> {
        let headers = [self.bearer(), b"Content-Type: application/json".to_vec()];
        wire::request(format!("POST {target}").as_bytes(), &headers, body.to_string().as_bytes())
    }

    /// The state of an order of the merchant's own application.
    pub(crate) fn query(&self, external_transaction_id: &str) -> Answer {
        self.query_in(&self.credentials.application_uuid, external_transaction_id)
    }

    pub(crate) fn query_in(&self, application: &str, external_transaction_id: &str) -> Answer {
        send(self.address, &self.query_request(application, external_transaction_id))
    }

    pub(crate) fn query_request(&self, application: &str, id: &str) -> Vec<u8> {
        let target = format!(
            "GET /svcpartner/paymentByExternalTransaction\
             ?externalTransactionId={id}&applicationUUID={application}"
        );
        wire::request(target.as_bytes(), &[self.bearer()], b"")
    }

    fn bearer(&self) -> Vec<u8> {
        format!("Authorization: Bearer {}", self.token).into()
    }
}

/// One request on a connection of its own.
pub(crate) fn send(address: SocketAddr, request: &[u8]) -> Answer {
    Connection::open(address).exchange(request).expect("the server answers")
}

/// A token request with any id, secret, form and more headers.
pub(crate) fn sign_in(id: &str, secret: &str, form: &str, more: &[&str]) -> Vec<u8> {
    let basic = STANDARD.encode(format!("{id}:{secret}"));
    let mut headers = vec![
        format!("Authorization: Basic {basic}").into_bytes(),
        b"Content-Type: application/x-www-form-urlencoded".to_vec(),
    ];
    headers.extend(more.iter().map(|header| header.as_bytes().to_vec()));
    wire::request(b"POST /token", &headers, form.as_bytes())
}

pub(crate) fn token_for(address: SocketAddr, credentials: &Credentials, form: &str) -> String {
    let Credentials { client_id, client_secret, .. } = credentials;
    let answer = send(address, &sign_in(client_id, client_secret, form, &[]));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["access_token"].as_str().expect("a token is text").to_owned()
}

pub(crate) fn reference(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["data"]["referenceNumber"].as_str().expect("an order has a reference").to_owned()
}

/// 429 tells when to come back.
pub(crate) fn assert_rate_limited(answer: &Answer) {
    assert_eq!(answer.json()["error"], "rate_limited", "{}", answer.text());
    let seconds = answer.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| seconds >= 1), "Retry-After is {seconds:?}");
}

/// Random in the shape of a UUID.
pub(crate) fn fresh_uuid() -> String {
    let half = || RandomState::new().hash_one(0);
    let digits = format!("{:016x}{:016x}", half(), half());
    let (a, b, c, d) = (&digits[..8], &digits[8..12], &digits[13..16], &digits[17..20]);
    format!("{a}-{b}-4{c}-a{d}-{}", &digits[20..])
}
