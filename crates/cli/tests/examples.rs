//! The backends of `examples/`, each against a real service: an order, its payment, its webhook, and a
//! webhook that is forged. A language that is not installed is left out, and said so.

#[expect(dead_code, reason = "examples need a part of it")]
mod support;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use aws_lc_rs::hmac;
use serde_json::{Value, json};
use support::http::call;
use support::{PATIENCE, Place, Service, run, svc, until};

/// Ended with the test.
struct Backend(Child);

impl Drop for Backend {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

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
    if Command::new(program).arg("--version").output().is_err() {
        eprintln!("skipped: {program} is not installed");
        return;
    }
    let place = Place::sqlite();
    let serve = ["serve", "--json", "--listen", "127.0.0.1:0", "--private-webhook-targets"];
    let service = Service::start(svc(&serve).args(["--database", &place.database]));
    let credentials = place.partner();
    let port = free_port();
    let shop = format!("http://127.0.0.1:{port}");
    let database = place.folder.path("example.db");
    let variables = variables(&service, &credentials);
    let mut command = Command::new(program);
    command
        .current_dir(examples().join(file).parent().expect("it has a folder"))
        .args(arguments.iter().map(|part| part.replace("{port}", &port.to_string())))
        .envs(variables.clone())
        .envs([("PORT", port.to_string()), ("SHOP_URL", shop.clone()), ("DATABASE", database)]);
    let _backend = start(&mut command, &shop);

    let json = "content-type: application/json\r\n";
    let cart = json!({ "items": [{ "id": "livro", "quantity": 2 }], "total": 1 }).to_string();
    let created = call(&shop, "POST /api/svc/create-order", json, &cart).expect("an answer").json();
    let id = created["externalTransactionId"].as_str().expect("an id").to_owned();
    assert!(!created["referenceNumber"].as_str().expect("a reference").is_empty());
    let status =
        || call(&shop, &format!("GET /api/svc/order/{id}/status"), "", "").expect("an answer");
    assert_eq!(status().json()["status"], "PEN");
    assert_eq!(status().json()["amount"], 30_000, "the shop's own price");

    let forged = json!({ "event": "payment", "data": { "externalTransactionId": id,
        "paymentStatus": "CON", "referenceNumber": "x", "amount": 30_000 } });
    for header in
        ["", "x-svc-content-token: \r\n", &format!("x-svc-content-token: {}\r\n", "0".repeat(64))]
    {
        let answer = call(&shop, "POST /api/svc/webhook", header, &forged.to_string());
        assert_eq!(answer.expect("an answer").status, 401, "{header}");
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, variables[4].1.as_bytes());
    for body in ["", "not json", "{}", r#"{"event":"payment"}"#] {
        let digest = hmac::sign(&key, body.as_bytes());
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let header = format!("x-svc-content-token: {digest}\r\n");
        let answer = call(&shop, "POST /api/svc/webhook", &header, body);
        assert_eq!(answer.expect("an answer").status, 422, "signed, but no event: {body:?}");
    }
    assert_eq!(status().json()["status"], "PEN");
    let pay = |outcome: &str, order: &str| {
        let mut command = svc(&["sandbox", outcome, order, "--json"]);
        run(command.envs(variables.clone())).json()
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
        json!({ "items": [{ "id": "x", "quantity": 1 }] }),
        json!({ "items": [{ "id": "livro", "quantity": -1 }] }),
        json!({ "items": [{ "id": "livro", "quantity": 1.5 }] }),
    ];
    for body in bad {
        let answer = call(&shop, "POST /api/svc/create-order", json, &body.to_string());
        assert_eq!(answer.expect("an answer").status, 422, "{body}");
    }
    let unknown = call(&shop, "GET /api/svc/order/order_unknown/status", "", "");
    assert_eq!(unknown.expect("an answer").status, 404);
}

fn variables(service: &Service, credentials: &Value) -> Vec<(&'static str, String)> {
    let text = |key: &str| credentials[key].as_str().expect("it is text").to_owned();
    vec![
        ("SVC_BASE_URL", service.base_url()),
        ("SVC_PUBLISHABLE_KEY", text("publishableKey")),
        ("SVC_CLIENT_ID", text("clientId")),
        ("SVC_CLIENT_SECRET", text("clientSecret")),
        ("SVC_WEBHOOK_SECRET", text("webhookSecret")),
    ]
}

fn start(command: &mut Command, shop: &str) -> Backend {
    let mut backend = Backend(
        command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("it can be started"),
    );
    // What it says is read to its end, so that it never waits for us.
    let output = BufReader::new(backend.0.stdout.take().expect("it is piped"));
    std::thread::spawn(move || output.lines().for_each(drop));
    until("the backend listens", PATIENCE, || call(shop, "GET /nothing", "", "").ok());
    backend
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port can be had");
    listener.local_addr().expect("it has an address").port()
}

fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}
