//! Keys: a new secret is shown once, and nothing of it is left anywhere.

use hyper::StatusCode;
use svc_service::credentials::Issued;
use svc_service::domain::{ApplicationUuid, Author, WebhookHosts};

use super::world::{World, between};
use crate::support::*;

on_both_engines! {
    a_new_client_secret_is_shown_once_and_the_old_one_lasts_as_long_as_was_said,
    a_new_webhook_secret_is_shown_once,
    a_list_of_hosts_is_shown_where_there_is_one,
    a_key_shows_when_it_was_last_used,
}

/// The secret on the page.
fn revealed(answer: &Answer, name: &str) -> String {
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let before = format!("<pre id=\"revealed\" tabindex=\"0\">{name}=");
    between(&answer.text, &before, "</pre>").unwrap().to_owned()
}

/// No page, log or row tells it.
async fn is_nowhere(world: &World, who: &super::world::Visitor, secret: &str) {
    let requests = world.get(who, "/console/requests").await.text;
    for page in ["/console/developers", "/console/orders", "/console/webhooks", "/console/account"]
    {
        let answer = world.get(who, page).await;
        assert!(!answer.text.contains(secret), "{page}");
    }
    assert!(!requests.contains(secret));
    assert!(!world.service.holds(secret).await, "the database holds it");
    assert!(!world.app().metrics.render().contains(secret));
}

async fn token_status(world: &World, secret: &str) -> u16 {
    let issued = Issued {
        client_id: world.service.partner.client_id.clone(),
        client_secret: secret.to_owned().into(),
        application: svc_service::credentials::IssuedApplication {
            publishable_key: world.service.partner.application.publishable_key.clone(),
            webhook_secret: String::new().into(),
        },
    };
    let answer = world.service.token_answer(&issued, "grant_type=client_credentials").await;
    answer.status.as_u16()
}

async fn a_new_client_secret_is_shown_once_and_the_old_one_lasts_as_long_as_was_said(
    database: TestDatabase,
) {
    use secrecy::ExposeSecret;
    let world = World::start(database).await;
    let ana = world.owner().await;
    let client = world.service.partner.client_id.as_str();
    let target = format!("/console/partners/{client}/rotate");
    let old = world.service.partner.client_secret.expose_secret();
    for form in ["", "overlap=-1", "overlap=721", "overlap=x", "overlap=1.5"] {
        let answer = world.post(&ana, &target, form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
    }
    assert_eq!(token_status(&world, old).await, 200);
    let first = revealed(&world.post(&ana, &target, "overlap=24").await, "SVC_CLIENT_SECRET");
    assert_eq!((token_status(&world, old).await, token_status(&world, &first).await), (200, 200));
    is_nowhere(&world, &ana, &first).await;
    // The page sent once more: the secret that the merchant uses does not end for it.
    assert_eq!(world.post(&ana, &target, "overlap=24").await.status, StatusCode::CONFLICT);
    assert_eq!((token_status(&world, old).await, token_status(&world, &first).await), (200, 200));
    let of_the_old = world.service.token(&world.service.partner).await;
    let uuid = world.service.partner.application.publishable_key.application_uuid();
    let query = async || world.service.query(&of_the_old, uuid.as_str(), "order_1").await.status;
    assert_eq!(query().await, StatusCode::NOT_FOUND);
    let revoke = format!("/console/partners/{client}/revoke");
    assert_eq!(world.post(&ana, &revoke, "").await.status, StatusCode::SEE_OTHER);
    assert_eq!((token_status(&world, old).await, token_status(&world, &first).await), (401, 200));
    assert_eq!(query().await, StatusCode::UNAUTHORIZED, "its tokens end with it");
    assert_eq!(world.post(&ana, &revoke, "").await.status, StatusCode::SEE_OTHER, "nothing left");
    let second = revealed(&world.post(&ana, &target, "overlap=0").await, "SVC_CLIENT_SECRET");
    let works = (token_status(&world, &first).await, token_status(&world, &second).await);
    assert_eq!(works, (401, 200), "without an overlap the old one ends at once");
    assert_ne!(first, second);
    let by = "user:ana@loja.ao";
    assert_eq!(world.told(by, "partner.revoke_previous_secret", client).await, 1);
    let rows = format!(
        "select count(*) from audit where actor = '{by}' and subject = '{client}'
         and action like 'partner.%rotate%'"
    );
    assert_eq!(world.service.number(&rows).await, 2);
}

async fn a_new_webhook_secret_is_shown_once(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let uuid = world.service.application();
    let target = format!("/console/applications/{uuid}/rotate");
    let secret = revealed(&world.post(&ana, &target, "overlap=24").await, "SVC_WEBHOOK_SECRET");
    is_nowhere(&world, &ana, &secret).await;
    let event = world.get(&ana, &format!("/console/webhooks/{}", world.event().await)).await;
    assert_eq!(event.status, StatusCode::OK);
    assert!(event.text.contains("webhook-signature") && !event.text.contains(&secret));
    let rows = "select count(*) from audit where actor = 'user:ana@loja.ao'
                and action like 'application.%rotate%'";
    assert_eq!(world.service.number(rows).await, 1);
    let unknown = "/console/applications/not-a-uuid/rotate";
    assert_eq!(world.post(&ana, unknown, "overlap=1").await.status, StatusCode::NOT_FOUND);
}

async fn a_list_of_hosts_is_shown_where_there_is_one(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let page = world.get(&ana, "/console/developers").await.text;
    assert!(!page.contains("Webhooks only to") && !page.contains("loja.ao api.loja.ao"), "{page}");
    let uuid = ApplicationUuid::parse(world.service.application().to_owned()).unwrap();
    let hosts = WebhookHosts::parse(&["loja.ao", "api.loja.ao"]).unwrap();
    let (store, by) = (&world.app().store, Author::command_line(None));
    let now = world.app().clock.now();
    store.set_webhook_hosts(&uuid, Some(&hosts), now, &by).await.unwrap();
    world.app().directory.refresh(store).await.unwrap();
    let page = world.get(&ana, "/console/developers").await.text;
    assert!(page.contains("<code>api.loja.ao loja.ao</code>"), "{page}");
}

async fn a_key_shows_when_it_was_last_used(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    super::world::until(async || world.service.count("key_uses").await == 2).await;
    let page = world.get(&ana, "/console/developers").await.text;
    let used = between(&page, "<dt>Last used</dt><dd>", "</dd>").map(str::to_owned);
    assert!(used.as_deref().is_some_and(|used| used.contains("2")), "{used:?}");
}
