//! GET /svcpartner/paymentByExternalTransaction (spec 4.3).

use hyper::{Method, StatusCode};
use svc_service::credentials;
use svc_service::store::PendingEvent;

use crate::support::{TestDatabase, TestService, application, on_both_engines};

on_both_engines! {
    unknown_foreign_and_misplaced_orders_are_not_found,
    missing_parameters_are_named,
    polling_one_order_too_fast_is_limited_and_others_are_not,
    two_nodes_read_each_others_writes,
}

async fn unknown_foreign_and_misplaced_orders_are_not_found(database: TestDatabase) {
    let service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    service.create(&token, &service.order("order_1")).await;
    let unknown = service.query(&token, service.application(), "order_2").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!(unknown.json()["error"], "order_not_found");
    // The same id in another application of the same partner is another order, which is not there.
    let other = credentials::create_application(
        &service.app,
        &service.partner.client_id,
        "Outra loja",
        PendingEvent::Instrument,
    )
    .await
    .unwrap();
    let uuid = other.publishable_key.application_uuid().as_str();
    let misplaced = service.query(&token, uuid, "order_1").await;
    assert_eq!(misplaced.json()["error"], "order_not_found");
    // A stranger learns nothing, whichever application it names.
    let stranger = service.token(&service.stranger).await;
    let foreign = service.query(&stranger, service.application(), "order_1").await;
    assert_eq!(foreign.json()["error"], "application_not_found");
    let own = service.query(&stranger, application(&service.stranger), "order_1").await;
    assert_eq!(own.json()["error"], "order_not_found");
}

async fn missing_parameters_are_named(database: TestDatabase) {
    let service = TestService::start(database).await;
    let bearer = format!("Bearer {}", service.token(&service.partner).await);
    for (query, field) in [
        ("", "externalTransactionId"),
        ("?externalTransactionId=&applicationUUID=x", "externalTransactionId"),
        ("?externalTransactionId=order_1", "applicationUUID"),
        ("?externalTransactionId=order_1&applicationUUID=pk_test_x", "applicationUUID"),
        (
            "?externalTransactionId=a&externalTransactionId=b&applicationUUID=x",
            "externalTransactionId",
        ),
    ] {
        let target = format!("/svcpartner/paymentByExternalTransaction{query}");
        let answer = service.call(Method::GET, &target, &[("authorization", &bearer)], "").await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
        assert_eq!(answer.json()["details"][0]["field"], field, "{query}");
    }
}

async fn polling_one_order_too_fast_is_limited_and_others_are_not(database: TestDatabase) {
    let service = TestService::start_with(database, |config| {
        config.limits.order_queries_per_second = 3;
    })
    .await;
    let token = service.token(&service.partner).await;
    service.create(&token, &service.order("order_1")).await;
    service.create(&token, &service.order("order_2")).await;
    let mut limited = None;
    for _ in 0..50 {
        let answer = service.query(&token, service.application(), "order_1").await;
        if answer.status != StatusCode::OK {
            limited = Some(answer);
            break;
        }
    }
    let limited = limited.expect("fifty queries in a moment pass three a second");
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(limited.json()["error"], "rate_limited");
    assert!(limited.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    let other = service.query(&token, service.application(), "order_2").await;
    assert_eq!(other.status, StatusCode::OK);
}

async fn two_nodes_read_each_others_writes(database: TestDatabase) {
    let first = TestService::start(database).await;
    let second = first.another_node().await;
    let token = first.token(&first.partner).await;
    let created = first.create(&token, &first.order("order_1")).await;
    assert_eq!(created.status, StatusCode::OK);
    // The token of one node is good on the other, and the order is there at once.
    let asked = second.query(&token, first.application(), "order_1").await;
    assert_eq!(asked.text, created.text);
}
