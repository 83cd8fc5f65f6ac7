//! What operators see: health, figures, and logs that hold no secret.

use std::process::Command;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::support::http::{Answer, get};
use crate::support::merchant::{Merchant, reference};
use crate::support::{Place, Ran, Service, run};

on_both_engines! {
    health_and_figures_answer_as_text,
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

fn logs_are_json_and_hold_no_secret(place: &Place) {
    let service = Service::start(place.serving(&[]).env("SVC_SERVER_LOG", "debug"));
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
