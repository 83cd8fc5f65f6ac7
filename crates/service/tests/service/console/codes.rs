//! Codes from a phone beside the password.

use aws_lc_rs::hmac;
use hyper::StatusCode;
use secrecy::ExposeSecret;
use svc_service::console;
use svc_service::domain::{Login, Role};

use super::sign_in::set_cheap_password;
use super::world::{Visitor, World, between, session_cookie, unescaped};
use crate::support::*;

on_both_engines! {
    a_code_is_asked_for_once_it_is_on_and_works_once,
    who_does_not_know_the_password_turns_nothing_off,
    a_wrong_code_turns_nothing_on,
    a_new_password_by_a_link_does_not_stand_for_the_phone,
    codes_are_not_guessed_from_many_networks,
}

/// What a phone makes of the seed on the page, a number of steps from now.
fn code(world: &World, seed: &[u8], steps: i64) -> String {
    let step = world.app().clock.machine_now().as_second() / 30 + steps;
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, seed);
    let mac = hmac::sign(&key, &step.to_be_bytes());
    let mac = mac.as_ref();
    let at = usize::from(mac[19] & 0x0f);
    let number = u32::from_be_bytes(mac[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", number % 1_000_000)
}

fn from_base32(text: &str) -> Vec<u8> {
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits: String = text.chars().map(|c| format!("{:05b}", letters.find(c).unwrap())).collect();
    let whole = bits.as_bytes().chunks_exact(8);
    whole.map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap()).collect()
}

/// The seed a page offers, and the form's field that brings it back.
async fn offered(world: &World, who: &Visitor) -> (Vec<u8>, String) {
    let page = world.get(who, "/console/account").await.text;
    let seed = between(&page, "<p class=\"small\"><code>", "</code>").unwrap();
    let field = between(&page, "name=\"offered\" value=\"", "\"").unwrap();
    let field: String = form_urlencoded::byte_serialize(unescaped(field).as_bytes()).collect();
    (from_base32(seed), field)
}

/// Turns codes on; the seed of the phone.
async fn turn_on(world: &World, who: &Visitor) -> (Vec<u8>, Answer) {
    let (seed, field) = offered(world, who).await;
    // The step before the present one: later ones are left for the tests.
    let code = code(world, &seed, -1);
    let form = format!("change=on&offered={field}&code={code}&present=uma+senha+bastante+longa");
    let answer = world.post(who, "/console/account/totp", &form).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    (seed, answer)
}

async fn sign_in(world: &World, code: &str) -> Answer {
    let form = format!("login=olga&password=uma+senha+bastante+longa&code={code}");
    world.post_with(&[], "/console/sign-in", &form).await
}

async fn a_code_is_asked_for_once_it_is_on_and_works_once(database: TestDatabase) {
    let world = World::start_standing(database).await;
    let olga = world.operator().await;
    set_cheap_password(&world, "olga").await;
    assert_eq!(sign_in(&world, "").await.status, StatusCode::SEE_OTHER, "off: none is needed");
    let other = world.enter_again("olga").await;
    let used = code(&world, &[], 0);
    let (seed, answer) = turn_on(&world, &olga).await;
    let olga = Visitor { cookie: session_cookie(&answer).unwrap(), ..olga };
    assert_eq!(world.get(&olga, "/console/account").await.status, StatusCode::OK);
    assert_eq!(world.get(&other, "/console").await.status, StatusCode::SEE_OTHER, "signed out");
    assert_eq!(world.told("operator:olga", "person.set_totp", "olga").await, 1);
    let now = code(&world, &seed, 0);
    for wrong in ["", "000000", &used, "12345", &code(&world, &seed, 5)] {
        let answer = sign_in(&world, wrong).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{wrong}");
        assert_eq!(session_cookie(&answer), None);
    }
    // The one that turned it on is used already.
    let before = code(&world, &seed, -1);
    assert_eq!(sign_in(&world, &before).await.status, StatusCode::UNAUTHORIZED);
    let spaced = format!("{}+{}", &now[..3], &now[3..]);
    assert_eq!(sign_in(&world, &spaced).await.status, StatusCode::SEE_OTHER);
    assert_eq!(sign_in(&world, &now).await.status, StatusCode::UNAUTHORIZED, "no second time");
}

async fn who_does_not_know_the_password_turns_nothing_off(database: TestDatabase) {
    let world = World::start_standing(database).await;
    let olga = world.operator().await;
    set_cheap_password(&world, "olga").await;
    let (_, answer) = turn_on(&world, &olga).await;
    let olga = Visitor { cookie: session_cookie(&answer).unwrap(), ..olga };
    let on = "select count(*) from people where totp_sealed is not null";
    for form in ["change=off", "change=off&present=uma+senha+bastante+curta"] {
        let answer = world.post(&olga, "/console/account/totp", form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
        assert_eq!(world.service.number(on).await, 1, "{form}");
    }
    let off = "change=off&present=uma+senha+bastante+longa";
    let off = world.post(&olga, "/console/account/totp", off).await;
    assert_eq!(off.status, StatusCode::SEE_OTHER);
    assert_eq!(world.service.number(on).await, 0);
}

async fn a_wrong_code_turns_nothing_on(database: TestDatabase) {
    let world = World::start_standing(database).await;
    let olga = world.operator().await;
    let (seed, field) = offered(&world, &olga).await;
    let right = code(&world, &seed, 0);
    let wrong = if right == "111111" { "222222" } else { "111111" };
    for form in [
        format!("change=on&offered={field}&code={wrong}"),
        format!("change=on&offered={field}&code="),
        format!("change=on&offered=AAAA&code={right}"),
        format!("change=on&offered=%00&code={right}"),
        format!("code={right}"),
    ] {
        let answer = world.post(&olga, "/console/account/totp", &form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
    }
    let on = "select count(*) from people where totp_sealed is not null";
    assert_eq!(world.service.number(on).await, 0);
    assert_eq!(world.get(&olga, "/console").await.status, StatusCode::OK, "still signed in");
}

async fn a_new_password_by_a_link_does_not_stand_for_the_phone(database: TestDatabase) {
    let world = World::start_standing(database).await;
    let olga = world.operator().await;
    let (seed, _) = turn_on(&world, &olga).await;
    let login = Login::parse("olga").unwrap();
    let link = console::invite_again(
        world.app(),
        &login,
        &svc_service::domain::Author::command_line(None),
    )
    .await
    .unwrap();
    let form = "password=uma+senha+bastante+longa&again=uma+senha+bastante+longa";
    let answer = world.post_with(&[], link.path.expose_secret(), form).await;
    assert_eq!(answer.header("location"), Some("/console/sign-in"), "{}", answer.text);
    assert_eq!(session_cookie(&answer), None);
    assert_eq!(sign_in(&world, "").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&world, &code(&world, &seed, 1)).await.status, StatusCode::SEE_OTHER);
    // An owner can turn it off for somebody who lost the phone as well.
    let owner = world.enter("rui", None, Role::Owner).await;
    let target = format!("/console/people/{}", olga.id);
    let answer = world.post(&owner, &target, "change=totp_off").await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_eq!(world.told("operator:rui", "person.set_totp", "olga").await, 1);
    assert_eq!(sign_in(&world, "").await.status, StatusCode::SEE_OTHER);
}

async fn codes_are_not_guessed_from_many_networks(database: TestDatabase) {
    let world = World::start_standing(database).await;
    let olga = world.operator().await;
    set_cheap_password(&world, "olga").await;
    let (seed, _) = turn_on(&world, &olga).await;
    // Each from another address: no count of an address sees them.
    let tries = (0..1_000).take_while(|_| world.app().limits.code(olga.id).is_ok()).count();
    assert!(tries <= 20, "{tries}");
    let right = code(&world, &seed, 1);
    assert_eq!(sign_in(&world, &right).await.status, StatusCode::UNAUTHORIZED);
    assert!(world.app().limits.code(olga.id + 1).is_ok(), "others are not held up");
}
