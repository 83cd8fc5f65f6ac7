//! POST /sandbox/simulate: decline, pending and expire, and attempts that are under way.

use svc_service::domain::{AttemptState, Reason};

use super::{create, dossier, simulate};
use crate::support::*;

on_both_engines! {
    decline_refuses_an_attempt_and_leaves_the_order_pending,
    decline_refuses_the_attempt_that_is_under_way,
    pending_issues_a_reference_once_and_tells,
    expire_ends_the_order_at_once_and_tells,
    expire_waits_for_an_attempt_in_flight,
    confirm_is_the_answer_to_the_attempt_in_flight,
    cancel_waits_for_an_attempt_in_flight_and_decline_lets_it_through,
}

async fn decline_refuses_an_attempt_and_leaves_the_order_pending(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    let reference = create(&service, "order_1", &receiver.url()).await;
    for tries in 1..=5 {
        let answer = simulate(&service, "order_1", "decline").await;
        assert_eq!(answer.json()["data"]["paymentStatus"], "PEN");
        let attempts = dossier(&service, &reference).await.attempts;
        assert_eq!(attempts.len(), tries);
        for attempt in attempts {
            assert_eq!(attempt.state, AttemptState::Rejected);
            assert_eq!(attempt.reason, Some(Reason::PayerRefused));
        }
    }
    // A sixth is one too many; the order is what it is, and may still be paid.
    simulate(&service, "order_1", "decline").await;
    assert_eq!(dossier(&service, &reference).await.attempts.len(), 5);
    simulate(&service, "order_1", "confirm").await;
    let told: Vec<_> = receiver.wait_for(2).await.iter().map(Received::status).collect();
    assert_eq!(told, ["PEN", "CON"]);
}

/// The payer waits for a push nobody answers.
async fn waits_for_a_push(service: &TestService, reference: &svc_service::domain::ReferenceNumber) {
    let payer = svc_service::domain::Author {
        actor: svc_service::domain::Actor::Payer,
        request_id: String::new(),
    };
    let choice = push("900000003");
    let dossier = svc_service::orders::pay(&service.app, reference, &choice, &payer).await.unwrap();
    assert!(dossier.in_flight().is_some());
}

async fn decline_refuses_the_attempt_that_is_under_way(database: TestDatabase) {
    let service = TestService::start(database).await;
    let reference = create(&service, "order_1", "http://127.0.0.1:3000/hook").await;
    waits_for_a_push(&service, &reference).await;
    simulate(&service, "order_1", "decline").await;
    let attempts = dossier(&service, &reference).await.attempts;
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].state, AttemptState::Rejected);
}

async fn pending_issues_a_reference_once_and_tells(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    let reference = create(&service, "order_1", &receiver.url()).await;
    let answer = simulate(&service, "order_1", "pending").await;
    assert_eq!(answer.json()["data"]["paymentStatus"], "PEN");
    let first = dossier(&service, &reference).await.attempts;
    assert_eq!((first.len(), first[0].state), (1, AttemptState::Issued));
    let life = first[0].deadline.duration_since(first[0].created_at);
    assert_eq!(life.as_mins(), 1_440);
    simulate(&service, "order_1", "pending").await;
    assert_eq!(dossier(&service, &reference).await.attempts, first);
    super::advance(&service, 60).await;
    let told: Vec<_> = receiver.requests().iter().map(Received::status).collect();
    assert_eq!(told, ["PEN"]);
}

async fn expire_ends_the_order_at_once_and_tells(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let service = TestService::start(database).await;
    for (id, first) in
        [("order_1", None), ("order_2", Some("pending")), ("order_3", Some("decline"))]
    {
        let reference = create(&service, id, &receiver.url()).await;
        if let Some(first) = first {
            simulate(&service, id, first).await;
        }
        let answer = simulate(&service, id, "expire").await;
        assert_eq!(answer.json()["data"]["paymentStatus"], "CAN", "{id}");
        let ended = dossier(&service, &reference).await;
        assert!(ended.attempts.iter().all(|attempt| attempt.state.is_over()), "{id}");
    }
    super::advance(&service, 60).await;
    let requests = receiver.requests();
    for id in ["order_1", "order_2", "order_3"] {
        let last = requests.iter().rfind(|request| request.order() == id).unwrap();
        assert_eq!(last.status(), "CAN", "{id}");
    }
}

async fn expire_waits_for_an_attempt_in_flight(database: TestDatabase) {
    let service = TestService::start(database).await;
    let reference = create(&service, "order_1", "http://127.0.0.1:3000/hook").await;
    waits_for_a_push(&service, &reference).await;
    let answer = simulate(&service, "order_1", "expire").await;
    assert_eq!(answer.json()["data"]["paymentStatus"], "PEN", "money may be moving");
    super::advance(&service, 90).await;
    let ended = dossier(&service, &reference).await;
    assert_eq!(ended.attempts[0].state, AttemptState::TimedOut);
    assert_eq!(ended.order.status.code(), "CAN", "when it was over");
}

async fn confirm_is_the_answer_to_the_attempt_in_flight(database: TestDatabase) {
    let service = TestService::start(database).await;
    let reference = create(&service, "order_1", "http://127.0.0.1:3000/hook").await;
    waits_for_a_push(&service, &reference).await;
    let answer = simulate(&service, "order_1", "confirm").await;
    assert_eq!(answer.json()["data"]["paymentStatus"], "CON");
    assert_eq!(dossier(&service, &reference).await.attempts[0].state, AttemptState::Accepted);
}

async fn cancel_waits_for_an_attempt_in_flight_and_decline_lets_it_through(database: TestDatabase) {
    let service = TestService::start(database).await;
    let reference = create(&service, "order_1", "http://127.0.0.1:3000/hook").await;
    waits_for_a_push(&service, &reference).await;
    let answer = simulate(&service, "order_1", "cancel").await;
    assert_eq!(answer.json()["data"]["paymentStatus"], "PEN");
    simulate(&service, "order_1", "decline").await;
    super::advance(&service, 1).await;
    assert_eq!(dossier(&service, &reference).await.order.status.code(), "CAN");
}
