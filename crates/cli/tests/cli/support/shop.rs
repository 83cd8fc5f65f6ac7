//! A buyer at the reference shop, and a payer in the sandbox.

use std::io::Write;

use serde_json::{Value, json};

use crate::support::http::{Answer, connect, read_answer};
use crate::support::{PATIENCE, run, svc, until};

/// Calls the shop by its own name, because that is where it sends webhooks to.
pub(crate) fn ask(shop_url: &str, request: &str, headers: &str, body: &str) -> Answer {
    let host = shop_url.trim_start_matches("http://");
    let length = body.len();
    let text = format!(
        "{request} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n\
         {headers}\r\n{body}"
    );
    let mut stream = connect(shop_url).expect("the shop is open");
    stream.write_all(text.as_bytes()).expect("the shop listens");
    read_answer(stream).expect("the shop answers")
}

/// An order of one book; its id.
pub(crate) fn buy(shop_url: &str) -> String {
    let cart = json!({ "items": [{ "id": "livro-receitas", "quantity": 1 }] }).to_string();
    let json = "content-type: application/json\r\n";
    let answer = ask(shop_url, "POST /api/svc/create-order", json, &cart);
    assert_eq!(answer.status, 200, "{answer:?}");
    let created = answer.json();
    assert!(!created["referenceNumber"].as_str().expect("a reference is text").is_empty());
    created["externalTransactionId"].as_str().expect("an id is text").to_owned()
}

/// What the shop tells of an order: its status, and what happened.
pub(crate) fn told(shop_url: &str, id: &str) -> (String, Vec<String>) {
    let order = ask(shop_url, &format!("GET /api/shop/order/{id}"), "", "").json();
    let story = order["story"].as_array().expect("a story").iter();
    let text = |value: &Value| value.as_str().expect("it is text").to_owned();
    (text(&order["status"]), story.map(|one| text(&one["what"])).collect())
}

/// Waits until this happened to the order; everything that did.
pub(crate) fn until_told(shop_url: &str, id: &str, what: &str) -> (String, Vec<String>) {
    until(what, PATIENCE, || {
        Some(told(shop_url, id)).filter(|(_, story)| story.iter().any(|one| one == what))
    })
}

/// What a merchant's programs find in their environment.
pub(crate) fn variables(base_url: &str, credentials: &Value) -> Vec<(&'static str, String)> {
    let text = |key: &str| credentials[key].as_str().expect("it is text").to_owned();
    vec![
        ("SVC_BASE_URL", base_url.to_owned()),
        ("SVC_PUBLISHABLE_KEY", text("publishableKey")),
        ("SVC_CLIENT_ID", text("clientId")),
        ("SVC_CLIENT_SECRET", text("clientSecret")),
        ("SVC_WEBHOOK_SECRET", text("webhookSecret")),
    ]
}

/// The payer does this: `confirm` or `cancel`.
pub(crate) fn pay(variables: &[(&'static str, String)], outcome: &str, id: &str) -> Value {
    run(svc(&["sandbox", outcome, id, "--json"]).envs(variables.to_vec())).json()
}
