//! The backends of `examples/`, each against a real service: an order, its payment, its webhook, and a
//! webhook that is forged. A language that is not installed is left out, and said so.

use aws_lc_rs::hmac;
use serde_json::json;

use crate::support::backend::{self, Backend};
use crate::support::http::{Answer, call};
use crate::support::{PATIENCE, Place, run, svc, until};

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
    let shop = &backend.shop;

    let json = "content-type: application/json\r\n";
    let cart =
        json!({ "items": [{ "id": "livro-receitas", "quantity": 2 }], "total": 1 }).to_string();
    let created = call(shop, "POST /api/svc/create-order", json, &cart).expect("an answer").json();
    let id = created["externalTransactionId"].as_str().expect("an id").to_owned();
    assert!(!created["referenceNumber"].as_str().expect("a reference").is_empty());
    let status =
        || call(shop, &format!("GET /api/svc/order/{id}/status"), "", "").expect("an answer");
    assert_eq!(status().json()["status"], "PEN");
    assert_eq!(status().json()["amount"], 30_000, "the shop's own price");

    let key = backend.variables.iter().find(|(name, _)| *name == "SVC_PUBLISHABLE_KEY");
    let button = format!("Svc(\"{}\")", key.expect("it is there").1);
    for wrong in [
        json!({ "items": [{ "id": ["livro-receitas"], "quantity": 1 }] }),
        json!({ "items": [{ "id": "livro-receitas", "quantity": 1_000_000_000 }] }),
        json!({ "items": [{ "id": "livro-receitas", "quantity": 0 }] }),
        json!({ "items": [1] }),
        json!({ "items": "x" }),
        json!({ "items": [] }),
    ] {
        let refused = call(shop, "POST /api/svc/create-order", json, &wrong.to_string());
        let refused = refused.expect("an answer");
        assert_eq!(refused.status, 422, "{wrong}: {refused:?}");
        assert!(refused.json()["message"].is_string(), "{wrong}: {refused:?}");
    }
    let nobodys = call(shop, "GET /api/svc/order/%ff/status", "", "").expect("an answer");
    assert_eq!(nobodys.status, 404, "{nobodys:?}");

    for target in
        ["GET /", "GET /success?orderId=order_1", "GET /pending?ref=1&entity=2", "GET /cancelled"]
    {
        let Answer { status, body, .. } = call(shop, target, "", "").expect("an answer");
        assert!(
            status == 200 && body.contains(&button) && !body.contains("{{"),
            "{target}: {body}"
        );
    }

    let forged = json!({ "event": "payment", "data": { "externalTransactionId": id,
        "paymentStatus": "CON", "referenceNumber": "x", "amount": 30_000 } });
    for header in
        ["", "x-svc-content-token: \r\n", &format!("x-svc-content-token: {}\r\n", "0".repeat(64))]
    {
        let answer = call(shop, "POST /api/svc/webhook", header, &forged.to_string());
        assert_eq!(answer.expect("an answer").status, 401, "{header}");
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, backend.variables[4].1.as_bytes());
    let signed = |body: &str| {
        let digest = hmac::sign(&key, body.as_bytes());
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let header = format!("x-svc-content-token: {digest}\r\n");
        call(shop, "POST /api/svc/webhook", &header, body).expect("an answer").status
    };
    let without_amount = format!(
        r#"{{"event":"payment","data":{{"externalTransactionId":"{id}","paymentStatus":"CON"}}}}"#
    );
    let no_data =
        ["null", "{}", "[]"].map(|data| format!(r#"{{"event":"payment","data":{data}}}"#));
    let list_for_id = without_amount.replace(&format!("\"{id}\""), "[1]");
    let odd = [&without_amount, &list_for_id, &no_data[0], &no_data[1], &no_data[2]];
    for body in ["", "not json", "{}", r#"{"event":"payment"}"#, r#"{"event":5,"data":{}}"#]
        .into_iter()
        .chain(odd.map(String::as_str))
    {
        assert_eq!(signed(body), 422, "signed, but no event: {body:?}");
    }
    assert_eq!(signed(&format!("{}{}", " ".repeat(66_000), without_amount)), 413);
    assert_eq!(status().json()["status"], "PEN");
    let pay = |outcome: &str, order: &str| {
        let mut command = svc(&["sandbox", outcome, order, "--json"]);
        run(command.envs(backend.variables.clone())).json()
    };
    assert_eq!(pay("confirm", &id)["paymentStatus"], "CON");
    until("the webhook was taken", PATIENCE, || {
        let events = place.svc(&["webhook", "list", "--state", "delivered", "--json"]).json();
        (!events.as_array().expect("a list").is_empty()).then_some(())
    });
    assert_eq!(status().json()["status"], "CON");

    let bad = [
        json!({}),
        json!({ "items": [] }),
        json!({ "items": [null] }),
        json!({ "items": [{ "id": "x", "quantity": 1 }] }),
        json!({ "items": [{ "id": "livro-receitas", "quantity": -1 }] }),
        json!({ "items": [{ "id": "livro-receitas", "quantity": 1.5 }] }),
    ];
    for body in bad.iter().map(ToString::to_string).chain(["{bad".into()]) {
        let answer = call(shop, "POST /api/svc/create-order", json, &body);
        assert_eq!(answer.expect("an answer").status, 422, "{body}");
    }
    let unknown = call(shop, "GET /api/svc/order/order_unknown/status", "", "");
    assert_eq!(unknown.expect("an answer").status, 404);
}
