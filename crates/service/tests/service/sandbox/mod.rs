//! What only a sandbox has: its clock, its chaos, its payers and its ATM.

mod atm;
mod chaos;
mod clock;
mod outcomes;

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use svc_service::credentials::Issued;
use svc_service::domain::{Dossier, ReferenceNumber};

use crate::support::{Answer, TestDatabase, TestService, application, on_both_engines, patiently};

on_both_engines! {
    production_has_none_of_it,
}

/// A JSON call of a partner's. The token is new each time: the clock may have moved past the last.
async fn call(
    service: &TestService,
    partner: &Issued,
    method: Method,
    target: &str,
    body: &Value,
) -> Answer {
    let bearer = format!("Bearer {}", service.token(partner).await);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("accept-language", "en"),
    ];
    service.call(method, target, &headers, body.to_string()).await
}

/// Moves the sandbox on; when this is back, everything on the way has happened.
async fn advance(service: &TestService, seconds: i64) -> Value {
    let body = json!({ "advanceSeconds": seconds });
    let answer = call(service, &service.partner, Method::POST, "/sandbox/clock", &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let mut data = answer.json()["data"].clone();
    patiently(async {
        while data["arrived"] == false {
            let answer =
                call(service, &service.partner, Method::GET, "/sandbox/clock", &json!({})).await;
            data = answer.json()["data"].clone();
        }
    })
    .await;
    assert_eq!(data["arrived"], true, "{data}");
    data
}

async fn simulate(service: &TestService, id: &str, outcome: &str) -> Answer {
    simulate_as(service, &service.partner, id, outcome).await
}

async fn simulate_as(service: &TestService, partner: &Issued, id: &str, outcome: &str) -> Answer {
    let body = json!({
        "applicationUUID": application(partner), "externalTransactionId": id, "outcome": outcome,
    });
    let answer = call(service, partner, Method::POST, "/sandbox/simulate", &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer
}

/// An order whose webhooks go there.
async fn create(service: &TestService, id: &str, webhook_url: &str) -> ReferenceNumber {
    let token = service.token(&service.partner).await;
    let created = service.create(&token, &service.order_to(id, webhook_url)).await;
    let reference = created.json()["data"]["referenceNumber"].as_str().unwrap().to_owned();
    ReferenceNumber::parse(&reference).unwrap()
}

async fn dossier(service: &TestService, reference: &ReferenceNumber) -> Dossier {
    service.app.store.dossier(reference).await.unwrap().unwrap()
}

async fn production_has_none_of_it(database: TestDatabase) {
    let service = TestService::start_production(database, "127.0.0.0/8").await;
    for (method, target) in [
        (Method::GET, "/sandbox/clock"),
        (Method::POST, "/sandbox/clock"),
        (Method::GET, "/sandbox/chaos"),
        (Method::PUT, "/sandbox/chaos"),
        (Method::POST, "/sandbox/simulate"),
        (Method::GET, "/sandbox/atm"),
        (Method::POST, "/sandbox/atm"),
        (Method::GET, "/sandbox/wallet"),
        (Method::GET, "/sandbox/wallet/ABCDEFGHJKMNPQR"),
        (Method::POST, "/sandbox/wallet/ABCDEFGHJKMNPQR"),
    ] {
        let body = json!({ "advanceSeconds": 60 });
        let answer = call(&service, &service.partner, method.clone(), target, &body).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method} {target}");
        assert_eq!(answer.json()["error"], "not_found", "{method} {target}");
    }
    assert_eq!(service.app.clock.ahead(), jiff::SignedDuration::ZERO);
}
