//! The backends of `examples/`, each against a real service: an order, its payment, its webhook, and a
//! webhook that is forged. A language that is not installed is left out, and said so.

use serde_json::{Value, json};

use crate::support::backend::{self, Backend};
use crate::support::http::{Answer, call, get};
use crate::support::receiver::content_token;
use crate::support::shop::pay;
use crate::support::{PATIENCE, Place, until};

#[test]
fn the_backend_in_node_works() {
    works("node", "node/server.mjs", &["server.mjs"]);
}

#[test]
fn the_backend_in_python_works() {
    works("python3", "python/server.py", &["server.py"]);
}

#[test]
fn the_backend_in_php_works() {
    works("php", "php/index.php", &["-S", "127.0.0.1:{port}", "index.php"]);
}

#[expect(clippy::print_stderr, reason = "whoever reads the tests' output should know")]
fn works(program: &str, file: &str, arguments: &[&str]) {
    if !backend::is_installed(program) {
        eprintln!("skipped: {program} is not installed");
        return;
    }
    let place = Place::sqlite();
    let backend = Backend::start(&place, program, file, arguments);
    let id = an_order_has_the_shops_own_price(&backend);
    a_cart_that_is_none_is_refused(&backend);
    an_order_nobody_made_is_not_found(&backend);
    every_page_has_the_button(&backend);
    a_forged_webhook_is_refused(&backend, &id);
    a_signed_body_that_is_no_event_is_refused(&backend, &id);
    assert_eq!(status(&backend, &id)["status"], "PEN");
    a_payment_arrives(&backend, &place, &id);
}

/// The id of the order.
fn an_order_has_the_shops_own_price(backend: &Backend) -> String {
    let cart = json!({ "items": [{ "id": "livro-receitas", "quantity": 2 }], "total": 1 });
    let created = create(backend, &cart.to_string()).json();
    let id = created["externalTransactionId"].as_str().expect("an id").to_owned();
    assert!(!created["referenceNumber"].as_str().expect("a reference").is_empty());
    let told = status(backend, &id);
    assert_eq!((&told["status"], &told["amount"]), (&json!("PEN"), &json!(30_000)), "{told}");
    id
}

fn a_cart_that_is_none_is_refused(backend: &Backend) {
    let wrong = [
        json!({}),
        json!({ "items": [] }),
        json!({ "items": "x" }),
        json!({ "items": [1] }),
        json!({ "items": [null] }),
        json!({ "items": [{ "id": "x", "quantity": 1 }] }),
        json!({ "items": [{ "id": ["livro-receitas"], "quantity": 1 }] }),
        json!({ "items": [{ "id": "livro-receitas", "quantity": 0 }] }),
        json!({ "items": [{ "id": "livro-receitas", "quantity": -1 }] }),
        json!({ "items": [{ "id": "livro-receitas", "quantity": 1.5 }] }),
        json!({ "items": [{ "id": "livro-receitas", "quantity": 1_000_000_000 }] }),
    ];
    for cart in wrong.iter().map(ToString::to_string).chain(["{bad".into()]) {
        let refused = create(backend, &cart);
        assert_eq!(refused.status, 422, "{cart}: {refused:?}");
        assert!(refused.json()["message"].is_string(), "{cart}: {refused:?}");
    }
}

fn an_order_nobody_made_is_not_found(backend: &Backend) {
    for id in ["%ff", "order_unknown"] {
        let answer = get(&backend.shop, &format!("/api/svc/order/{id}/status"));
        assert_eq!(answer.status, 404, "{id}: {answer:?}");
    }
}

fn every_page_has_the_button(backend: &Backend) {
    let button = format!("Svc(\"{}\")", variable(backend, "SVC_PUBLISHABLE_KEY"));
    for path in ["/", "/success?orderId=order_1", "/pending?ref=1&entity=2", "/cancelled"] {
        let Answer { status, body, .. } = get(&backend.shop, path);
        assert!(status == 200 && body.contains(&button) && !body.contains("{{"), "{path}: {body}");
    }
}

fn a_forged_webhook_is_refused(backend: &Backend, id: &str) {
    let forged = json!({ "event": "payment", "data": { "externalTransactionId": id,
        "paymentStatus": "CON", "referenceNumber": "x", "amount": 30_000 } });
    for header in
        ["", "x-svc-content-token: \r\n", &format!("x-svc-content-token: {}\r\n", "0".repeat(64))]
    {
        let answer = call(&backend.shop, "POST /api/svc/webhook", header, &forged.to_string());
        assert_eq!(answer.expect("an answer").status, 401, "{header}");
    }
}

fn a_signed_body_that_is_no_event_is_refused(backend: &Backend, id: &str) {
    let secret = variable(backend, "SVC_WEBHOOK_SECRET");
    let signed = |body: &str| {
        let header = format!("x-svc-content-token: {}\r\n", content_token(secret, body.as_bytes()));
        call(&backend.shop, "POST /api/svc/webhook", &header, body).expect("an answer").status
    };
    let without_amount = format!(
        r#"{{"event":"payment","data":{{"externalTransactionId":"{id}","paymentStatus":"CON"}}}}"#
    );
    let list_for_id = without_amount.replace(&format!("\"{id}\""), "[1]");
    for body in [
        "",
        "not json",
        "{}",
        r#"{"event":"payment"}"#,
        r#"{"event":5,"data":{}}"#,
        r#"{"event":"payment","data":null}"#,
        r#"{"event":"payment","data":{}}"#,
        r#"{"event":"payment","data":[]}"#,
        &without_amount,
        &list_for_id,
    ] {
        assert_eq!(signed(body), 422, "signed, but no event: {body:?}");
    }
    assert_eq!(signed(&format!("{}{without_amount}", " ".repeat(66_000))), 413);
}

fn a_payment_arrives(backend: &Backend, place: &Place, id: &str) {
    assert_eq!(pay(&backend.variables, "confirm", id)["paymentStatus"], "CON");
    until("the webhook was taken", PATIENCE, || {
        let events = place.svc(&["webhook", "list", "--state", "delivered", "--json"]).json();
        (!events.as_array().expect("a list").is_empty()).then_some(())
    });
    assert_eq!(status(backend, id)["status"], "CON");
}

fn create(backend: &Backend, cart: &str) -> Answer {
    let json = "content-type: application/json\r\n";
    call(&backend.shop, "POST /api/svc/create-order", json, cart).expect("an answer")
}

fn status(backend: &Backend, id: &str) -> Value {
    get(&backend.shop, &format!("/api/svc/order/{id}/status")).json()
}

fn variable<'a>(backend: &'a Backend, wanted: &str) -> &'a str {
    let found = backend.variables.iter().find(|(name, _)| *name == wanted);
    &found.expect("it is there").1
}
