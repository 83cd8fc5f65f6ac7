//! POST /token (spec 4.1, 5.1).

use hyper::StatusCode;
use jiff::SignedDuration;
use svc_service::credentials;
use svc_service::domain::{Author, ClientId};
use svc_service::store::PartnerState;

use crate::support::{TestDatabase, TestService, on_both_engines};

on_both_engines! {
    a_token_is_answered_as_oauth_libraries_expect,
    validity_is_told_and_cut_to_a_day,
    a_token_lives_as_long_as_it_was_told,
    a_new_token_leaves_older_ones_valid,
    unknown_wrong_and_disabled_clients_get_the_same_answer,
    what_is_no_credential_by_its_looks_is_named,
    disabling_a_partner_kills_its_tokens_and_enabling_does_not_revive_them,
    rotation_kills_tokens_and_keeps_the_old_secret_for_its_overlap,
    a_partner_created_by_another_process_works_at_once,
}

const GRANT: &str = "grant_type=client_credentials";

async fn a_token_is_answered_as_oauth_libraries_expect(database: TestDatabase) {
    let service = TestService::start(database).await;
    let answer = service.token_answer(&service.partner, GRANT).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("pragma"), Some("no-cache"));
    let body = answer.json();
    assert!(!body["access_token"].as_str().unwrap().is_empty());
    assert_eq!(body["token_type"], "Bearer");
    assert_eq!(body["expires_in"], 3_600);
    assert_eq!(body["scope"], "default");
}

async fn validity_is_told_and_cut_to_a_day(database: TestDatabase) {
    let service = TestService::start(database).await;
    for (asked, told) in [("60", 60), ("86400", 86_400), ("86400000", 86_400)] {
        let form = format!("{GRANT}&validity_period={asked}");
        let answer = service.token_answer(&service.partner, &form).await;
        assert_eq!(answer.json()["expires_in"], told, "{asked}");
    }
    for bad in ["0", "-1", "1.5", "abc", "1e3", "0x10", "", "99999999999999999999"] {
        let form = format!("{GRANT}&validity_period={bad}");
        let answer = service.token_answer(&service.partner, &form).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{bad}");
        let body = answer.json();
        assert_eq!(body["error"], "invalid_request");
        assert_eq!(body["error_description"], body["message"]);
    }
}

async fn a_token_lives_as_long_as_it_was_told(database: TestDatabase) {
    let service = TestService::start_standing(database).await;
    let form = format!("{GRANT}&validity_period=60");
    let told = service.token_answer(&service.partner, &form).await.json();
    let token = told["access_token"].as_str().unwrap();
    let status = async || service.query(token, service.application(), "none").await.status;
    assert_eq!(status().await, StatusCode::NOT_FOUND);
    service.app.clock.advance(SignedDuration::from_millis(60_000));
    assert_eq!(status().await, StatusCode::NOT_FOUND, "never shorter than told");
    service.app.clock.advance(SignedDuration::from_millis(1_000));
    assert_eq!(status().await, StatusCode::UNAUTHORIZED);
}

async fn a_new_token_leaves_older_ones_valid(database: TestDatabase) {
    let service = TestService::start(database).await;
    let older = service.token(&service.partner).await;
    let newer = service.token(&service.partner).await;
    for (token, id) in [(older, "order_1"), (newer, "order_2")] {
        let answer = service.create(&token, &service.order(id)).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    }
}

async fn unknown_wrong_and_disabled_clients_get_the_same_answer(database: TestDatabase) {
    let service = TestService::start(database).await;
    let mut answers = Vec::new();
    let mut wrong = credentials::create_partner(&service.app, "Errada").await.unwrap();
    wrong.client_secret = "wrong".to_owned().into();
    answers.push(service.token_answer(&wrong, GRANT).await);
    wrong.client_id = ClientId::parse("nobody").unwrap();
    answers.push(service.token_answer(&wrong, GRANT).await);
    let disabled = credentials::create_partner(&service.app, "Parada").await.unwrap();
    let now = service.app.clock.now();
    service
        .app
        .store
        .set_partner_state(
            &disabled.client_id,
            PartnerState::Disabled,
            now,
            &Author::command_line(None),
        )
        .await
        .unwrap();
    answers.push(service.token_answer(&disabled, GRANT).await);
    for answer in answers {
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert!(answer.header("www-authenticate").unwrap().starts_with("Basic "));
        let mut body = answer.json();
        body.as_object_mut().unwrap().remove("requestId").unwrap();
        let message = "Credenciais inválidas. Envie CLIENT_ID e CLIENT_SECRET, que têm de pertencer um ao outro e a este ambiente, em Authorization: Basic, sem espaços nem quebras de linha.";
        let expected = serde_json::json!({
            "code": 401, "error": "invalid_client", "message": message, "error_description": message,
        });
        assert_eq!(body, expected);
    }
}

async fn what_is_no_credential_by_its_looks_is_named(database: TestDatabase) {
    let service = TestService::start(database).await;
    let application = &service.partner.application;
    for (secret, client, told) in [
        (Some(application.webhook_secret.clone()), None, "segredo dos webhooks"),
        (None, Some(application.publishable_key.to_string()), "chave pública"),
    ] {
        let mut wrong = credentials::create_partner(&service.app, "Errada").await.unwrap();
        wrong.client_secret = secret.unwrap_or(wrong.client_secret);
        wrong.client_id = client.map_or(wrong.client_id, |id| ClientId::parse(id).unwrap());
        let answer = service.token_answer(&wrong, GRANT).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        let body = answer.json();
        assert_eq!(body["error"], "invalid_client");
        assert!(body["message"].as_str().unwrap().contains(told), "{body}");
    }
}

async fn disabling_a_partner_kills_its_tokens_and_enabling_does_not_revive_them(
    database: TestDatabase,
) {
    let service = TestService::start(database).await;
    let (store, now) = (&service.app.store, service.app.clock.now());
    let token = service.token(&service.partner).await;
    let client = &service.partner.client_id;
    store
        .set_partner_state(client, PartnerState::Disabled, now, &Author::command_line(None))
        .await
        .unwrap();
    service.app.directory.refresh(store).await.unwrap();
    let refused = service.create(&token, &service.order("order_1")).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert_eq!(refused.json()["error"], "invalid_token");
    store
        .set_partner_state(client, PartnerState::Active, now, &Author::command_line(None))
        .await
        .unwrap();
    let still = service.create(&token, &service.order("order_1")).await;
    assert_eq!(still.status, StatusCode::UNAUTHORIZED);
    let fresh = service.token(&service.partner).await;
    let answer = service.create(&fresh, &service.order("order_1")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
}

async fn rotation_kills_tokens_and_keeps_the_old_secret_for_its_overlap(database: TestDatabase) {
    let mut service = TestService::start(database).await;
    let token = service.token(&service.partner).await;
    let client = service.partner.client_id.clone();
    let by = Author::command_line(None);
    let rotate = async |overlap, anyway| {
        credentials::rotate_client_secret(&service.app, &client, overlap, anyway, &by).await
    };
    let second = rotate(SignedDuration::from_hours(1), false).await.unwrap().unwrap();
    // The old secret still gets tokens, the new one does at once, the old token does not work.
    service.token(&service.partner).await;
    service.app.directory.refresh(&service.app.store).await.unwrap();
    let refused = service.create(&token, &service.order("order_1")).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    let third = rotate(SignedDuration::ZERO, true).await.unwrap().unwrap();
    service.partner.client_secret = third;
    service.token(&service.partner).await;
    service.partner.client_secret = second;
    let late = service.token_answer(&service.partner, GRANT).await;
    assert_eq!(late.status, StatusCode::UNAUTHORIZED);
}

async fn a_partner_created_by_another_process_works_at_once(database: TestDatabase) {
    let service = TestService::start(database).await;
    // The store knows it, this node's directory does not yet.
    let newcomer = credentials::create_partner(&service.app, "Nova").await.unwrap();
    service.token(&newcomer).await;
}
