//! What operators see: health, figures, the API's description, and logs that hold no secret.

use std::process::Command;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::support::http::{Answer, get};
use crate::support::merchant::{Merchant, reference};
use crate::support::{Place, Ran, Service, run, svc};

on_both_engines! {
    health_and_figures_answer_as_text,
    the_figures_count_what_happened,
    logs_are_json_and_hold_no_secret,
}

fn health_and_figures_answer_as_text(place: &Place) {
    let service = place.serve();
    for (path, body) in [("/livez", "ok\n"), ("/readyz", "ready\n")] {
        let answer = typed(&service, path, "text/plain");
        assert_eq!(answer.body, body);
    }
    let figures = typed(&service, "/metrics", "text/plain; version=0.0.4");
    assert!(figures.body.contains("# TYPE svc_outbox_depth gauge"), "{}", figures.body);
}

fn the_figures_count_what_happened(place: &Place) {
    let service = place.serve();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    let token = merchant.token();
    for _ in 0..2 {
        reference(&merchant.create(&token, "order-1").expect("the server answers"));
    }
    let stranger = Merchant { client_secret: "wrong".to_owned(), ..merchant.clone() };
    assert_eq!(stranger.ask_token().status, 401);
    let figures = get(&service.base_url(), "/metrics").body;
    for line in [
        "svc_orders_created_total 1",
        "svc_orders_replayed_total 1",
        "svc_tokens_issued_total 1",
        "svc_token_failures_total 1",
        "svc_outbox_depth 0",
        "svc_http_requests_total{route=\"/svcpartner/createPaymentOrder\",status=\"2xx\"} 2",
        "svc_http_requests_total{route=\"/token\",status=\"4xx\"} 1",
    ] {
        assert!(figures.lines().any(|given| given == line), "{line} is not in\n{figures}");
    }
    assert!(figures.contains("svc_store_batch_size_bucket"), "{figures}");
    assert!(!figures.contains("order-1") && !figures.contains(&merchant.client_id), "{figures}");
}

#[test]
fn unknown_paths_make_no_new_figures() {
    let place = Place::sqlite();
    let service = place.serve();
    assert_eq!(get(&service.base_url(), "/made-up-by-a-stranger").status, 404);
    let figures = get(&service.base_url(), "/metrics").body;
    assert!(!figures.contains("made-up"), "{figures}");
    assert!(figures.contains("route=\"other\""), "{figures}");
}

#[test]
fn the_description_is_openapi_3_1_with_every_route_and_the_webhook() {
    let place = Place::sqlite();
    let document = typed(&place.serve(), "/openapi.json", "application/json").json();
    let version = document["openapi"].as_str().expect("a version");
    assert!(version.starts_with("3.1"), "{version}");
    for path in
        ["/token", "/svcpartner/createPaymentOrder", "/svcpartner/paymentByExternalTransaction"]
    {
        assert!(document["paths"][path].is_object(), "{path} is not described");
    }
    assert!(document["webhooks"].as_object().is_some_and(|webhooks| !webhooks.is_empty()));
}

#[test]
fn the_docs_need_no_script_and_no_network() {
    let place = Place::sqlite();
    let page = typed(&place.serve(), "/docs", "text/html; charset=utf-8");
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("script-src"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let body = page.body.to_lowercase();
    for forbidden in ["<script", "javascript:", "<iframe", "<link", " src=", "@import", " onclick"]
    {
        assert!(!body.contains(forbidden), "{forbidden} is in the page");
    }
    assert!(body.contains("createpaymentorder"));
}

fn logs_are_json_and_hold_no_secret(place: &Place) {
    let mut command = svc(&["serve", "--json", "--listen", "127.0.0.1:0"]);
    command.args(["--database", &place.database]).env("SVC_SERVER_LOG", "debug");
    let service = Service::start(&mut command);
    let credentials = place.partner();
    let merchant = Merchant::new(service.base_url(), &credentials);
    let token = merchant.token();
    reference(&merchant.create(&token, "order-in-no-log").expect("the server answers"));
    reference(&merchant.query(&token, "order-in-no-log"));
    assert_eq!(query_over_http_2(&merchant, &token).code, Some(0));
    let stranger = Merchant { client_secret: "wrong-and-secret".to_owned(), ..merchant.clone() };
    assert_eq!(stranger.ask_token().status, 401);

    let logs = service.stop().stderr;
    let lines: Vec<Value> = logs.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    let answered = |line: &&Value| line["message"] == "request answered";
    assert!(lines.iter().filter(answered).count() >= 5, "at debug each request is told:\n{logs}");
    let basic = STANDARD.encode(format!("{}:{}", merchant.client_id, merchant.client_secret));
    for secret in [
        &merchant.client_secret,
        &token,
        &basic,
        credentials["webhookSecret"].as_str().expect("text"),
        "wrong-and-secret",
        "externalTransactionId=",
        "order-in-no-log",
    ] {
        assert!(!logs.contains(secret), "{secret} is in the logs:\n{logs}");
    }
}

#[test]
fn beside_json_logs_a_failure_is_still_a_sentence() {
    let place = Place::sqlite();
    place.partner();
    place.svc(&["partner", "show", "svc_nobody"]).refused("svc_nobody");
}

/// HTTP/2 is another library with logs of its own.
fn query_over_http_2(merchant: &Merchant, token: &str) -> Ran {
    let Merchant { base_url, application_uuid, .. } = merchant;
    run(Command::new("curl")
        .args(["--silent", "--fail", "--noproxy", "*", "--http2-prior-knowledge", "--header"])
        .arg(format!("authorization: Bearer {token}"))
        .arg(format!(
            "{base_url}/svcpartner/paymentByExternalTransaction?\
             externalTransactionId=order-in-no-log&applicationUUID={application_uuid}"
        )))
}

/// A 200 of this type, with a request id.
fn typed(service: &Service, path: &str, content_type: &str) -> Answer {
    let answer = get(&service.base_url(), path);
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    let given = answer.header("content-type").unwrap_or_default();
    let same = given == content_type || given.split(';').next() == Some(content_type);
    assert!(same, "{path} is {given}, not {content_type}");
    assert!(answer.header("x-request-id").is_some(), "{path}: {}", answer.head);
    answer
}
