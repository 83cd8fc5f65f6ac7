//! GET and POST /sandbox/clock.

use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::{Method, Response, StatusCode};
use serde_json::{Value, json};
use svc_service::store::EventFilter;

use super::{advance, call, create, dossier, simulate};
use crate::support::*;

on_both_engines! {
    a_wrong_journey_is_refused_and_the_clock_stands_where_it_was,
    an_order_with_a_reference_of_a_day_is_expired_by_one_call_and_its_merchant_hears_of_it,
    an_order_that_is_paid_on_the_way_is_paid_at_its_moment,
    webhooks_are_tried_again_at_their_due_instants_on_the_way,
    the_time_survives_a_restart,
    another_node_follows,
}

async fn read(service: &TestService) -> Value {
    let answer = call(service, &service.partner, Method::GET, "/sandbox/clock", &json!({})).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    answer.json()["data"].clone()
}

/// So far ahead, less the moments the machine's own clock made of the journey.
fn is_ahead(data: &Value, seconds: i64) {
    let ahead = data["aheadSeconds"].as_i64().unwrap();
    assert!((seconds - 10..=seconds).contains(&ahead), "{ahead} of {seconds}");
}

async fn a_wrong_journey_is_refused_and_the_clock_stands_where_it_was(database: TestDatabase) {
    let service = TestService::start(database).await;
    for (given, issue) in [
        (json!({}), "required"),
        (json!({ "advanceSeconds": null }), "required"),
        (json!({ "advanceSeconds": 0 }), "too_small"),
        (json!({ "advanceSeconds": -60 }), "too_small"),
        (json!({ "advanceSeconds": 1.5 }), "not_an_integer"),
        (json!({ "advanceSeconds": "60" }), "not_an_integer"),
        (json!({ "advanceSeconds": true }), "not_an_integer"),
        (json!({ "advanceSeconds": 34_560_001 }), "too_large"),
        (json!({ "advanceSeconds": u64::MAX }), "not_an_integer"),
    ] {
        let answer = call(&service, &service.partner, Method::POST, "/sandbox/clock", &given).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{given}: {}", answer.text);
        let details = &answer.json()["details"];
        assert_eq!(details[0]["field"], "advanceSeconds", "{given}");
        assert_eq!(details[0]["issue"], issue, "{given}");
    }
    let headers = [("content-type", "application/json")];
    for method in [Method::GET, Method::POST] {
        let body = r#"{"advanceSeconds":60}"#;
        let answer = service.call(method, "/sandbox/clock", &headers, body).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
    let data = read(&service).await;
    assert_eq!((&data["aheadSeconds"], &data["arrived"]), (&json!(0), &json!(true)));
    is_ahead(&advance(&service, 600).await, 600);
    is_ahead(&read(&service).await, 600);
}

async fn an_order_with_a_reference_of_a_day_is_expired_by_one_call_and_its_merchant_hears_of_it(
    database: TestDatabase,
) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    let reference = create(&service, "order_1", &receiver.url()).await;
    simulate(&service, "order_1", "pending").await;
    let issued = dossier(&service, &reference).await.attempts.remove(0);
    advance(&service, 1_440 * 60 - 60).await;
    assert_eq!(dossier(&service, &reference).await.order.status.code(), "PEN", "a minute early");
    advance(&service, 180).await;
    let ended = dossier(&service, &reference).await;
    assert_eq!((ended.order.status.code(), ended.attempts[0].state.as_str()), ("CAN", "expired"));
    let late_s = ended.settled_at.unwrap().duration_since(issued.deadline).as_secs();
    assert!((5..100).contains(&late_s), "at the deadline and its grace, not on arrival: {late_s}");
    let told: Vec<_> = receiver.requests().iter().map(Received::status).collect();
    assert_eq!(told, ["PEN", "CAN"], "before the call was answered");
}

async fn an_order_that_is_paid_on_the_way_is_paid_at_its_moment(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let mut body = service.order_to("order_1", &receiver.url());
    body["amount"] = 9_002.into();
    let created = service.create(&token, &body).await;
    let reference = created.json()["data"]["referenceNumber"].as_str().unwrap().to_owned();
    let reference = svc_service::domain::ReferenceNumber::parse(&reference).unwrap();
    simulate(&service, "order_1", "pending").await;
    advance(&service, 30 * 86_400).await;
    let paid = dossier(&service, &reference).await;
    assert_eq!(paid.order.status.code(), "CON");
    let after_s = paid.settled_at.unwrap().duration_since(paid.attempts[0].created_at).as_secs();
    assert!((60..160).contains(&after_s), "{after_s}");
    assert_eq!(receiver.requests().last().unwrap().status(), "CON");
}

async fn webhooks_are_tried_again_at_their_due_instants_on_the_way(database: TestDatabase) {
    let seen = AtomicUsize::new(0);
    let receiver = Receiver::start(move |_| {
        let status = if seen.fetch_add(1, Ordering::AcqRel) < 3 { 500 } else { 200 };
        Response::builder().status(status).body("".into()).unwrap()
    })
    .await;
    let service = TestService::start(database).await;
    let reference = create(&service, "order_1", &receiver.url()).await;
    simulate(&service, "order_1", "confirm").await;
    receiver.wait_for(1).await;
    advance(&service, 3_600).await;
    assert_eq!(receiver.requests().len(), 4, "all of them before the call was answered");
    let filter = EventFilter { reference_number: Some(reference), ..EventFilter::default() };
    let event = service.app.store.events(filter, 1).await.unwrap().remove(0);
    let attempts = service.app.store.deliveries_of(&event.id).await.unwrap();
    let waits: Vec<_> =
        attempts.windows(2).map(|two| two[1].at.duration_since(two[0].at).as_secs()).collect();
    // 5, 30 and 120 seconds, a fifth more or less, and what the machine takes.
    for (wait, range) in waits.iter().zip([4..16, 24..46, 96..160]) {
        assert!(range.contains(wait), "{waits:?}");
    }
    assert_eq!(waits.len(), 3);
}

async fn the_time_survives_a_restart(database: TestDatabase) {
    let service = TestService::start(database).await;
    advance(&service, 86_400).await;
    let again = service.another_node().await;
    drop(service);
    is_ahead(&read(&again).await, 86_400);
    is_ahead(&advance(&again, 600).await, 87_000);
}

async fn another_node_follows(database: TestDatabase) {
    let service = TestService::start(database).await;
    let other = service.another_node().await;
    let there = advance(&service, 3_600).await["aheadSeconds"].clone();
    patiently(async { while read(&other).await["aheadSeconds"] != there {} }).await;
}
