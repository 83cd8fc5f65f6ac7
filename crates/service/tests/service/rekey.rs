//! One master key takes over from another while the service runs.

use axum::http::StatusCode;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::SignedDuration;
use secrecy::{ExposeSecret, SecretString};
use svc_service::app::{App, StartError};
use svc_service::audit;
use svc_service::config::Config;
use svc_service::credentials::{self, Takeover};
use svc_service::domain::{Author, Login, ReferenceNumber, Role};
use svc_service::keys::KeyError;
use svc_service::orders;
use svc_service::rekey::{RekeyError, SealedAnew, rekey};
use svc_service::store::{PersonChange, SealedIn};

use crate::support::{TestDatabase, TestService, on_both_engines, push};

on_both_engines! {
    nothing_is_lost_when_a_master_key_takes_over,
    whoever_has_the_old_key_makes_no_history,
    going_back_is_taking_over_too,
    a_secret_that_nobody_can_read_is_named,
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

/// More than are looked at in one go.
const PEOPLE: usize = 201;

/// An order that is paid by telephone, a webhook secret with the one before, people with one-time codes.
async fn seal_some_of_each(service: &TestService) {
    let token = service.token(&service.partner).await;
    let order = service.create(&token, &service.order("order_1")).await.json();
    let reference = order["data"]["referenceNumber"].as_str().unwrap();
    let reference = ReferenceNumber::parse(reference).unwrap();
    let app = &service.app;
    orders::pay(app, &reference, &push("900000003"), &by()).await.unwrap();
    let uuid = service.partner.application.publishable_key.application_uuid();
    let hour = SignedDuration::from_hours(1);
    let takeover = Takeover { switch_after: hour, overlap: hour };
    credentials::rotate_webhook_secret(app, uuid, takeover, &by()).await.unwrap();
    for number in 0..PEOPLE {
        let (login, now) = (Login::parse(&format!("person-{number}")).unwrap(), app.clock.now());
        app.store.create_person(&login, None, Role::Owner, now, &by()).await.unwrap();
        let person = app.store.person_by_login(&login).await.unwrap().unwrap();
        let seed = app.keys.seal(&format!("seed {number}"), app.random.bytes());
        app.store.change_person(&person, PersonChange::Totp(Some(seed)), now, &by()).await.unwrap();
    }
}

/// Every sealed secret of the database, in the order of their kinds.
async fn opened(app: &App) -> Vec<String> {
    let mut opened = Vec::new();
    for place in SealedIn::ALL {
        let rows = app.store.sealed_rows(place, None, 1_000).await.unwrap();
        for sealed in rows.into_iter().filter_map(|row| row.sealed) {
            opened.push(app.keys.open(&sealed).unwrap().expose_secret().to_owned());
        }
    }
    opened
}

/// Whether the history is as it was sealed, all of it.
async fn is_history_whole(app: &App) -> bool {
    let last = app.store.last_audit_id().await.unwrap();
    audit::seal_up_to(app, last).await.unwrap();
    let verdict = audit::verify(app, None).await.unwrap();
    assert!(verdict.seals > 0);
    verdict.faults.is_empty()
}

async fn nothing_is_lost_when_a_master_key_takes_over(database: TestDatabase) {
    let mut old = TestService::start_with(database, go_by(1, None)).await;
    seal_some_of_each(&old).await;
    assert!(is_history_whole(&old.app).await);
    let token = old.token(&old.partner).await;

    // First every node understands the new one, then every node uses it.
    let mut ready = old.another_node_with(go_by(1, Some(2))).await;
    let new = old.another_node_with(go_by(2, Some(1))).await;
    let refused = old.open_again(go_by(1, None)).await;
    assert!(matches!(refused, Err(StartError::ServedWithAnother)), "it could not read that");
    let secrets = opened(&new.app).await;
    assert_eq!(secrets.len(), 7 + 1 + PEOPLE, "three times two partners, one of them with two");
    assert_eq!(opened(&ready.app).await, secrets, "also what the new one has sealed");
    let new_token = new.token(&old.partner).await;
    for (node, token) in [(&ready, &new_token), (&new, &token)] {
        let found = node.query(token, old.application(), "order_1").await;
        assert_eq!(found.status, StatusCode::OK);
    }
    old.stop().await;
    ready.stop().await;

    let slower = new.open_again(go_by(2, Some(1))).await.unwrap();
    let done = rekey(&new.app, false, &by()).await.unwrap();
    assert!(matches!(rekey(&slower, false, &by()).await, Err(RekeyError::Meanwhile)));
    let expected =
        SealedAnew { webhook_secrets: 5, phones: 1, one_time_codes: PEOPLE, unreadable: vec![] };
    assert_eq!(done, expected);
    assert_eq!(opened(&new.app).await, secrets);
    assert!(is_history_whole(&new.app).await);

    // The old one goes.
    let alone = new.open_again(go_by(2, None)).await.unwrap();
    assert_eq!(opened(&alone).await, secrets);
    assert!(is_history_whole(&alone).await, "sealed with one, then with the other");
    let told = "select count(*) from audit where action = 'master_key.change'";
    assert_eq!(new.number(told).await, 1);
    let refused = new.open_again(go_by(1, None)).await;
    assert!(matches!(refused, Err(StartError::OtherMasterKey)));
    let refused = new.open_again(go_by(1, Some(2))).await;
    assert!(
        matches!(refused, Err(StartError::Key(KeyError::Retired))),
        "a node that was forgotten"
    );
    let alone = new.another_node_with(go_by(2, None)).await;
    let ask = async |token: &str| alone.query(token, old.application(), "order_1").await.status;
    assert_eq!(ask(&token).await, StatusCode::UNAUTHORIZED);
    assert_eq!(ask(&alone.token(&old.partner).await).await, StatusCode::OK);
}

async fn whoever_has_the_old_key_makes_no_history(database: TestDatabase) {
    let old = TestService::start_with(database, go_by(1, None)).await;
    let first = old.app.store.last_audit_id().await.unwrap();
    audit::seal_up_to(&old.app, first).await.unwrap();
    let new = old.another_node_with(go_by(2, Some(1))).await;
    let thief = new.open_again(go_by(1, Some(2))).await.unwrap();
    drop(old);
    rekey(&new.app, false, &by()).await.unwrap();
    let alone = new.open_again(go_by(2, None)).await.unwrap();
    // A row is made to tell something else, its seal is made anew, and the service goes on from there.
    new.sql("delete from audit_seals").await;
    new.sql("update audit set subject = 'another' where id = 1").await;
    audit::seal_up_to(&thief, first).await.unwrap();
    let last = alone.store.last_audit_id().await.unwrap();
    audit::seal_up_to(&alone, last).await.unwrap();
    let verdict = audit::verify(&alone, None).await.unwrap();
    let is_known = |fault: &audit::Fault| matches!(fault, audit::Fault::Known { .. });
    assert!(verdict.faults.iter().any(is_known), "{:?}", verdict.faults);
}

async fn going_back_is_taking_over_too(database: TestDatabase) {
    let old = TestService::start_with(database, go_by(1, None)).await;
    let new = old.another_node_with(go_by(2, Some(1))).await;
    assert!(is_history_whole(&new.app).await, "sealed with the new one");
    let secrets = opened(&new.app).await;
    let back = old.another_node_with(go_by(1, Some(2))).await;
    drop((old, new));
    let done = rekey(&back.app, false, &by()).await.unwrap();
    assert_eq!(done.webhook_secrets, 2, "of the new node");
    let alone = back.open_again(go_by(1, None)).await.unwrap();
    assert_eq!(opened(&alone).await[..4], secrets[..]);
    assert!(is_history_whole(&alone).await);
    let back = back.open_again(go_by(1, Some(2))).await.unwrap();
    assert_eq!(rekey(&back, false, &by()).await.unwrap(), SealedAnew::default(), "all is done");
}

async fn a_secret_that_nobody_can_read_is_named(database: TestDatabase) {
    let old = TestService::start_with(database, go_by(1, None)).await;
    seal_some_of_each(&old).await;
    let new = old.another_node_with(go_by(2, Some(1))).await;
    drop(old);
    let foreign = svc_service::keys::Keys::derive(&key(9).unwrap()).unwrap();
    let login = Login::parse("person-0").unwrap();
    let person = new.app.store.person_by_login(&login).await.unwrap().unwrap();
    let codes = PersonChange::Totp(Some(foreign.seal("seed", new.app.random.bytes())));
    new.app.store.change_person(&person, codes, new.app.clock.now(), &by()).await.unwrap();
    let refused = rekey(&new.app, false, &by()).await;
    let Err(RekeyError::Unreadable(rows)) = refused else { panic!("{refused:?}") };
    assert_eq!(rows, [format!("people {}", person.id)]);
    assert!(new.open_again(go_by(1, Some(2))).await.is_ok(), "the old one is still good");
    let done = rekey(&new.app, true, &by()).await.unwrap();
    assert_eq!(done.unreadable, rows);
    assert!(new.open_again(go_by(2, None)).await.is_ok());
}

async fn a_key_that_nobody_serves_with_takes_nothing_over(database: TestDatabase) {
    let old = TestService::start_with(database, go_by(1, None)).await;
    assert!(matches!(rekey(&old.app, false, &by()).await, Err(RekeyError::NoOther)));
    let command = old.open_again(go_by(2, Some(1))).await.unwrap();
    assert!(matches!(rekey(&command, false, &by()).await, Err(RekeyError::NotServed)));
    let too_early = old.another_node_with(go_by(1, Some(2))).await;
    assert!(matches!(rekey(&too_early.app, false, &by()).await, Err(RekeyError::GoesByIt)));
    let again = old.another_node_with(go_by(1, None)).await;
    assert_eq!(opened(&again.app).await.len(), 6, "it goes by the old one");
}
