//! Partners and applications in the store, alike on both engines.

use jiff::SignedDuration;
use svc_service::domain::*;
use svc_service::store::*;

use crate::support::{TestDatabase, at, on_both_engines};

on_both_engines! {
    a_partner_is_born_with_an_application,
    rotation_keeps_the_previous_secret_and_raises_the_epoch,
    a_webhook_secret_that_never_signed_alone_is_not_the_previous_one,
    without_an_overlap_the_old_secret_is_forgotten,
    every_change_of_the_directory_raises_its_version_and_is_audited,
    unknown_partners_and_taken_ids_are_named,
}

fn new_partner(client: &str, uuid: &str) -> NewPartner {
    NewPartner {
        name: "Loja".into(),
        client_id: ClientId::parse(client).unwrap(),
        secret_hash: vec![1; 32],
        application: new_application(client, uuid),
        at: at(0),
    }
}

fn new_application(client: &str, uuid: &str) -> NewApplication {
    NewApplication {
        partner: ClientId::parse(client).unwrap(),
        name: "Loja online".into(),
        uuid: ApplicationUuid::parse(uuid).unwrap(),
        sealed_webhook_secret: vec![2; 60],
        pending_event: PendingEvent::Instrument,
        at: at(0),
    }
}

fn rotation(byte: u8) -> Rotation {
    Rotation {
        secret: vec![byte; 32],
        previous_until: Some(at(0) + SignedDuration::from_hours(1)),
        at: at(0),
        by: Author::command_line(None),
    }
}

async fn a_partner_is_born_with_an_application(database: TestDatabase) {
    let store = database.store().await;
    store.create_partner(new_partner("client-a", "uuid-a")).await.unwrap();
    store.create_application(new_application("client-a", "uuid-b")).await.unwrap();
    let directory = store.directory().await.unwrap();
    let [partner] = &directory.partners[..] else { panic!("one partner") };
    assert_eq!(partner.client_id.as_str(), "client-a");
    assert_eq!((partner.state, partner.epoch), (PartnerState::Active, 1));
    assert_eq!(partner.created_at, at(0));
    let uuids: Vec<_> = directory.applications.iter().map(|a| a.uuid.as_str()).collect();
    assert_eq!(uuids, ["uuid-a", "uuid-b"]);
    assert!(directory.applications.iter().all(|a| a.partner == partner.id));
}

async fn rotation_keeps_the_previous_secret_and_raises_the_epoch(database: TestDatabase) {
    let store = database.store().await;
    let client = ClientId::parse("client-a").unwrap();
    store.create_partner(new_partner("client-a", "uuid-a")).await.unwrap();
    assert!(store.rotate_partner_secret(&client, rotation(9), false).await.unwrap());
    let again = store.rotate_partner_secret(&client, rotation(7), false).await.unwrap();
    assert!(!again, "the secret that is in use would end");
    store.rotate_webhook_secret("uuid-a", webhook_rotation(8, 0)).await.unwrap();
    store
        .set_partner_state(&client, PartnerState::Disabled, at(1), &Author::command_line(None))
        .await
        .unwrap();
    let directory = store.directory().await.unwrap();
    let partner = &directory.partners[0];
    assert_eq!(partner.secret_hash, [9; 32]);
    assert_eq!(partner.previous_secret, Some((vec![1; 32], rotation(0).previous_until.unwrap())));
    assert_eq!((partner.epoch, partner.state), (3, PartnerState::Disabled));
    let application = &directory.applications[0];
    assert_eq!(application.webhook_secret, [8; 32]);
    let previous = application.previous_webhook_secret.as_ref().unwrap();
    assert_eq!(previous.sealed, [2; 60]);
    assert_eq!((previous.switch_at, Some(previous.until)), (at(0), rotation(0).previous_until));
}

async fn a_webhook_secret_that_never_signed_alone_is_not_the_previous_one(database: TestDatabase) {
    let store = database.store().await;
    store.create_partner(new_partner("client-a", "uuid-a")).await.unwrap();
    let previous = async || {
        let application = store.directory().await.unwrap().applications.remove(0);
        application.previous_webhook_secret.unwrap().sealed
    };
    store.rotate_webhook_secret("uuid-a", webhook_rotation(8, 60_000)).await.unwrap();
    assert_eq!(previous().await, [2; 60]);
    // Before the first rotation took over, another one: merchants still know the first secret only.
    store.rotate_webhook_secret("uuid-a", webhook_rotation(9, 60_000)).await.unwrap();
    assert_eq!(previous().await, [2; 60]);
    let mut later = webhook_rotation(10, 120_000);
    later.at = at(60_000);
    store.rotate_webhook_secret("uuid-a", later).await.unwrap();
    assert_eq!(previous().await, [9; 32]);
}

/// Another node's clock may say that its time is not over.
async fn without_an_overlap_the_old_secret_is_forgotten(database: TestDatabase) {
    let store = database.store().await;
    let client = ClientId::parse("client-a").unwrap();
    store.create_partner(new_partner("client-a", "uuid-a")).await.unwrap();
    let at_once = Rotation { previous_until: None, ..rotation(9) };
    assert!(store.rotate_partner_secret(&client, at_once, false).await.unwrap());
    let at_once = WebhookRotation { previous_until: None, ..webhook_rotation(8, 0) };
    store.rotate_webhook_secret("uuid-a", at_once).await.unwrap();
    let directory = store.directory().await.unwrap();
    let (partner, application) = (&directory.partners[0], &directory.applications[0]);
    assert_eq!((&partner.secret_hash[..], &partner.previous_secret), (&[9; 32][..], &None));
    assert_eq!(application.webhook_secret, [8; 32]);
    assert!(application.previous_webhook_secret.is_none());
    for kept in [
        "select count(previous_secret_hash) from partners",
        "select count(previous_webhook_secret) from applications",
    ] {
        assert_eq!(database.number(kept).await, 0, "{kept}");
    }
}

fn webhook_rotation(byte: u8, switch_ms: i64) -> WebhookRotation {
    let Rotation { secret, previous_until, at: now, by } = rotation(byte);
    WebhookRotation { secret, switch_at: at(switch_ms), previous_until, at: now, by }
}

async fn every_change_of_the_directory_raises_its_version_and_is_audited(database: TestDatabase) {
    let store = database.store().await;
    let client = ClientId::parse("client-a").unwrap();
    let mut versions = vec![store.directory_version().await.unwrap()];
    store.create_partner(new_partner("client-a", "uuid-a")).await.unwrap();
    versions.push(store.directory_version().await.unwrap());
    store.rotate_partner_secret(&client, rotation(9), false).await.unwrap();
    versions.push(store.directory_version().await.unwrap());
    store
        .set_partner_state(&client, PartnerState::Disabled, at(1), &Author::command_line(None))
        .await
        .unwrap();
    versions.push(store.directory_version().await.unwrap());
    assert!(versions.is_sorted_by(|a, b| a < b), "{versions:?}");
    let actions: Vec<_> =
        store.audit_of("client-a").await.unwrap().into_iter().map(|row| row.action).collect();
    assert_eq!(actions, ["partner.create", "partner.rotate_secret", "partner.disable"]);
}

async fn unknown_partners_and_taken_ids_are_named(database: TestDatabase) {
    let store = database.store().await;
    let nobody = ClientId::parse("nobody").unwrap();
    store.create_partner(new_partner("client-a", "uuid-a")).await.unwrap();
    let taken = store.create_partner(new_partner("client-a", "uuid-b")).await;
    assert!(matches!(taken, Err(StoreError::Taken(_))), "{taken:?}");
    let taken = store.create_partner(new_partner("client-b", "uuid-a")).await;
    assert!(matches!(taken, Err(StoreError::Taken(_))), "{taken:?}");
    // The refused partner left nothing behind.
    assert_eq!(store.directory().await.unwrap().partners.len(), 1);
    assert!(!store.rotate_partner_secret(&nobody, rotation(1), true).await.unwrap());
    let unknown = store.create_application(new_application("nobody", "uuid-c")).await;
    assert!(matches!(unknown, Err(StoreError::Unknown(_))), "{unknown:?}");
}
