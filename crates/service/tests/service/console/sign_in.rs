//! Coming in by a password or a link, and what a wrong one is told.

use std::sync::Arc;

use hyper::StatusCode;
use secrecy::ExposeSecret;
use svc_service::console;
use svc_service::domain::{Author, Login, Role};

use super::world::{World, session_cookie};
use crate::support::*;

on_both_engines! {
    a_link_works_once_and_the_password_it_sets_signs_in,
    a_new_link_takes_the_place_of_the_one_before,
    a_link_that_is_too_old_opens_nothing,
    whatever_is_wrong_is_told_alike_and_noted,
    who_tries_too_often_waits_however_the_login_is_spelled,
    after_signing_in_nobody_is_led_to_another_site,
    a_demos_link_signs_in_and_production_knows_none,
}

const PASSWORD: &str = "uma senha bastante longa";
const SET: &str = "password=uma+senha+bastante+longa&again=uma+senha+bastante+longa";

/// Somebody invited: the path of their link.
async fn invited(world: &World, login: &str) -> String {
    let login = Login::parse(login).unwrap();
    let by = Author::command_line(None);
    let invited = console::invite(world.app(), &login, None, Role::Owner, &by).await.unwrap();
    invited.path.expose_secret().to_owned()
}

/// A password that is cheap to check, for tests that need many checks.
pub(super) async fn set_cheap_password(world: &World, login: &str) {
    use argon2::password_hash::{PasswordHasher, SaltString};
    let salt = SaltString::encode_b64(&[1; 16]).unwrap();
    let params = argon2::Params::new(8, 1, 1, None).unwrap();
    let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let hash = argon2.hash_password(PASSWORD.as_bytes(), &salt).unwrap().to_string();
    let sql = format!("update people set password_hash = '{hash}' where login = '{login}'");
    world.service.sql(&sql).await;
}

async fn sign_in(world: &World, login: &str, password: &str) -> Answer {
    let form = format!("login={login}&password={}", password.replace(' ', "+"));
    world.post_with(&[], "/console/sign-in", &form).await
}

async fn a_link_works_once_and_the_password_it_sets_signs_in(database: TestDatabase) {
    let world = World::start(database).await;
    let link = invited(&world, "olga").await;
    assert_eq!(world.service.get(&link).await.status, StatusCode::OK, "looking uses nothing up");
    for (form, told) in [
        ("password=curta&again=curta", "at least 12"),
        ("password=uma+senha+bastante+longa&again=outra", "not alike"),
    ] {
        let answer = world.post_with(&[], &link, form).await;
        assert_eq!((answer.status, session_cookie(&answer)), (StatusCode::OK, None), "{told}");
        assert!(answer.text.contains("role=\"alert\""), "{told}: {}", answer.text);
    }
    let answer = world.post_with(&[], &link, SET).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    let cookie = session_cookie(&answer).unwrap();
    let set = answer.header("set-cookie").unwrap();
    for part in ["HttpOnly", "Secure", "SameSite=Lax", "Path=/", "Max-Age=43200"] {
        assert!(set.split("; ").any(|one| one == part), "{part} in {set}");
    }
    assert!(!set.contains("Domain"), "__Host- cookies have none: {set}");
    let headers = [("cookie", cookie.as_str())];
    let home = world.service.call(hyper::Method::GET, "/console", &headers, "").await;
    assert_eq!(home.status, StatusCode::OK);
    for again in [world.service.get(&link).await, world.post_with(&[], &link, SET).await] {
        assert_eq!(again.status, StatusCode::NOT_FOUND, "it is used up");
    }
    assert_eq!(world.told("operator:olga", "person.set_password", "olga").await, 1);
    let answer = sign_in(&world, "%20OLGA", PASSWORD).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "a login in capitals is the same");
    let session = session_cookie(&answer).unwrap();
    assert_ne!(session, cookie, "a session of its own");
    assert!(!world.service.holds(PASSWORD).await, "no password is kept");
    assert!(!world.service.holds(session.split('=').nth(1).unwrap()).await, "nor a session");
    assert!(!world.service.holds(link.rsplit('/').next().unwrap()).await, "nor a link");
}

async fn a_new_link_takes_the_place_of_the_one_before(database: TestDatabase) {
    let world = World::start(database).await;
    let lost = invited(&world, "olga").await;
    let login = Login::parse("olga").unwrap();
    let again =
        console::invite_again(world.app(), &login, &Author::command_line(None)).await.unwrap();
    assert_eq!(world.service.get(&lost).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.service.get(again.path.expose_secret()).await.status, StatusCode::OK);
    // A link of one kind is none of the other.
    let token = again.path.expose_secret().rsplit('/').next().unwrap().to_owned();
    let entry = world.service.get(&format!("/console/enter/{token}")).await;
    assert_eq!((entry.status, session_cookie(&entry)), (StatusCode::NOT_FOUND, None));
}

async fn a_link_that_is_too_old_opens_nothing(database: TestDatabase) {
    let world = World::start(database).await;
    let link = invited(&world, "olga").await;
    let now = world.app().clock.machine_now();
    let hours = world.service.number("select min(expires_at_ms) from invitations").await;
    let hours = (hours - now.as_millisecond()) / 3_600_000;
    assert!((71..=72).contains(&hours), "{hours}");
    world.service.sql("update invitations set expires_at_ms = 1").await;
    assert_eq!(world.service.get(&link).await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.post_with(&[], &link, SET).await.status, StatusCode::NOT_FOUND);
    world.app().store.forget_ended_access(now).await.unwrap();
    assert_eq!(world.service.count("invitations").await, 0);
}

async fn whatever_is_wrong_is_told_alike_and_noted(database: TestDatabase) {
    let world = World::start(database).await;
    for login in ["olga", "disabled"] {
        world.person(login, None, Role::Owner).await;
        set_cheap_password(&world, login).await;
    }
    world.person("invited", None, Role::Owner).await;
    world.service.sql("update people set disabled_at_ms = 1 where login = 'disabled'").await;
    let mut told = Vec::new();
    for (login, password) in [
        ("olga", "uma senha muito errada"),
        ("nobody", PASSWORD),
        ("invited", PASSWORD),
        ("invited", ""),
        ("disabled", PASSWORD),
        ("no login at all!", PASSWORD),
    ] {
        let answer = sign_in(&world, &login.replace(' ', "+"), password).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{login}");
        assert_eq!(session_cookie(&answer), None, "{login}");
        assert!(!answer.text.contains(PASSWORD), "{login}");
        told.push(answer.text.replace(&format!("value=\"{login}\""), "value=\"\""));
    }
    assert!(told.iter().all(|one| *one == told[0]), "{told:#?}");
    assert_eq!(world.told("service", "person.sign_in_refused", "olga").await, 1);
    // A password in the wrong field must not be kept.
    assert_eq!(world.told("service", "person.sign_in_refused", "?").await, 1);
    assert!(!world.service.holds("no login at all!").await);
    let right = sign_in(&world, "olga", PASSWORD).await;
    assert_eq!(right.status, StatusCode::SEE_OTHER, "{}", right.text);
}

async fn who_tries_too_often_waits_however_the_login_is_spelled(database: TestDatabase) {
    let world = Arc::new(World::start(database).await);
    world.person("olga", None, Role::Owner).await;
    set_cheap_password(&world, "olga").await;
    // All at once: a slow machine must not give the bucket time to fill again.
    let spelled = ["olga", "OLGA", "+olga", "olga+", "Olga"];
    let tries: Vec<_> = (0..20)
        .map(|number| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { sign_in(&world, spelled[number % 5], "errada").await.status })
        })
        .collect();
    let mut refused = 0;
    for one in tries {
        match one.await.unwrap() {
            StatusCode::UNAUTHORIZED => {}
            StatusCode::TOO_MANY_REQUESTS => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert!(refused > 0, "nobody of twenty was told to wait");
}

async fn after_signing_in_nobody_is_led_to_another_site(database: TestDatabase) {
    let world = World::start(database).await;
    world.person("olga", None, Role::Owner).await;
    set_cheap_password(&world, "olga").await;
    for (next, to) in [
        ("/console/orders?status=CON", "/console/orders?status=CON"),
        ("https://evil.example", "/console"),
        ("//evil.example", "/console"),
        ("/consoleevil", "/console"),
        ("/console/\\evil", "/console"),
        ("/console/\u{1}", "/console"),
        ("/console/\r\nx: y", "/console"),
    ] {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("next", next).append_pair("login", "olga");
        form.append_pair("password", PASSWORD);
        let answer = world.post_with(&[], "/console/sign-in", &form.finish()).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{next:?}");
        assert_eq!(answer.header("location"), Some(to), "{next:?}");
    }
}

async fn a_demos_link_signs_in_and_production_knows_none(database: TestDatabase) {
    let service = TestService::start_production(database, "127.0.0.0/8").await;
    let login = Login::parse("olga").unwrap();
    let by = Author::command_line(None);
    let welcome = console::invite(&service.app, &login, None, Role::Owner, &by).await.unwrap();
    let link = console::entry(&service.app, &login, &by).await.unwrap();
    let answer = service.get(link.path.expose_secret()).await;
    assert_eq!((answer.status, session_cookie(&answer)), (StatusCode::NOT_FOUND, None));
    let page = service.get(welcome.path.expose_secret()).await;
    assert_eq!(page.status, StatusCode::OK);
    assert!(page.text.contains("<aside class=\"mark production\""), "{}", page.text);
    let answer = service.get("/console/sign-in").await;
    assert!(answer.text.contains("<aside class=\"mark production\""), "{}", answer.text);
    // Behind a proxy our own page is the public one, whatever host the proxy calls.
    for (origin, status) in [("https://api.svc.ao", 303), (service.origin(), 403)] {
        let headers = [super::world::FORM, ("origin", origin)];
        let form = "password=uma+senha+bastante+longa&again=uma+senha+bastante+longa";
        let path = welcome.path.expose_secret();
        let answer = service.call(hyper::Method::POST, path, &headers, form).await;
        assert_eq!(answer.status.as_u16(), status, "{origin}");
        if let Some(cookie) = session_cookie(&answer) {
            nothing_is_simulated(&service, &cookie).await;
        }
    }
}

async fn nothing_is_simulated(service: &TestService, cookie: &str) {
    let token = service.token(&service.partner).await;
    let mut body = service.order_to("real", "https://shop.ao/hook");
    let info = body["additionalInfo"].as_str().unwrap();
    body["additionalInfo"] = info.replace("http://127.0.0.1:3000", "https://shop.ao").into();
    let created = service.create(&token, &body).await;
    assert!(created.status.is_success(), "{}", created.text);
    let reference = created.json()["data"]["referenceNumber"].as_str().unwrap().to_owned();
    let page = format!("/console/orders/{reference}");
    let headers = [super::world::FORM, ("cookie", cookie), ("origin", "https://api.svc.ao")];
    let seen = service.call(hyper::Method::GET, &page, &headers, "").await;
    assert_eq!(seen.status, StatusCode::OK);
    assert!(seen.text.contains("/cancel\"") && !seen.text.contains("/simulate\""));
    for (target, form) in [
        (format!("{page}/simulate"), "outcome=confirm"),
        ("/console/clock".to_owned(), "minutes=60"),
    ] {
        let answer = service.call(hyper::Method::POST, &target, &headers, form).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{target}");
    }
    assert_eq!(service.count("orders where status = 'PEN'").await, 1);
    assert_eq!(service.app.clock.ahead(), jiff::SignedDuration::ZERO);
}
