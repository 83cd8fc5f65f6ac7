//! Looking at an order: who sees it, what browsers are told, and how much of it there is.

use hyper::{Method, StatusCode};

use super::{Checkout, attribute};
use crate::support::*;

on_both_engines! {
    h1_unknown_and_malformed_references_look_alike,
    h2_who_guesses_is_slowed_down_and_who_knows_is_not,
    h4_a_key_of_another_world_or_shop_opens_nothing,
    h18_only_the_shop_may_frame_its_page,
    h20_nonsense_in_the_address_becomes_the_default_and_is_escaped,
    h22_a_page_that_asks_too_often_is_told_when_to_come_back,
    windows_of_an_order_are_not_made_up_without_end,
    every_answer_says_what_browsers_may_do_with_it,
    the_status_is_short_and_needs_a_session,
    page_style_and_script_together_fit_into_25_kilobytes,
    a_method_that_is_not_allowed_is_not_shown,
}

async fn h1_unknown_and_malformed_references_look_alike(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let mut unknown = checkout.reference.clone().into_bytes();
    unknown.reverse();
    let unknown = String::from_utf8(unknown).unwrap();
    let mut bodies = std::collections::HashSet::new();
    for reference in
        [unknown.as_str(), "x", "0", "%00", "..%2f..%2fetc", "%ff%fe", "%27%20or%201%3D1--"]
    {
        for verb in ["", "/status"] {
            let target = format!("/checkout/{reference}{verb}?key={}", checkout.key);
            let answer = checkout.service.get(&target).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{target}");
            bodies.insert(answer.text);
        }
        for verb in ["/pay", "/cancel"] {
            let target = format!("/checkout/{reference}{verb}?key={}", checkout.key);
            let headers = [super::FORM];
            let answer = checkout.service.call(Method::POST, &target, &headers, "a=b").await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{target}");
            bodies.insert(answer.text);
        }
    }
    assert_eq!(bodies.len(), 1, "{bodies:?}");
}

async fn h2_who_guesses_is_slowed_down_and_who_knows_is_not(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let mut statuses = Vec::new();
    let mut last = None;
    for _ in 0..200 {
        let target = format!("/checkout/GUESS?key={}", checkout.key);
        let answer = checkout.service.get(&target).await;
        statuses.push(answer.status);
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            last = Some(answer);
            break;
        }
    }
    let (limited, missed) = statuses.split_last().unwrap();
    assert_eq!(*limited, StatusCode::TOO_MANY_REQUESTS, "after {} misses", missed.len());
    assert!(missed.len() >= 60, "{}", missed.len());
    assert!(missed.iter().all(|status| *status == StatusCode::NOT_FOUND));
    let last = last.unwrap();
    assert!(last.text.contains("href=\"/checkout/GUESS?key="), "{}", last.text);
    let wait: u64 = last.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(checkout.page("").await.status, StatusCode::OK, "who knows is let in");
}

async fn h4_a_key_of_another_world_or_shop_opens_nothing(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let uuid = checkout.service.application();
    let stranger = checkout.service.stranger.application.publishable_key.to_string();
    for key in [&format!("pk_live_{uuid}"), uuid, &stranger, "", "pk_test_", "pk_test_nobody"] {
        let target = format!("/checkout/{}?key={key}", checkout.reference);
        let answer = checkout.service.get(&target).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{key}");
        assert!(!answer.text.contains("Livro"), "{key}: nothing private is shown");
    }
    let bare = checkout.service.get(&format!("/checkout/{}", checkout.reference)).await;
    assert_eq!(bare.status, StatusCode::NOT_FOUND, "the reference alone opens nothing");
    assert_eq!(checkout.page("").await.status, StatusCode::OK);
}

fn ancestors(answer: &Answer) -> &str {
    let policy = answer.header("content-security-policy").unwrap();
    let rules = policy.split("; ").find_map(|rule| rule.strip_prefix("frame-ancestors "));
    rules.unwrap()
}

async fn h18_only_the_shop_may_frame_its_page(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let page = checkout.page("").await;
    assert_eq!(ancestors(&page), "http://127.0.0.1:3000", "the origin of returnUrl");
    assert_eq!(attribute(&page, "data-merchant-origin"), "http://127.0.0.1:3000");
    let missing = checkout.service.get("/checkout/X?key=Y").await;
    assert_eq!(ancestors(&missing), "'none'");
    let refused = checkout.pay("", "FPSOLPG", "").await;
    assert_eq!(ancestors(&refused), "http://127.0.0.1:3000");
    // The origin only: neither path nor credentials nor what would end the directive.
    let token = checkout.service.token(&checkout.service.partner).await;
    let mut body = checkout.service.order("order_2");
    let info = body["additionalInfo"].as_str().unwrap();
    let odd = "https://shop.example:8443/a;script-src%20*?b=c#d";
    body["additionalInfo"] = info.replace("http://127.0.0.1:3000/ok", odd).into();
    let created = checkout.service.create(&token, &body).await;
    let reference = created.json()["data"]["referenceNumber"].as_str().unwrap().to_owned();
    let page = checkout.service.get(&format!("/checkout/{reference}?key={}", checkout.key)).await;
    assert_eq!(ancestors(&page), "https://shop.example:8443");
}

async fn h20_nonsense_in_the_address_becomes_the_default_and_is_escaped(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let hostile = "%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E%22onload%3D%22x";
    for query in ["lang", "theme", "view", "nonce", "life", "amount", "methods", "other"] {
        let page = checkout.page(&format!("&{query}={hostile}")).await;
        assert_eq!(page.status, StatusCode::OK, "{query}");
        assert!(!page.text.contains("<script>"), "{query}");
        assert!(!page.text.contains("alert(1)"), "{query}: not even escaped");
        assert_eq!(attribute(&page, "<html lang"), "pt-AO", "{query}");
        assert_eq!(attribute(&page, "data-theme"), "light", "{query}");
        assert_eq!(attribute(&page, "data-nonce"), "", "{query}");
    }
    for (query, lang, theme) in [
        ("&lang=en&theme=dark", "en", "dark"),
        ("&lang=fr&theme=auto", "fr", "auto"),
        ("&lang=EN&theme=Dark", "en", "light"),
        ("&lang=fr-CA", "fr", "light"),
        ("&lang=xx&theme=", "pt-AO", "light"),
    ] {
        let page = checkout.page(query).await;
        let shown = (attribute(&page, "<html lang"), attribute(&page, "data-theme"));
        assert_eq!(shown, (lang.to_owned(), theme.to_owned()), "{query}");
    }
    let page = checkout.page("&nonce=abc-DEF_123").await;
    assert_eq!(attribute(&page, "data-nonce"), "abc-DEF_123");
    // What the merchant and the payer type is escaped as well.
    let token = checkout.service.token(&checkout.service.partner).await;
    let mut body = checkout.service.order("order_2");
    body["name"] = "<img src=x onerror=alert(1)>\"'&".into();
    let created = checkout.service.create(&token, &body).await;
    let reference = created.json()["data"]["referenceNumber"].as_str().unwrap().to_owned();
    let page = checkout.service.get(&format!("/checkout/{reference}?key={}", checkout.key)).await;
    assert!(!page.text.contains("<img"), "{}", page.text);
    let session = checkout.session().await;
    let typed = checkout.pay(&session, "FPMCXEXPRSS", &format!("&phone={hostile}")).await;
    assert_eq!(typed.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(!typed.text.contains("<script>"), "{}", typed.text);
}

async fn h22_a_page_that_asks_too_often_is_told_when_to_come_back(database: TestDatabase) {
    let checkout =
        Checkout::start_with(database, |c| c.limits.checkout_polls_per_second = 10).await;
    let session = checkout.session().await;
    let mut answers = Vec::new();
    while answers.last().is_none_or(|a: &Answer| a.status == StatusCode::OK) {
        assert!(answers.len() < 1_000, "never limited");
        answers.push(checkout.status(&session).await);
    }
    assert!(answers.len() > 10, "{}", answers.len());
    let limited = answers.last().unwrap();
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(limited.json()["error"], "rate_limited");
    assert_eq!(limited.header("retry-after"), Some("1"));
    // The shop's page may read that, too.
    let state = format!("/checkout/{}/state?key={}&nonce=n", checkout.reference, checkout.key);
    let mut asked = checkout.service.get(&state).await;
    for _ in 0..1_000 {
        if asked.status == StatusCode::TOO_MANY_REQUESTS {
            break;
        }
        asked = checkout.service.get(&state).await;
    }
    assert_eq!(asked.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(asked.header("access-control-allow-origin").is_some(), "{asked:?}");
    let before = checkout.snapshot().await;
    // Forms count too, and another order does not pay for this one.
    let mut pressed = checkout.pay(&session, "NONE", "").await;
    for _ in 0..1_000 {
        if pressed.status == StatusCode::TOO_MANY_REQUESTS {
            break;
        }
        pressed = checkout.pay(&session, "NONE", "").await;
    }
    assert_eq!(pressed.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(super::leads_to_the_page(&checkout, &pressed), "{}", pressed.text);
    assert_eq!(checkout.snapshot().await, before);
    let reference = checkout.another_order("order_2").await;
    let other = Checkout { reference, ..checkout };
    assert_eq!(other.status(&other.session().await).await.status, StatusCode::OK);
}

async fn windows_of_an_order_are_not_made_up_without_end(database: TestDatabase) {
    let checkout = Checkout::start_with(database, |c| c.limits.checkout_polls_per_second = 1).await;
    let mut opened = 0;
    let limited = loop {
        let page = checkout.page(&format!("&nonce=window{opened}")).await;
        if page.status != StatusCode::OK {
            break page;
        }
        opened += 1;
        assert!(opened < 1_000, "never limited");
    };
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(limited.header("retry-after").is_some());
    assert_eq!(checkout.service.count("checkout_visits").await, opened, "a row for each");
    assert_eq!(checkout.page("&nonce=window0").await.status, StatusCode::OK, "this one is known");
    // And whoever only looks, again and again, is told to wait, too.
    let mut looked = checkout.page("").await;
    for _ in 0..1_000 {
        if looked.status != StatusCode::OK {
            break;
        }
        looked = checkout.page("").await;
    }
    assert_eq!(looked.status, StatusCode::TOO_MANY_REQUESTS);
}

async fn every_answer_says_what_browsers_may_do_with_it(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    let pages = [
        ("page", checkout.page("").await),
        ("missing", checkout.service.get("/checkout/X?key=Y").await),
        ("no session", checkout.pay("", "FPSOLPG", "").await),
        ("wrong phone", checkout.pay(&session, "FPMCXEXPRSS", "&phone=1").await),
    ];
    for (name, answer) in &pages {
        let policy = answer.header("content-security-policy").unwrap();
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
        ] {
            assert!(policy.split("; ").any(|is| is == rule), "{name}: {rule} not in {policy}");
        }
        assert!(!policy.contains("unsafe"), "{name}: {policy}");
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"), "{name}");
        assert_eq!(answer.header("referrer-policy"), Some("same-origin"), "{name}");
        assert!(answer.header("permissions-policy").is_some(), "{name}");
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"), "{name}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{name}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{name}");
        assert_eq!(answer.header("set-cookie"), None, "{name}");
        // Nothing inline and nothing of anybody else's.
        let tags = answer.text.matches("<script").count();
        let own = answer.text.matches("<script src=\"/checkout/assets/").count();
        assert_eq!(tags, own, "{name}");
        assert!(!answer.text.contains(" style=\"") && !answer.text.contains("<style"), "{name}");
    }
    let status = checkout.status(&session).await;
    assert_eq!(status.header("cache-control"), Some("no-store"));
    assert_eq!(status.header("set-cookie"), None);
    let paid = checkout.pay(&session, "FPSOLPG", "").await;
    assert_eq!((paid.status, paid.header("set-cookie")), (StatusCode::SEE_OTHER, None));
    for name in ["href", "script src"] {
        let asset = checkout.service.get(&asset(&pages[0].1, name)).await;
        assert_eq!(asset.status, StatusCode::OK);
        assert_eq!(asset.header("x-content-type-options"), Some("nosniff"));
        assert!(asset.header("cache-control").unwrap().contains("immutable"));
    }
    assert_eq!(checkout.service.get("/checkout/assets/x.js").await.status, StatusCode::NOT_FOUND);
}

/// The address of a file of the page.
fn asset(page: &Answer, attribute: &str) -> String {
    let marker = format!("{attribute}=\"/checkout/assets/");
    let name = page.text.split(&marker).nth(1).unwrap().split('"').next().unwrap();
    format!("/checkout/assets/{name}")
}

async fn the_status_is_short_and_needs_a_session(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let session = checkout.session().await;
    let first = checkout.status(&session).await;
    assert_eq!(first.status, StatusCode::OK);
    assert_eq!(
        (&first.json()["status"], &first.json()["screen"]),
        (&"PEN".into(), &"choose".into())
    );
    let phone = "&phone=900000003";
    assert_eq!(checkout.pay(&session, "FPMCXEXPRSS", phone).await.status, StatusCode::SEE_OTHER);
    let waiting = checkout.status(&session).await;
    assert_eq!(waiting.json()["screen"], "waiting");
    assert_ne!(waiting.json()["version"], first.json()["version"]);
    let left = waiting.json()["left"].as_i64().unwrap();
    assert!((1..=90).contains(&left), "{left}");
    for answer in [&first, &waiting] {
        assert!(answer.bytes.len() <= 300, "{} bytes", answer.bytes.len());
    }
    let reference = checkout.another_order("order_2").await;
    let other = Checkout { reference, ..checkout };
    for wrong in ["", "x", "x.y", session.as_str()] {
        let answer = other.status(wrong).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{wrong}");
        assert_eq!(answer.json()["error"], "invalid_session", "{wrong}");
    }
}

async fn page_style_and_script_together_fit_into_25_kilobytes(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    let page = checkout.page("").await;
    let session = super::session_of(&page);
    let mut targets = vec![asset(&page, "href"), asset(&page, "script src")];
    checkout.pay(&session, "FPSOLPG", "").await;
    // The largest screen: it has a QR code in it.
    targets.push(checkout.at("", ""));
    let mut sum = 0;
    for target in targets {
        let headers = [("accept-encoding", "br, gzip")];
        let packed = checkout.service.call(Method::GET, &target, &headers, "").await;
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{target}");
        assert_eq!(packed.header("vary"), Some("accept-encoding"), "{target}");
        let headers = [("accept-encoding", "gzip;q=0")];
        let plain = checkout.service.call(Method::GET, &target, &headers, "").await;
        assert_eq!(plain.header("content-encoding"), None, "{target}");
        assert!(packed.bytes.len() < plain.bytes.len(), "{target}");
        sum += packed.bytes.len();
    }
    assert!(sum <= 25_000, "{sum} bytes");
}

async fn a_method_that_is_not_allowed_is_not_shown(database: TestDatabase) {
    let checkout = Checkout::start(database).await;
    for (methods, shown) in [
        ("", &["FPSOLPG", "view=phone", "FPSOLPGEXT"][..]),
        ("FPSOLPGEXT", &["FPSOLPG", "FPSOLPGEXT"][..]),
        ("FPMCXEXPRSS", &["FPSOLPG", "view=phone"][..]),
        ("nonsense", &["FPSOLPG"][..]),
    ] {
        let page = checkout.page(&format!("&methods={methods}")).await;
        for method in ["FPSOLPG", "view=phone", "FPSOLPGEXT"] {
            let text = match method {
                "view=phone" => "view=phone\"".to_owned(),
                code => format!("name=\"method\" value=\"{code}\""),
            };
            let there = page.text.contains(&text);
            assert_eq!(there, shown.contains(&method), "{methods}: {method}");
        }
    }
}
