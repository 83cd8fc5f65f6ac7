//! The request log: found by its id, without what is secret or personal.

use hyper::StatusCode;
use secrecy::ExposeSecret;
use serde_json::json;
use svc_service::store::LoggedRequest;

use super::world::{Visitor, World, ids_on, next_page, until};
use crate::support::*;

on_both_engines! {
    a_refused_call_is_found_by_its_request_id_without_its_secrets,
    whatever_a_caller_calls_a_field_is_noted,
    a_call_without_a_partner_is_for_operators_only,
    calls_of_the_same_moment_are_all_listed,
    old_calls_are_forgotten,
}

/// The page of a request, once it is written.
async fn page_of(world: &World, who: &Visitor, request_id: &str) -> String {
    let target = format!("/console/requests/{request_id}");
    until(async || world.get(who, &target).await.status == StatusCode::OK).await;
    world.get(who, &target).await.text
}

async fn a_refused_call_is_found_by_its_request_id_without_its_secrets(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let service = &world.service;
    let token = service.token(&service.partner).await;
    let mut body = service.order("loja-refused");
    body["amount"] = json!(-5);
    body["clientId"] = "923111222".into();
    body["phone"] = "923333444".into();
    body["clientSecret"] = service.partner.client_secret.expose_secret().into();
    body["nested"] = json!({ "token": "tok-555" });
    body["additionalInfo"] = json!({
        "returnUrl": "http://127.0.0.1:3000/ok?session=ses-666",
        "cancelUrl": "http://user:pass-777@127.0.0.1:3000/no",
        "webhookUrl": "http://127.0.0.1:3000/hook#frag-888",
        "phone": "923999000",
    })
    .to_string()
    .into();
    let answer = service.create(&token, &body).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", answer.text);
    let request_id = answer.header("x-request-id").unwrap();
    let page = page_of(&world, &ana, request_id).await;
    for shown in [
        "loja-refused",
        "422",
        "invalid_body",
        "amount: too_small",
        "/svcpartner/createPaymentOrder",
        "http://127.0.0.1:3000/ok?…",
    ] {
        assert!(page.contains(shown), "{shown} in {page}");
    }
    let secrets = [
        "923111222",
        "923333444",
        service.partner.client_secret.expose_secret(),
        "tok-555",
        "ses-666",
        "pass-777",
        "frag-888",
        "923999000",
        &token,
    ];
    for secret in secrets {
        assert!(!page.contains(secret), "{secret} in {page}");
        assert!(!service.holds(secret).await, "{secret} is in the database");
    }
    let found = world.get(&ana, &format!("/console/search?id={request_id}")).await;
    assert_eq!(found.header("location"), Some(&*format!("/console/requests/{request_id}")));
    let list = world.get(&ana, "/console/requests").await.text;
    assert!(list.contains(request_id) && list.contains(&world.request_id));
    let refused = world.get(&ana, "/console/requests?show=refused").await.text;
    assert!(refused.contains(request_id) && !refused.contains(&world.request_id));
}

async fn whatever_a_caller_calls_a_field_is_noted(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let service = &world.service;
    let token = service.token(&service.partner).await;
    let mut body = service.order("loja-odd");
    body["additionalInfo"] = r#"{"a\u0000b":1,"a\u0000b":2}"#.into();
    let answer = service.create(&token, &body).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", answer.text);
    let page = page_of(&world, &ana, answer.header("x-request-id").unwrap()).await;
    assert!(page.contains(r"additionalInfo.a\0b: duplicate"), "{page}");
}

async fn a_call_without_a_partner_is_for_operators_only(database: TestDatabase) {
    let world = World::start(database).await;
    let (ana, olga) = (world.owner().await, world.operator().await);
    let headers = [("authorization", "Bearer not-a-token-999"), super::world::FORM];
    let target = "/svcpartner/paymentByExternalTransaction?externalTransactionId=loja-open";
    let answer = world.service.call(hyper::Method::GET, target, &headers, "").await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    let request_id = answer.header("x-request-id").unwrap();
    let page = page_of(&world, &olga, request_id).await;
    assert!(!page.contains("not-a-token-999") && !page.contains("loja-open"), "{page}");
    let theirs = world.get(&ana, &format!("/console/requests/{request_id}")).await;
    assert_eq!(theirs.status, StatusCode::NOT_FOUND);
}

fn call(world: &World, number: usize, at: jiff::Timestamp) -> LoggedRequest {
    LoggedRequest {
        request_id: format!("same-{number:03}"),
        at,
        partner: Some(world.partner_id(&world.service.partner)),
        method: "GET".into(),
        path: "/svcpartner/events".into(),
        status: 404,
        error: None,
        details: None,
        took_us: 1_234,
        body: String::new(),
    }
}

async fn calls_of_the_same_moment_are_all_listed(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let now = world.app().clock.now();
    let calls = (0..130).map(|number| call(&world, number, now)).collect();
    world.app().store.log_requests(calls).await.unwrap();
    let mut seen = Vec::new();
    let mut target = Some("/console/requests?show=refused".to_owned());
    while let Some(at) = target {
        let answer = world.get(&ana, &at).await;
        let row = "<td class=\"wide\" data-label=\"\"><a href=\"/console/requests/";
        seen.extend(ids_on(&answer, row));
        target = next_page(&answer);
        assert!(target.as_ref().is_none_or(|next| next.contains("show=refused")));
        assert!(seen.len() < 1_000, "it goes round in circles");
    }
    let same = seen.iter().filter(|id| id.starts_with("same-")).count();
    assert_eq!(same, 130);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.iter().filter(|id| id.starts_with("same-")).count(), 130, "each once");
}

async fn old_calls_are_forgotten(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let (old, young) = (at(0), at(1_000));
    let calls = vec![call(&world, 1, old), call(&world, 2, young)];
    world.app().store.log_requests(calls).await.unwrap();
    world.app().store.forget_requests(young).await.unwrap();
    let status = async |id: &str| world.get(&ana, &format!("/console/requests/{id}")).await.status;
    assert_eq!(status("same-001").await, StatusCode::NOT_FOUND);
    assert_eq!(status("same-002").await, StatusCode::OK);
}
