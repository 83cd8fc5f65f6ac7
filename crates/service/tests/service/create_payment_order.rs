//! POST /svcpartner/createPaymentOrder (spec 4.2).

use std::sync::Arc;

use hyper::{Method, StatusCode};
use serde_json::json;
use svc_service::domain::{
    ApplicationId, ApplicationUuid, Author, ExternalTransactionId, WebhookHosts,
};

use crate::support::{TestDatabase, TestService, confirm, on_both_engines};

on_both_engines! {
    an_order_is_answered_in_the_envelope_of_the_query,
    the_same_request_again_is_a_replay,
    key_order_in_additional_info_does_not_make_another_request,
    other_content_under_the_same_id_is_a_conflict_that_names_the_fields,
    a_replay_after_payment_tells_the_current_state,
    sixty_four_at_once_get_equal_answers,
    applications_of_others_look_like_unknown_ones,
    every_missing_field_is_named_at_once,
    webhooks_of_an_application_go_to_the_hosts_named_for_it,
    messages_follow_the_reader_and_error_values_do_not,
    a_dead_database_is_told_as_503_and_heals,
}

async fn an_order_is_answered_in_the_envelope_of_the_query(database: TestDatabase) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let created = service.create(&token, &service.order("order_1")).await;
    assert_eq!(created.status, StatusCode::OK, "{}", created.text);
    assert_eq!(created.header("idempotent-replayed"), None);
    assert_eq!(created.header("access-control-allow-origin"), None);
    assert!(created.header("x-request-id").is_some());
    let body = created.json();
    assert_eq!((&body["code"], &body["message"]), (&json!(200), &json!("OK")));
    let data = body["data"].as_object().unwrap();
    assert_eq!(data.len(), 4);
    assert_eq!(data["externalTransactionId"], "order_1");
    assert_eq!(data["paymentStatus"], "PEN");
    assert_eq!(data["amount"], 15_000);
    let reference = data["referenceNumber"].as_str().unwrap();
    assert_eq!(reference.len(), 26);
    let asked = service.query(&token, service.application(), "order_1").await;
    assert_eq!(asked.text, created.text);
}

async fn the_same_request_again_is_a_replay(database: TestDatabase) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let first = service.create(&token, &service.order("order_1")).await;
    let again = service.create(&token, &service.order("order_1")).await;
    assert_eq!(again.status, StatusCode::OK);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.text, first.text);
}

async fn key_order_in_additional_info_does_not_make_another_request(database: TestDatabase) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let mut order = service.order("order_1");
    service.create(&token, &order).await;
    order["additionalInfo"] = json!(
        r#"{ "webhookUrl": "http://127.0.0.1:3000/hook", "cancelUrl": "http://127.0.0.1:3000/cancel", "returnUrl": "http://127.0.0.1:3000/ok" }"#
    );
    let again = service.create(&token, &order).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"), "{}", again.text);
}

async fn other_content_under_the_same_id_is_a_conflict_that_names_the_fields(
    database: TestDatabase,
) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    service.create(&token, &service.order("order_1")).await;
    let mut other = service.order("order_1");
    other["amount"] = json!(16_000);
    other["name"] = json!("Outro livro");
    let conflict = service.create(&token, &other).await;
    assert_eq!(conflict.status, StatusCode::CONFLICT);
    let body = conflict.json();
    assert_eq!(body["error"], "idempotency_conflict");
    let message = body["message"].as_str().unwrap();
    assert!(message.contains(": name, amount. Use "), "{message}");
    let unchanged = service.query(&token, service.application(), "order_1").await;
    assert_eq!(unchanged.json()["data"]["amount"], 15_000);
}

async fn a_replay_after_payment_tells_the_current_state(database: TestDatabase) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let first = service.create(&token, &service.order("order_1")).await.json();
    let store = &service.app.store;
    let application = store.directory().await.unwrap().applications[0].id;
    assert_ne!(application, ApplicationId(0));
    let id = ExternalTransactionId::parse("order_1").unwrap();
    let reference = store.standing(application, &id).await.unwrap().unwrap().reference_number;
    let order = store.order_by_reference(&reference).await.unwrap().unwrap();
    store.commit(confirm(&order)).await.unwrap();
    let again = service.create(&token, &service.order("order_1")).await.json();
    assert_eq!(again["data"]["paymentStatus"], "CON");
    assert_eq!(again["data"]["referenceNumber"], first["data"]["referenceNumber"]);
}

async fn sixty_four_at_once_get_equal_answers(database: TestDatabase) {
    let service = Arc::new(TestService::start(database).await);
    let token = service.token(&service.partner).await;
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let (service, token) = (Arc::clone(&service), token.clone());
            tokio::spawn(async move { service.create(&token, &service.order("order_1")).await })
        })
        .collect();
    let (mut texts, mut first_ones) = (std::collections::HashSet::new(), 0);
    for call in calls {
        let answer = call.await.unwrap();
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        first_ones += usize::from(answer.header("idempotent-replayed").is_none());
        texts.insert(answer.text);
    }
    assert_eq!((texts.len(), first_ones), (1, 1));
}

async fn applications_of_others_look_like_unknown_ones(database: TestDatabase) {
    let service = TestService::start(database).await;
    let token = service.token(&service.stranger).await;
    let foreign = service.create(&token, &service.order("order_1")).await;
    let mut order = service.order("order_1");
    order["applicationUUID"] = json!("00000000-0000-4000-8000-000000000000");
    let unknown = service.create(&token, &order).await;
    for answer in [foreign, unknown] {
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert_eq!(answer.json()["error"], "application_not_found");
    }
}

async fn webhooks_of_an_application_go_to_the_hosts_named_for_it(database: TestDatabase) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let uuid = ApplicationUuid::parse(service.application().to_owned()).unwrap();
    let (hosts, by) = (WebhookHosts::parse(&["127.0.0.1"]).unwrap(), Author::command_line(None));
    let store = &service.app.store;
    store.set_webhook_hosts(&uuid, Some(&hosts), service.app.clock.now(), &by).await.unwrap();
    service.app.directory.refresh(store).await.unwrap();
    let named = service.create(&token, &service.order("order_1")).await;
    assert_eq!(named.status, StatusCode::OK, "{}", named.text);
    let elsewhere = service.order_to("order_2", "http://127.0.0.2:3000/hook");
    let refused = service.create(&token, &elsewhere).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
    let fault = &refused.json()["details"][0];
    assert_eq!(fault["field"], "additionalInfo.webhookUrl", "{}", refused.text);
    assert_eq!(fault["issue"], "host_not_named", "{}", refused.text);
    assert_eq!(service.query(&token, service.application(), "order_2").await.status, 404);
}

async fn every_missing_field_is_named_at_once(database: TestDatabase) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let answer = service.create(&token, &json!({})).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    let body = answer.json();
    let named: Vec<_> =
        body["details"].as_array().unwrap().iter().map(|d| d["field"].as_str().unwrap()).collect();
    assert_eq!(
        named,
        [
            "externalTransactionId",
            "clientId",
            "applicationUUID",
            "name",
            "amount",
            "quantity",
            "additionalInfo"
        ]
    );
    assert!(body["details"].as_array().unwrap().iter().all(|d| d["issue"] == "required"));
}

async fn messages_follow_the_reader_and_error_values_do_not(database: TestDatabase) {
    let service = TestService::start(database).await;
    let mut texts = std::collections::HashSet::new();
    let cases: [(&[&str], &str); 5] = [
        (&[""], "pt"),
        (&["pt-AO"], "pt"),
        (&["en"], "en"),
        (&["fr;q=0.9,de"], "fr"),
        (&["de", "en;q=0.5"], "en"),
    ];
    for (wanted, spoken) in cases {
        let headers: Vec<_> = wanted.iter().map(|line| ("accept-language", *line)).collect();
        let answer =
            service.call(Method::POST, "/svcpartner/createPaymentOrder", &headers, "").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert_eq!(answer.header("content-language"), Some(spoken), "{wanted:?}");
        let body = answer.json();
        assert_eq!(body["error"], "invalid_token");
        assert_eq!(body["code"], 401);
        texts.insert(body["message"].as_str().unwrap().to_owned());
    }
    assert_eq!(texts.len(), 3);
}

async fn a_dead_database_is_told_as_503_and_heals(database: TestDatabase) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    service.sql("alter table orders rename to orders_gone").await;
    let broken = service.create(&token, &service.order("order_1")).await;
    assert_eq!(broken.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(broken.header("retry-after"), Some("1"));
    let body = broken.json();
    assert_eq!(body["error"], "storage_unavailable");
    assert!(!broken.text.contains("orders"), "an error must not tell about tables");
    service.sql("alter table orders_gone rename to orders").await;
    let healed = service.create(&token, &service.order("order_1")).await;
    assert_eq!(healed.status, StatusCode::OK, "{}", healed.text);
}
