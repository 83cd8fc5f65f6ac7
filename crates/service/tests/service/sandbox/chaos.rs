//! GET and PUT /sandbox/chaos: webhooks that go wrong on purpose, reproducibly.

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use svc_service::credentials::{self, Issued};
use svc_service::domain::ReferenceNumber;
use svc_service::store::{DeliveryRecord, EventFilter, EventRecord, EventState};

use super::{advance, call, create, simulate, simulate_as};
use crate::support::*;

on_both_engines! {
    what_is_set_is_read_and_what_is_left_out_is_off,
    every_wrong_setting_is_named,
    a_strangers_application_is_left_alone,
    duplicate_sends_every_event_twice,
    reorder_sends_the_event_before_once_more,
    drop_first_loses_so_many_attempts_of_every_event,
    delay_keeps_the_first_attempt_back,
    the_same_seed_loses_the_same_attempts,
}

async fn put(service: &TestService, partner: &Issued, settings: &Value) -> Answer {
    let mut body = json!({ "applicationUUID": application(partner) });
    body.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    call(service, partner, Method::PUT, "/sandbox/chaos", &body).await
}

async fn set(service: &TestService, settings: &Value) {
    let answer = put(service, &service.partner, settings).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
}

async fn get(service: &TestService) -> Value {
    let target = format!("/sandbox/chaos?applicationUUID={}", service.application());
    let answer = call(service, &service.partner, Method::GET, &target, &json!({})).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.json()["data"].clone()
}

fn off(service: &TestService) -> Value {
    json!({
        "applicationUUID": service.application(), "duplicate": false, "reorder": false,
        "delayMs": 0, "dropFirst": 0, "failureRate": 0.0, "seed": 0,
    })
}

async fn what_is_set_is_read_and_what_is_left_out_is_off(database: TestDatabase) {
    let service = TestService::start(database).await;
    assert_eq!(get(&service).await, off(&service));
    let all = json!({
        "duplicate": true, "reorder": true, "delayMs": 3_600_000, "dropFirst": 20,
        "failureRate": 0.25, "seed": -7,
    });
    let answer = put(&service, &service.partner, &all).await;
    let mut expected = all;
    expected["applicationUUID"] = service.application().into();
    assert_eq!(answer.json()["data"], expected);
    assert_eq!(get(&service).await, expected);
    set(&service, &json!({ "dropFirst": 1 })).await;
    let mut expected = off(&service);
    expected["dropFirst"] = 1.into();
    assert_eq!(get(&service).await, expected);
    set(&service, &json!({})).await;
    assert_eq!(get(&service).await, off(&service));
    assert_eq!(service.count("applications where chaos is not null").await, 0);
}

async fn every_wrong_setting_is_named(database: TestDatabase) {
    let service = TestService::start(database).await;
    set(&service, &json!({ "dropFirst": 1 })).await;
    let before = get(&service).await;
    for (field, value, issue) in [
        ("duplicate", json!("true"), "not_one_of"),
        ("duplicate", json!(1), "not_one_of"),
        ("reorder", json!([]), "not_one_of"),
        ("delayMs", json!(-1), "negative"),
        ("delayMs", json!(1.5), "not_an_integer"),
        ("delayMs", json!("10"), "not_an_integer"),
        ("delayMs", json!(3_600_001), "too_large"),
        ("dropFirst", json!(-1), "negative"),
        ("dropFirst", json!(21), "too_large"),
        ("failureRate", json!(1.01), "not_a_rate"),
        ("failureRate", json!(-0.1), "not_a_rate"),
        ("failureRate", json!("0.5"), "not_a_rate"),
        ("seed", json!("7"), "not_an_integer"),
        ("seed", json!(0.5), "not_an_integer"),
    ] {
        let answer = put(&service, &service.partner, &json!({ field: value })).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{field} {value}");
        let details = answer.json()["details"].clone();
        assert_eq!(details.as_array().unwrap().len(), 1, "{field} {value}: {details}");
        let named = (&details[0]["field"], &details[0]["issue"]);
        assert_eq!(named, (&json!(field), &json!(issue)), "{field} {value}");
    }
    let body = json!({ "duplicate": 1, "dropFirst": -1 });
    let answer = call(&service, &service.partner, Method::PUT, "/sandbox/chaos", &body).await;
    let details = answer.json()["details"].clone();
    let fields: Vec<_> = details.as_array().unwrap().iter().map(|d| d["field"].clone()).collect();
    assert_eq!(fields, ["applicationUUID", "duplicate", "dropFirst"]);
    let missing = call(&service, &service.partner, Method::GET, "/sandbox/chaos", &json!({})).await;
    assert_eq!(missing.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(get(&service).await, before, "nothing was half set");
}

async fn a_strangers_application_is_left_alone(database: TestDatabase) {
    let service = TestService::start(database).await;
    let theirs = json!({ "applicationUUID": service.application(), "duplicate": true });
    let answer = call(&service, &service.stranger, Method::PUT, "/sandbox/chaos", &theirs).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json()["error"], "application_not_found");
    let target = format!("/sandbox/chaos?applicationUUID={}", service.application());
    let answer = call(&service, &service.stranger, Method::GET, &target, &json!({})).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    let answer = service.get(&target).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(get(&service).await, off(&service));
}

/// The last event of an order, and what was tried to deliver it.
async fn event(
    service: &TestService,
    reference: &ReferenceNumber,
) -> (EventRecord, Vec<DeliveryRecord>) {
    let filter =
        EventFilter { reference_number: Some(reference.clone()), ..EventFilter::default() };
    let event = service.app.store.events(filter, 1).await.unwrap().remove(0);
    let attempts = service.app.store.deliveries_of(&event.id).await.unwrap();
    (event, attempts)
}

async fn duplicate_sends_every_event_twice(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    set(&service, &json!({ "duplicate": true })).await;
    let reference = create(&service, "order_1", &receiver.url()).await;
    simulate(&service, "order_1", "confirm").await;
    // When the clock has moved, whatever was to be sent has been sent.
    advance(&service, 60).await;
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(requests[0].header("webhook-id"), requests[1].header("webhook-id"));
    let (event, attempts) = event(&service, &reference).await;
    assert_eq!((event.state, attempts.len()), (EventState::Delivered, 1), "told as one");
}

async fn reorder_sends_the_event_before_once_more(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    set(&service, &json!({ "reorder": true })).await;
    create(&service, "order_1", &receiver.url()).await;
    simulate(&service, "order_1", "pending").await;
    receiver.wait_for(1).await;
    simulate(&service, "order_1", "confirm").await;
    advance(&service, 60).await;
    let told: Vec<_> = receiver.requests().iter().map(Received::status).collect();
    assert_eq!(told, ["PEN", "CON", "PEN"]);
}

async fn drop_first_loses_so_many_attempts_of_every_event(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    set(&service, &json!({ "dropFirst": 2 })).await;
    let reference = create(&service, "order_1", &receiver.url()).await;
    simulate(&service, "order_1", "confirm").await;
    advance(&service, 3_600).await;
    let requests = receiver.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].header("x-svc-delivery-attempt"), "3");
    let (event, attempts) = event(&service, &reference).await;
    assert_eq!(event.state, EventState::Delivered);
    let errors: Vec<_> = attempts.iter().map(|attempt| attempt.error.as_deref()).collect();
    let lost = Some("chaos: this attempt was lost");
    assert_eq!(errors, [lost, lost, None]);
}

async fn delay_keeps_the_first_attempt_back(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    set(&service, &json!({ "delayMs": 1_200_000 })).await;
    let reference = create(&service, "order_1", &receiver.url()).await;
    simulate(&service, "order_1", "confirm").await;
    advance(&service, 600).await;
    assert_eq!(receiver.requests().len(), 0);
    advance(&service, 601).await;
    assert_eq!(receiver.requests().len(), 1);
    let (event, attempts) = event(&service, &reference).await;
    let waited_s = attempts.last().unwrap().at.duration_since(event.created_at).as_secs();
    assert!((1_200..1_210).contains(&waited_s), "{waited_s}");
    assert_eq!(attempts[0].error.as_deref(), Some("chaos: the event is delayed"));
}

/// Which of these orders lose their first attempt.
async fn lost(service: &TestService, partner: &Issued, seed: i64, url: &str) -> Vec<bool> {
    let settings = json!({ "failureRate": 0.5, "seed": seed });
    assert_eq!(put(service, partner, &settings).await.status, StatusCode::OK);
    let token = service.token(partner).await;
    let mut references = Vec::new();
    for n in 0..16 {
        let id = format!("order_{n}");
        let mut body = service.order_to(&id, url);
        body["applicationUUID"] = application(partner).into();
        let created = service.create(&token, &body).await;
        let reference = created.json()["data"]["referenceNumber"].as_str().unwrap().to_owned();
        references.push(ReferenceNumber::parse(&reference).unwrap());
        simulate_as(service, partner, &id, "confirm").await;
    }
    let mut lost = Vec::new();
    for reference in references {
        let mut days = 0;
        let attempts = loop {
            let (event, attempts) = event(service, &reference).await;
            if event.state == EventState::Delivered {
                break attempts;
            }
            days += 1;
            assert!(days < 60, "in the end every event arrives: {attempts:?}");
            advance(service, 86_400).await;
        };
        lost.push(attempts[0].error.is_some());
    }
    lost
}

async fn the_same_seed_loses_the_same_attempts(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    let third = credentials::create_partner(&service.app, "Terceira").await.unwrap();
    service.app.directory.refresh(&service.app.store).await.unwrap();
    let first = lost(&service, &service.partner, 7, &receiver.url()).await;
    let again = lost(&service, &service.stranger, 7, &receiver.url()).await;
    let other = lost(&service, &third, 8, &receiver.url()).await;
    assert_eq!(first, again);
    assert_ne!(first, other);
    let count = first.iter().filter(|lost| **lost).count();
    assert!((3..=13).contains(&count), "{count} of 16 at one half");
}
