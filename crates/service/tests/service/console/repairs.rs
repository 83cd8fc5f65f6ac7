//! What operators and merchants mend by hand, and the row of the history that names them.

use hyper::StatusCode;
use svc_service::domain::{About, BankReference, Notice, Order};
use svc_service::orders;

use super::world::{World, create};
use crate::support::*;

on_both_engines! {
    a_cancelled_order_names_who_cancelled_it,
    every_outcome_can_be_simulated,
    the_clock_moves_forward_only,
    an_event_is_sent_again,
    all_that_failed_is_sent_again_from_a_time_on,
    an_exception_is_resolved_with_a_reason_and_only_once,
    money_for_nobody_says_what_was_told,
}

async fn new_order(world: &World, id: &str) -> (Order, String) {
    let service = &world.service;
    let (_, order) = create(service, &service.partner, id, &world.receiver.url()).await;
    let page = format!("/console/orders/{}", order.reference_number.as_str());
    (order, page)
}

async fn a_cancelled_order_names_who_cancelled_it(database: TestDatabase) {
    let world = World::start(database).await;
    let (ana, olga) = (world.owner().await, world.operator().await);
    let (other, page) = new_order(&world, "loja-other").await;
    for (who, actor, order) in
        [(&ana, "user:ana@loja.ao", &world.open), (&olga, "operator:olga", &other)]
    {
        let target = format!("/console/orders/{}", order.reference_number.as_str());
        let answer = world.post(who, &format!("{target}/cancel"), "").await;
        assert_eq!(answer.header("location"), Some(&*format!("{target}?done=cancelled")));
        assert_eq!(world.status_of(order).await, "CAN");
        let row = format!(
            "select count(*) from audit where actor = '{actor}' and after = 'CAN'
             and subject = '{}'",
            order.reference_number.as_str()
        );
        assert_eq!(world.service.number(&row).await, 1, "{actor}");
        let again = world.post(who, &format!("{target}/cancel"), "").await;
        assert_eq!(again.status, StatusCode::SEE_OTHER, "what is cancelled stays so");
    }
    // A merchant need not know who of the service's people it was.
    assert!(world.get(&olga, &page).await.text.contains("operator:olga"));
    assert!(!world.get(&ana, &page).await.text.contains("olga"));
    let paid = format!("/console/orders/{}", world.paid.reference_number.as_str());
    let answer = world.post(&olga, &format!("{paid}/cancel"), "").await;
    assert_eq!(answer.header("location"), Some(&*format!("{paid}?done=settled")));
    assert_eq!(world.status_of(&world.paid).await, "CON");
}

async fn every_outcome_can_be_simulated(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    for (outcome, status, attempts) in [
        ("confirm", "CON", 0),
        ("decline", "PEN", 1),
        ("pending", "PEN", 1),
        ("cancel", "CAN", 0),
        ("expire", "CAN", 0),
    ] {
        let (order, page) = new_order(&world, &format!("loja-{outcome}")).await;
        let form = format!("outcome={outcome}");
        let answer = world.post(&ana, &format!("{page}/simulate"), &form).await;
        assert_eq!(answer.header("location"), Some(&*format!("{page}?done=simulated")));
        assert_eq!(world.status_of(&order).await, status, "{outcome}");
        let dossier = world.app().store.dossier(&order.reference_number).await.unwrap().unwrap();
        assert_eq!(dossier.attempts.len(), attempts, "{outcome}");
        let reference = order.reference_number.as_str();
        assert_eq!(world.told("user:ana@loja.ao", "order.simulate", reference).await, 1);
        assert_eq!(world.get(&ana, &page).await.status, StatusCode::OK, "{outcome}");
    }
    let (order, page) = new_order(&world, "loja-none").await;
    for form in ["", "outcome=", "outcome=explode", "outcome=CONFIRM"] {
        let answer = world.post(&ana, &format!("{page}/simulate"), form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
    }
    let reference = order.reference_number.as_str();
    assert_eq!(world.told("user:ana@loja.ao", "order.simulate", reference).await, 0);
}

async fn the_clock_moves_forward_only(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    for form in ["", "minutes=0", "minutes=-5", "minutes=86401", "minutes=x", "minutes=1e3"] {
        let answer = world.post(&ana, "/console/clock", form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
    }
    assert_eq!(world.app().clock.ahead().as_secs(), 0);
    for (back, to) in [
        ("/console/orders/x", "/console/orders/x?done=clock"),
        ("https://evil.example", "/console?done=clock"),
        ("//evil.example", "/console?done=clock"),
        ("/console/%01", "/console?done=clock"),
        ("/console/%0d%0ax:y", "/console?done=clock"),
    ] {
        let answer = world.post(&ana, "/console/clock", &format!("minutes=10&back={back}")).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{back}: {}", answer.text);
        assert_eq!(answer.header("location"), Some(to), "{back}");
    }
    assert_eq!(world.app().clock.ahead().as_secs(), 5 * 600);
    assert_eq!(world.told("user:ana@loja.ao", "clock.advance", "clock").await, 5);
    // A day later what was open has expired.
    world.post(&ana, "/console/clock", "minutes=1600").await;
    assert_eq!(world.status_of(&world.open).await, "CAN");
}

async fn an_event_is_sent_again(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    let event = world.event().await;
    let sent = world.receiver.requests().len();
    let target = format!("/console/webhooks/{event}");
    let answer = world.post(&ana, &format!("{target}/resend"), "").await;
    assert_eq!(answer.header("location"), Some(&*format!("{target}?done=resent")));
    let requests = world.receiver.wait_for(sent + 1).await;
    assert_eq!(requests[sent].header("webhook-id"), event);
    assert_eq!(world.told("user:ana@loja.ao", "webhook.replay", &event).await, 1);
    // An older event of an order must not follow a newer one: nothing is done, and nothing noted.
    world.until_delivered().await;
    world.service.sql("update outbox set latest = false").await;
    let answer = world.post(&ana, &format!("{target}/resend"), "").await;
    assert_eq!(answer.header("location"), Some(&*format!("{target}?done=not_resent")));
    assert_eq!(world.told("user:ana@loja.ao", "webhook.replay", &event).await, 1);
}

async fn all_that_failed_is_sent_again_from_a_time_on(database: TestDatabase) {
    let world = World::start(database).await;
    let ana = world.owner().await;
    for form in ["", "hours=0", "hours=-1", "hours=841", "hours=many"] {
        let answer = world.post(&ana, "/console/webhooks/recover", form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
    }
    world.service.sql("update outbox set state = 'exhausted', failures = 1").await;
    let sent = world.receiver.requests().len();
    // Three hours later, "the last two hours" hold nothing.
    world.post(&ana, "/console/clock", "minutes=180").await;
    world.post(&ana, "/console/webhooks/recover", "hours=2").await;
    let exhausted = "select count(*) from outbox where state = 'exhausted'";
    assert_eq!(world.service.number(exhausted).await, 1);
    let answer = world.post(&ana, "/console/webhooks/recover", "hours=4").await;
    assert_eq!(answer.header("location"), Some("/console/webhooks?done=recovered"));
    world.receiver.wait_for(sent + 1).await;
    world.until_delivered().await;
    let row = "select count(*) from audit where actor = 'user:ana@loja.ao'
               and action = 'webhook.replay' and cause = '1 events'";
    assert_eq!(world.service.number(row).await, 1);
    // What waits for its first attempt has not failed.
    let queued =
        "update outbox set state = 'queued', next_attempt_at_ms = next_attempt_at_ms + 86400000";
    world.service.sql(queued).await;
    world.post(&ana, "/console/webhooks/recover", "hours=4").await;
    assert_eq!(world.service.number(row).await, 1);
    // Somebody else's recovery is not this one's.
    let busy = world.service.app.recovering.acquire().await.unwrap();
    let answer = world.post(&ana, "/console/webhooks/recover", "hours=4").await;
    assert_eq!(answer.header("location"), Some("/console/webhooks?done=recovery_waits"));
    drop(busy);
}

async fn an_exception_is_resolved_with_a_reason_and_only_once(database: TestDatabase) {
    let world = World::start(database).await;
    let olga = world.operator().await;
    let target = format!("/console/exceptions/{}/resolve", world.exception().await);
    let long = format!("resolution=refund&reason={}", "x".repeat(501));
    for form in [
        "resolution=refund&reason=",
        "resolution=refund&reason=+++",
        "resolution=refund&reason=%00",
        "resolution=refund",
        "resolution=keep&reason=because",
        "reason=because",
        &long,
    ] {
        let answer = world.post(&olga, &target, form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
    }
    let answer = world.post(&olga, &target, "resolution=dismiss&reason=because").await;
    assert_eq!(answer.status, StatusCode::CONFLICT, "an order is held for it");
    assert!(answer.text.contains("The order waits for this money"), "{}", answer.text);
    let open = "select count(*) from exceptions where resolved_at_ms is null";
    assert_eq!(world.service.number(open).await, 1, "nothing was resolved yet");
    let page = world.get(&olga, "/console/exceptions").await.text;
    assert!(page.contains("The payer paid another amount."), "what it means: {page}");
    assert!(page.contains("Expected amount"), "what it should have been: {page}");
    let offers = |choice: &str| page.contains(&format!("<option value=\"{choice}\""));
    assert_eq!(["accept", "refund", "dismiss"].map(offers), [true, true, false], "{page}");
    let form = "resolution=accept&reason=%3Cb%3Ethe+bank+said+so%3C/b%3E";
    let answer = world.post(&olga, &target, form).await;
    assert_eq!(answer.header("location"), Some("/console/exceptions?done=resolved"));
    assert_eq!(world.status_of(&world.held).await, "CON", "accepted as the full amount");
    let held = world.held.reference_number.as_str();
    assert_eq!(world.told("operator:olga", "exception.resolve", held).await, 1);
    let page = world.get(&olga, "/console/exceptions?show=all").await.text;
    assert!(page.contains("Accepted as paid: ") && page.contains("the bank said so"), "{page}");
    assert!(page.contains("operator:olga"), "{page}");
    assert!(!page.contains("<b>the bank"), "a reason is a text");
    assert!(!page.contains("The payer paid another amount."), "it is dealt with");
    let page = world.get(&olga, "/console/audit").await.text;
    assert!(page.contains("Exception resolved"), "what was done: {page}");
    let again = world.post(&olga, &target, "resolution=refund&reason=because").await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    assert!(again.text.contains("It was resolved already."), "{}", again.text);
    assert_eq!(world.told("operator:olga", "exception.resolve", held).await, 1);
    for id in ["0", "-1", "999999", "x", "1;2", "99999999999999999999"] {
        let target = format!("/console/exceptions/{id}/resolve");
        let answer = world.post(&olga, &target, "resolution=refund&reason=because").await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{id}");
    }
    // The merchant sees that it was resolved, not by whom.
    let ana = world.owner().await;
    let page = world.get(&ana, "/console/exceptions?show=all").await.text;
    assert!(page.contains("the bank said so") && !page.contains("olga"), "{page}");
}

async fn money_for_nobody_says_what_was_told(database: TestDatabase) {
    let world = World::start(database).await;
    let about = About::Reference(BankReference::parse("00348", "111222333").unwrap());
    let notice = Notice { about, ..payment_of(&world.open) };
    orders::settle(world.app(), notice, "req-nobody").await.unwrap();
    let page = world.get(&world.operator().await, "/console/exceptions").await.text;
    assert!(page.contains("<code>payment for entity 00348 reference 111222333<"), "{page}");
}
