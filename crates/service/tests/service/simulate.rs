//! POST /sandbox/simulate: a merchant plays the payer of its own orders.

use hyper::{Method, StatusCode};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use svc_service::domain::sign;
use svc_service::store::EventFilter;

use crate::support::{Answer, Receiver, TestDatabase, TestService, application, on_both_engines};

on_both_engines! {
    a_payer_that_pays_confirms_the_order_and_the_webhook_tells,
    a_payer_that_gives_up_cancels_the_order_and_the_webhook_tells,
    a_settled_order_stays_as_it_is,
    a_stranger_finds_nothing_to_simulate,
    every_wrong_field_is_named_with_the_values_it_may_have,
    production_has_no_such_route,
}

async fn simulate(service: &TestService, token: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("accept-language", "en"),
    ];
    service.call(Method::POST, "/sandbox/simulate", &headers, body.to_string()).await
}

fn outcome(application: &str, id: &str, outcome: &str) -> Value {
    json!({ "applicationUUID": application, "externalTransactionId": id, "outcome": outcome })
}

async fn settles(database: TestDatabase, simulated: &str, status: &str) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let created = service.create(&token, &service.order_to("order_1", &receiver.url())).await;
    assert_eq!(created.json()["data"]["paymentStatus"], "PEN");
    let body = outcome(service.application(), "order_1", simulated);
    let answer = simulate(&service, &token, &body).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let mut expected = created.json();
    expected["data"]["paymentStatus"] = status.into();
    assert_eq!(answer.json(), expected, "the order as every call tells it");
    let requests = receiver.wait_for(1).await;
    let request = &requests[0];
    assert_eq!((request.order().as_str(), request.status().as_str()), ("order_1", status));
    let secret = service.partner.application.webhook_secret.expose_secret();
    assert_eq!(request.header("x-svc-content-token"), sign(secret, &request.body));
    let asked = service.query(&token, service.application(), "order_1").await;
    assert_eq!(asked.json(), answer.json());
}

async fn a_payer_that_pays_confirms_the_order_and_the_webhook_tells(database: TestDatabase) {
    settles(database, "confirm", "CON").await;
}

async fn a_payer_that_gives_up_cancels_the_order_and_the_webhook_tells(database: TestDatabase) {
    settles(database, "cancel", "CAN").await;
}

async fn a_settled_order_stays_as_it_is(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    for (id, first, second, status) in
        [("order_1", "confirm", "cancel", "CON"), ("order_2", "cancel", "confirm", "CAN")]
    {
        service.create(&token, &service.order_to(id, &receiver.url())).await;
        let settled = simulate(&service, &token, &outcome(service.application(), id, first)).await;
        for again in [first, second] {
            let body = outcome(service.application(), id, again);
            let answer = simulate(&service, &token, &body).await;
            assert_eq!((answer.status, &answer.text), (StatusCode::OK, &settled.text), "{again}");
            assert_eq!(answer.json()["data"]["paymentStatus"], status);
        }
    }
    // One event each, and no money that fits nowhere.
    let events = service.app.store.events(EventFilter::default(), 10).await.unwrap();
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(service.count("exceptions").await, 0);
    let mut told: Vec<_> =
        receiver.wait_for(2).await.iter().map(|r| (r.order(), r.status())).collect();
    told.sort();
    let expected = [("order_1", "CON"), ("order_2", "CAN")];
    assert_eq!(told, expected.map(|(id, status)| (id.to_owned(), status.to_owned())));
}

async fn a_stranger_finds_nothing_to_simulate(database: TestDatabase) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    service.create(&token, &service.order("order_1")).await;
    let stranger = service.token(&service.stranger).await;
    let (ours, theirs) = (service.application(), application(&service.stranger));
    for (token, body, error) in [
        (&stranger, outcome(ours, "order_1", "confirm"), "application_not_found"),
        (&stranger, outcome(theirs, "order_1", "confirm"), "order_not_found"),
        (&token, outcome(theirs, "order_1", "confirm"), "application_not_found"),
        (&token, outcome(ours, "order_2", "cancel"), "order_not_found"),
        (&token, outcome("nobody", "order_1", "cancel"), "application_not_found"),
    ] {
        let answer = simulate(&service, token, &body).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{body}");
        assert_eq!(answer.json()["error"], error, "{body}");
    }
    let answer = simulate(&service, "nonsense", &outcome(ours, "order_1", "confirm")).await;
    assert_eq!(answer.json()["error"], "invalid_token");
    let asked = service.query(&token, ours, "order_1").await;
    assert_eq!(asked.json()["data"]["paymentStatus"], "PEN", "nobody moved it");
}

async fn every_wrong_field_is_named_with_the_values_it_may_have(database: TestDatabase) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    service.create(&token, &service.order("order_1")).await;
    for wrong in ["", "CON", "Confirm", "confirm ", "expired"] {
        let body = outcome(service.application(), "order_1", wrong);
        let answer = simulate(&service, &token, &body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{wrong:?}");
        let details = &answer.json()["details"];
        assert_eq!(details.as_array().unwrap().len(), 1, "{wrong:?}: {details}");
        assert_eq!(details[0]["field"], "outcome", "{wrong:?}");
        assert_eq!(details[0]["issue"], "not_one_of", "{wrong:?}");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(
            message.contains("outcome must be one of confirm, decline, cancel, expire, pending"),
            "{wrong:?}: {message}"
        );
    }
    let answer = simulate(&service, &token, &json!({})).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    let details = answer.json()["details"].clone();
    let fields: Vec<_> = details.as_array().unwrap().iter().map(|d| d["field"].clone()).collect();
    assert_eq!(fields, ["applicationUUID", "externalTransactionId", "outcome"]);
    let prefixed = format!("pk_test_{}", service.application());
    let answer = simulate(&service, &token, &outcome(&prefixed, "order_1", "confirm")).await;
    assert_eq!(answer.json()["details"][0]["field"], "applicationUUID");
    let asked = service.query(&token, service.application(), "order_1").await;
    assert_eq!(asked.json()["data"]["paymentStatus"], "PEN", "nothing moved it");
}

async fn production_has_no_such_route(database: TestDatabase) {
    let service = TestService::start_production(database, "127.0.0.0/8").await;
    let token = service.token(&service.partner).await;
    let mut order = service.order("order_1");
    order["additionalInfo"] = json!({
        "returnUrl": "https://a.ao/ok", "cancelUrl": "https://a.ao/no",
        "webhookUrl": "https://a.ao/hook",
    })
    .to_string()
    .into();
    let created = service.create(&token, &order).await;
    assert_eq!(created.status, StatusCode::OK, "{}", created.text);
    let body = outcome(service.application(), "order_1", "confirm");
    let answer = simulate(&service, &token, &body).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json()["error"], "not_found");
    let asked = service.query(&token, service.application(), "order_1").await;
    assert_eq!(asked.json()["data"]["paymentStatus"], "PEN");
}
