//! Forms of other sites change nothing, and every page tells browsers to be strict.

use hyper::{Method, StatusCode};

use super::world::{FORM, World};
use crate::support::*;

on_both_engines! {
    a_form_of_another_site_is_refused_and_changes_nothing,
    every_page_is_protected_and_says_that_it_is_a_sandbox,
}

async fn a_form_of_another_site_is_refused_and_changes_nothing(database: TestDatabase) {
    let world = World::start(database).await;
    let (ana, olga) = (world.owner().await, world.operator().await);
    let order = format!("/console/orders/{}", world.open.reference_number.as_str());
    let event = format!("/console/webhooks/{}/resend", world.event().await);
    let exception = format!("/console/exceptions/{}/resolve", world.exception().await);
    let client = format!("/console/partners/{}", world.service.partner.client_id.as_str());
    let uuid = format!("/console/applications/{}/rotate", world.service.application());
    let targets = [
        (format!("{order}/cancel"), ""),
        (format!("{order}/simulate"), "outcome=confirm"),
        ("/console/clock".to_owned(), "minutes=60"),
        ("/console/webhooks/recover".to_owned(), "hours=24"),
        (event, ""),
        (exception, "resolution=refund&reason=because"),
        (format!("{client}/rotate"), "overlap=1"),
        (format!("{client}/revoke"), ""),
        (uuid, "overlap=1"),
        ("/console/people".to_owned(), "login=evil&role=owner"),
        (format!("/console/people/{}", ana.id), "change=disable"),
        ("/console/account/password".to_owned(), "password=123456789012&again=123456789012"),
        ("/console/account/totp".to_owned(), "change=off"),
        ("/console/sign-out".to_owned(), ""),
        ("/console/sign-in".to_owned(), "login=olga&password=x"),
    ];
    let longer = format!("{}0", world.service.origin());
    let own = world.service.origin();
    let foreign: [&[(&str, &str)]; 8] = [
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("origin", &longer)],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "none")],
        &[("origin", own), ("sec-fetch-site", "cross-site")],
        // Neither: no browser of today, and no proof.
        &[],
    ];
    let before = (world.state_of_loja().await, world.service.count("audit").await);
    let ahead = world.app().clock.ahead();
    for (target, form) in &targets {
        for from in foreign {
            let own = [FORM, ("cookie", olga.cookie.as_str())];
            let headers: Vec<_> = own.into_iter().chain(from.iter().copied()).collect();
            let answer = world.service.call(Method::POST, target, &headers, *form).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{target} {from:?}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
        // Right, but no form: what another site's script can send without asking.
        let plain = [("content-type", "text/plain"), ("cookie", &olga.cookie), ("origin", own)];
        let answer = world.service.call(Method::POST, target, &plain, *form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{target}");
    }
    let after = (world.state_of_loja().await, world.service.count("audit").await);
    assert_eq!(after, before);
    assert_eq!(world.app().clock.ahead(), ahead);
    assert_eq!(world.get(&olga, "/console").await.status, StatusCode::OK, "still signed in");
    // One of the two headers is enough.
    for proof in [("origin", own), ("sec-fetch-site", "same-origin")] {
        let headers = [FORM, ("cookie", olga.cookie.as_str()), proof];
        let answer =
            world.service.call(Method::POST, "/console/clock", &headers, "minutes=1").await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{proof:?}");
    }
}

async fn every_page_is_protected_and_says_that_it_is_a_sandbox(database: TestDatabase) {
    let world = World::start(database).await;
    let olga = world.operator().await;
    let order = format!("/console/orders/{}", world.open.reference_number.as_str());
    let event = format!("/console/webhooks/{}", world.event().await);
    for (page, status) in [
        ("/console", 200),
        ("/console/search?id=nothing", 404),
        ("/console/orders", 200),
        (&order, 200),
        ("/console/webhooks", 200),
        (&event, 200),
        ("/console/exceptions", 200),
        ("/console/developers", 200),
        ("/console/requests", 200),
        ("/console/audit", 200),
        ("/console/people", 200),
        ("/console/account", 200),
        ("/console/sign-in", 200),
        ("/console/welcome/nobodys", 404),
        ("/console/enter/nobodys", 404),
        ("/console/language/xx", 404),
        ("/console/nowhere/at/all", 404),
        ("/console/orders.csv", 200),
        ("/console/language/fr", 303),
    ] {
        let answer = world.get(&olga, page).await;
        assert_eq!(answer.status.as_u16(), status, "{page}");
        let policy = answer.header("content-security-policy").unwrap_or_default();
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.split("; ").any(|one| one == rule), "{page}: {rule} in {policy}");
        }
        assert!(!policy.contains("unsafe"), "{page}: {policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{page}: {name}");
        }
        if answer.text.starts_with("<!doctype html>") {
            assert!(answer.text.contains("<aside class=\"mark sandbox\""), "{page}");
            assert_eq!(answer.header("cache-control"), Some("no-store"), "{page}");
            assert!(!answer.text.contains("<style") && !answer.text.contains(" onclick"), "{page}");
        } else {
            assert!(page.contains("csv") || status == 303, "{page} is no page");
        }
    }
}
