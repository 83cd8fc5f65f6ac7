//! A session ends by signing out, by time, by a new password, and when its owner is shut out.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use jiff::SignedDuration;
use svc_service::domain::{Author, Login};
use svc_service::store::PersonChange;

use super::sign_in::set_cheap_password;
use super::world::{Visitor, World, session_cookie};
use crate::support::*;

on_both_engines! {
    signing_out_ends_the_session_and_no_other,
    a_session_ends_twelve_hours_after_it_began_or_two_after_it_was_last_used,
    a_moved_clock_signs_nobody_out,
    a_new_password_ends_every_other_session,
    of_two_who_change_a_password_at_once_one_knew_it,
    who_guesses_the_present_password_has_to_wait,
    a_page_that_refreshes_itself_is_told_where_to_go,
}

async fn is_in(world: &World, who: &Visitor) -> bool {
    world.get(who, "/console").await.status == StatusCode::OK
}

async fn signing_out_ends_the_session_and_no_other(database: TestDatabase) {
    let world = World::start(database).await;
    let olga = world.operator().await;
    let elsewhere = world.enter_again("olga").await;
    let answer = world.post(&olga, "/console/sign-out", "").await;
    assert_eq!(answer.header("location"), Some("/console/sign-in"));
    let gone = answer.header("set-cookie").unwrap();
    assert!(gone.starts_with("__Host-svc-console=; Max-Age=0"), "{gone}");
    assert!(!is_in(&world, &olga).await, "the cookie is worth nothing now");
    assert!(is_in(&world, &elsewhere).await);
    assert_eq!(world.told("operator:olga", "person.sign_in", "olga").await, 2);
    assert_eq!(world.told("operator:olga", "person.sign_out", "olga").await, 1);
}

async fn a_session_ends_twelve_hours_after_it_began_or_two_after_it_was_last_used(
    database: TestDatabase,
) {
    let world = World::start(database).await;
    let olga = world.operator().await;
    let life = "select max(expires_at_ms - created_at_ms) from sessions";
    assert_eq!(world.service.number(life).await, 12 * 3_600_000);
    let minutes = async |column: &str, minutes: i64| {
        let ms = minutes * 60_000;
        world.service.sql(&format!("update sessions set {column} = {column} - {ms}")).await;
    };
    let age = "select max(expires_at_ms - seen_at_ms) from sessions";
    minutes("seen_at_ms", 119).await;
    let left = world.service.number(age).await;
    assert!(is_in(&world, &olga).await, "used less than two hours ago");
    assert!(world.service.number(age).await < left, "it is noted that it is in use");
    minutes("seen_at_ms", 119).await;
    let left = world.service.number(age).await;
    for by_itself in [("hx-request", "true"), ("accept", "text/event-stream")] {
        let headers = [("cookie", olga.cookie.as_str()), by_itself];
        let answer = world.service.call(Method::GET, "/console/developers", &headers, "").await;
        assert_eq!(answer.status, StatusCode::OK, "{by_itself:?}");
        assert_eq!(world.service.number(age).await, left, "nobody is there: {by_itself:?}");
    }
    minutes("seen_at_ms", 2).await;
    assert!(!is_in(&world, &olga).await, "left alone for two hours");
    // A deed is not done by signing in again, and its address is no page: back to where its button was.
    let page = format!("{}/console/orders/R1?lang=en", world.service.origin());
    for (referer, next) in
        [(page.as_str(), "%2Fconsole%2Forders%2FR1%3Flang%3Den"), ("", "%2Fconsole")]
    {
        let headers = [("cookie", olga.cookie.as_str()), ("referer", referer)];
        let answer = world.post_with(&headers, "/console/orders/R1/cancel", "").await;
        let sign_in = format!("/console/sign-in?next={next}");
        assert_eq!(answer.header("location"), Some(sign_in.as_str()));
    }
    minutes("seen_at_ms", -121).await;
    minutes("expires_at_ms", 12 * 60 - 1).await;
    assert!(is_in(&world, &olga).await);
    minutes("expires_at_ms", 1).await;
    assert!(!is_in(&world, &olga).await, "twelve hours are over");
    let now = world.app().clock.machine_now();
    world.app().store.forget_ended_access(now).await.unwrap();
    assert_eq!(world.service.count("sessions").await, 0, "nothing of it is kept");
}

async fn a_moved_clock_signs_nobody_out(database: TestDatabase) {
    let world = World::start(database).await;
    let olga = world.operator().await;
    world.app().clock.advance(SignedDuration::from_hours(24 * 40));
    assert!(is_in(&world, &olga).await);
    // In the history all of it stands where the sandbox was.
    world.enter_again("olga").await;
    let moved = world.app().clock.machine_now().as_millisecond() + 39 * 86_400_000;
    let signed_in = format!(
        "select count(*) from audit where action = 'person.sign_in' and subject = 'olga'
         and at_ms > {moved}"
    );
    assert_eq!(world.service.number(&signed_in).await, 1);
}

const NEW: &str = "password=outra+senha+bem+comprida&again=outra+senha+bem+comprida";

async fn a_new_password_ends_every_other_session(database: TestDatabase) {
    let world = World::start(database).await;
    let olga = world.operator().await;
    let elsewhere = world.enter_again("olga").await;
    set_cheap_password(&world, "olga").await;
    for (form, status) in [
        (format!("present=falsa&{NEW}"), StatusCode::UNPROCESSABLE_ENTITY),
        (NEW.to_owned(), StatusCode::UNPROCESSABLE_ENTITY),
        (
            "present=uma+senha+bastante+longa&password=x&again=x".into(),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
    ] {
        let answer = world.post(&olga, "/console/account/password", &form).await;
        assert_eq!(answer.status, status, "{form}");
    }
    assert!(is_in(&world, &elsewhere).await, "nothing happened yet");
    let form = format!("present=uma+senha+bastante+longa&{NEW}");
    let answer = world.post(&olga, "/console/account/password", &form).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    assert!(!is_in(&world, &elsewhere).await && !is_in(&world, &olga).await);
    let here = Visitor { cookie: session_cookie(&answer).unwrap(), ..olga };
    assert!(is_in(&world, &here).await, "this browser goes on with a new session");
    assert_eq!(world.told("operator:olga", "person.set_password", "olga").await, 1);
}

async fn of_two_who_change_a_password_at_once_one_knew_it(database: TestDatabase) {
    let world = World::start(database).await;
    world.operator().await;
    set_cheap_password(&world, "olga").await;
    let (store, login) = (&world.app().store, Login::parse("olga").unwrap());
    // As both requests found it when they began.
    let found = store.person_by_login(&login).await.unwrap().unwrap();
    let (at, by) = (world.app().clock.now(), Author::command_line(None));
    let change = |hash: &str| PersonChange::Password(hash.to_owned());
    assert!(store.change_own(&found, change("first"), at, &by).await.unwrap());
    assert!(!store.change_own(&found, change("second"), at, &by).await.unwrap());
    assert!(!store.change_own(&found, PersonChange::Totp(None), at, &by).await.unwrap());
    let now = store.person_by_login(&login).await.unwrap().unwrap();
    assert_eq!(now.password_hash.as_deref(), Some("first"));
}

async fn who_guesses_the_present_password_has_to_wait(database: TestDatabase) {
    let world = Arc::new(World::start(database).await);
    let olga = Arc::new(world.operator().await);
    set_cheap_password(&world, "olga").await;
    let guesses: Vec<_> = (0..20)
        .map(|guess| {
            let (world, olga) = (Arc::clone(&world), Arc::clone(&olga));
            let form = format!("present=guess{guess}&{NEW}");
            tokio::spawn(async move {
                world.post(&olga, "/console/account/password", &form).await.status
            })
        })
        .collect();
    let mut told_to_wait = 0;
    for guess in guesses {
        let status = guess.await.unwrap();
        assert!(status.is_client_error(), "{status}");
        told_to_wait += i32::from(status == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!(told_to_wait > 0);
}

async fn a_page_that_refreshes_itself_is_told_where_to_go(database: TestDatabase) {
    let world = World::start(database).await;
    let headers = [("hx-request", "true")];
    let answer = world.service.call(Method::GET, "/console/orders", &headers, "").await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(answer.header("hx-redirect"), Some("/console/sign-in"));
    let headers = [("accept", "text/event-stream")];
    let stream = world.service.call(Method::GET, "/console/live", &headers, "").await;
    assert_eq!(stream.status, StatusCode::UNAUTHORIZED, "a page would be no stream");
}
