//! Owners invite, change and shut out people of their own house, and nobody else.

use hyper::StatusCode;
use svc_service::domain::Role;

use super::world::{World, between};
use crate::support::*;

on_both_engines! {
    an_owner_invites_somebody_of_its_own_house,
    who_is_shut_out_is_out_at_once_and_a_new_role_counts_at_once,
    nobody_changes_themselves_or_takes_a_login_that_is_taken,
}

async fn an_owner_invites_somebody_of_its_own_house(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let answer = world.post(&ana, "/console/people", "login=Rui@Loja.ao&role=support").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let link = between(&answer.text, "<pre id=\"invited\" tabindex=\"0\">", "</pre>").unwrap();
    let path = link.strip_prefix(world.service.origin()).unwrap();
    assert_eq!(world.service.get(path).await.status, StatusCode::OK, "{link}");
    let page = world.get(&ana, "/console/people").await;
    assert!(page.text.contains("rui@loja.ao") && !page.text.contains("/console/welcome/"));
    let rui = format!(
        "select count(*) from people where login = 'rui@loja.ao' and role = 'support'
         and partner_id = {}",
        world.partner_id(&world.service.partner).0
    );
    assert_eq!(world.service.number(&rui).await, 1);
    let told = world.told("user:ana@loja.ao", "person.create", "rui@loja.ao").await;
    assert_eq!(told, 1);
    let id = world.service.number("select id from people where login = 'rui@loja.ao'").await;
    let answer = world.post(&ana, &format!("/console/people/{id}"), "change=invite").await;
    assert!(answer.text.contains("/console/welcome/") && !answer.text.contains(path));
    assert_eq!(world.service.get(path).await.status, StatusCode::NOT_FOUND, "a new link is new");
    let told = world.told("user:ana@loja.ao", "person.invite", "rui@loja.ao").await;
    assert_eq!(told, 2, "with each link");
    let link = between(&answer.text, "<pre id=\"invited\" tabindex=\"0\">", "</pre>").unwrap();
    let path = link.strip_prefix(world.service.origin()).unwrap();
    let target = format!("/console/people/{id}");
    world.post(&ana, &target, "change=role&role=reader").await;
    assert_eq!(world.service.get(path).await.status, StatusCode::OK, "{link}");
    for change in ["change=disable", "change=enable"] {
        world.post(&ana, &target, change).await;
    }
    assert_eq!(world.service.get(path).await.status, StatusCode::NOT_FOUND, "it went with them");
}

async fn who_is_shut_out_is_out_at_once_and_a_new_role_counts_at_once(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let rui = world.enter("rui@loja.ao", Some(&world.service.partner), Role::Developer).await;
    let target = format!("/console/people/{}", rui.id);
    assert_eq!(world.get(&rui, "/console").await.status, StatusCode::OK);
    let answer = world.post(&ana, &target, "change=disable").await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(world.get(&rui, "/console").await.status, StatusCode::SEE_OTHER, "out");
    // As if the row of the session had been left behind: still out.
    world.post(&ana, &target, "change=enable").await;
    let rui = world.enter_again("rui@loja.ao").await;
    world.service.sql("update people set disabled_at_ms = 1 where login = 'rui@loja.ao'").await;
    assert_eq!(world.get(&rui, "/console").await.status, StatusCode::SEE_OTHER, "out");
    assert_eq!(world.post(&ana, &target, "change=enable").await.status, StatusCode::SEE_OTHER);
    let rui = world.enter_again("rui@loja.ao").await;
    world.post(&ana, &target, "change=role&role=reader").await;
    assert_eq!(world.get(&rui, "/console").await.status, StatusCode::SEE_OTHER, "proves it again");
    let rui = world.enter_again("rui@loja.ao").await;
    let rotate = format!("/console/applications/{}/rotate", world.service.application());
    assert_eq!(world.post(&rui, &rotate, "overlap=1").await.status, StatusCode::FORBIDDEN);
    for (action, times) in [("person.disable", 1), ("person.enable", 2), ("person.set_role", 1)] {
        let told = world.told("user:ana@loja.ao", action, "rui@loja.ao").await;
        assert_eq!(told, times, "{action}");
    }
}

async fn nobody_changes_themselves_or_takes_a_login_that_is_taken(database: TestDatabase) {
    let world = World::start(database).await;
    let (ana, zeca) = (world.owner().await, world.stranger().await);
    for change in ["change=disable", "change=role&role=reader", "change=totp_off"] {
        let answer = world.post(&ana, &format!("/console/people/{}", ana.id), change).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{change}");
    }
    let before = world.state_of_loja().await;
    let answer = world.post(&zeca, "/console/people", "login=ana@loja.ao&role=owner").await;
    assert_eq!(answer.status, StatusCode::CONFLICT);
    assert!(answer.text.contains("There is a user with this login already."), "{}", answer.text);
    for form in ["login=&role=owner", "login=a+b&role=owner", "login=ok&role=king", "login=ok"] {
        let answer = world.post(&zeca, "/console/people", form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
    }
    let rui = world.person("rui@outra.ao", Some(&world.service.stranger), Role::Reader).await;
    for form in ["", "change=promote", "change=role", "change=role&role=king"] {
        let answer = world.post(&zeca, &format!("/console/people/{rui}"), form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
    }
    assert_eq!(world.state_of_loja().await, before);
}
