//! One master key takes over from another while the service runs.

use axum::http::StatusCode;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret, SecretString};
use svc_service::app::{App, StartError};
use svc_service::audit;
use svc_service::config::Config;
use svc_service::domain::{Author, Login, Role};
use svc_service::orders;
use svc_service::rekey::{RekeyError, SealedAnew, rekey};
use svc_service::store::{PersonChange, SealedIn};

use crate::support::{TestDatabase, TestService, on_both_engines, push};

on_both_engines! {
    nothing_is_lost_when_a_master_key_takes_over,
    a_key_that_nobody_serves_with_takes_nothing_over,
}

fn key(byte: u8) -> Option<SecretString> {
    Some(STANDARD.encode([byte; 32]).into())
}

fn go_by(current: u8, other: Option<u8>) -> impl FnOnce(&mut Config) {
    move |config| {
        config.master_key = key(current);
        config.other_master_key = other.and_then(key);
    }
}

fn by() -> Author {
    Author::command_line(None)
}

/// An order that is paid by telephone, and a person with one-time codes.
async fn seal_one_of_each(service: &TestService) {
    let token = service.token(&service.partner).await;
    let order = service.create(&token, &service.order("order_1")).await.json();
    let reference = order["data"]["referenceNumber"].as_str().unwrap();
    let reference = svc_service::domain::ReferenceNumber::parse(reference).unwrap();
    orders::pay(&service.app, &reference, &push("900000003"), &by()).await.unwrap();
    let (app, login) = (&service.app, Login::parse("olga").unwrap());
    app.store.create_person(&login, None, Role::Owner, app.clock.now(), &by()).await.unwrap();
    let olga = app.store.person_by_login(&login).await.unwrap().unwrap();
    let codes = PersonChange::Totp(Some(app.keys.seal("seed", app.random.bytes())));
    app.store.change_person(&olga, codes, app.clock.now(), &by()).await.unwrap();
}

/// Every sealed secret of the database, in the order of their kinds.
async fn opened(app: &App) -> Vec<String> {
    let mut opened = Vec::new();
    for place in SealedIn::ALL {
        for row in app.store.sealed_rows(place, None, 100).await.unwrap() {
            opened.push(app.keys.open(&row.sealed).unwrap().expose_secret().to_owned());
        }
    }
    opened
}

async fn is_history_whole(app: &App) -> bool {
    let last = app.store.last_audit_id().await.unwrap();
    audit::seal_up_to(app, last).await.unwrap();
    let verdict = audit::verify(app, None).await.unwrap();
    assert!(verdict.seals > 0);
    verdict.faults.is_empty()
}

async fn nothing_is_lost_when_a_master_key_takes_over(database: TestDatabase) {
    let old = TestService::start_with(database, go_by(1, None)).await;
    seal_one_of_each(&old).await;
    assert!(is_history_whole(&old.app).await);
    let token = old.token(&old.partner).await;

    // First every node understands the new one, then every node uses it.
    let ready = old.another_node_with(go_by(1, Some(2))).await;
    let new = old.another_node_with(go_by(2, Some(1))).await;
    let secrets = opened(&new.app).await;
    assert!(secrets.contains(&"+244900000003".to_owned()) && secrets.contains(&"seed".to_owned()));
    assert_eq!(opened(&ready.app).await, secrets, "also what the new one has sealed");
    let new_token = new.token(&old.partner).await;
    for (node, token) in [(&ready, &new_token), (&new, &token)] {
        let found = node.query(token, old.application(), "order_1").await;
        assert_eq!(found.status, StatusCode::OK);
    }

    let done = rekey(&new.app, &by()).await.unwrap();
    // Two partners of each of the first two nodes; the third sealed with the new one.
    assert_eq!(done, SealedAnew { webhook_secrets: 4, phones: 1, one_time_codes: 1 });
    assert_eq!(opened(&ready.app).await, secrets);
    assert_eq!(rekey(&new.app, &by()).await.unwrap(), SealedAnew::default(), "all is done");

    // The old one goes.
    let alone = old.another_node_with(go_by(2, None)).await;
    assert_eq!(opened(&alone.app).await[..6], secrets[..6]);
    assert_eq!(alone.query(&token, old.application(), "order_1").await.status, 401);
    let token = alone.token(&old.partner).await;
    assert_eq!(alone.query(&token, old.application(), "order_1").await.status, StatusCode::OK);
    assert!(is_history_whole(&alone.app).await, "sealed with one, then with the other");
    let told = "select count(*) from audit where action = 'master_key.change'";
    assert_eq!(alone.number(told).await, 1);
    let refused = old.open_again(go_by(1, None)).await;
    assert!(matches!(refused, Err(StartError::OtherMasterKey)));
}

async fn a_key_that_nobody_serves_with_takes_nothing_over(database: TestDatabase) {
    let old = TestService::start_with(database, go_by(1, None)).await;
    assert!(matches!(rekey(&old.app, &by()).await, Err(RekeyError::NoOther)));
    let command = old.open_again(go_by(2, Some(1))).await.unwrap();
    assert!(matches!(rekey(&command, &by()).await, Err(RekeyError::NotServed)));
    let again = old.another_node_with(go_by(1, None)).await;
    assert_eq!(opened(&again.app).await.len(), 4, "it goes by the old one");
}
