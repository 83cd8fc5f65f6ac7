//! The shop's pages: in three languages, escaped, and without a secret anywhere.

use crate::support::{SECRET, TestShop, event};

#[test]
fn no_page_and_no_file_holds_a_secret() {
    let shop = TestShop::open();
    let id = shop.order();
    shop.webhook(&event(&id, "CON"));
    let story = format!("/api/shop/order/{id}");
    let status = format!("/api/svc/order/{id}/status");
    let pages = [
        "/",
        "/success",
        "/pending",
        "/cancelled",
        "/assets/shop.js",
        "/assets/shop.css",
        "/nowhere",
    ];
    for page in pages.into_iter().chain([story.as_str(), &status]) {
        let answer = shop.call(&format!("GET {page}"), &[], b"");
        let all = format!("{}{}", answer.head, answer.text);
        for secret in ["svcsec_canary", SECRET, "whsec_"] {
            assert!(!all.contains(secret), "{page} holds {secret}");
        }
    }
    let front = shop.call("GET /", &[], b"");
    assert!(front.text.contains("pk_test_0b6f"), "only the publishable key is for pages");
}

#[test]
fn pages_speak_the_language_that_is_asked_for() {
    let shop = TestShop::open();
    for (query, header, text) in [
        ("?lang=fr", "", "Votre panier"),
        ("", "en-GB,en;q=0.8", "Your cart"),
        ("", "de", "O seu cesto"),
        ("?lang=pt", "fr", "O seu cesto"),
    ] {
        let headers = [("accept-language", header)];
        let answer = shop.call(&format!("GET /{query}"), &headers, b"");
        assert!(answer.text.contains(text), "{query} {header}");
    }
}

#[test]
fn what_an_address_says_is_printed_as_text() {
    let shop = TestShop::open();
    let evil = "%3Cscript%3Ealert(1)%3C/script%3E";
    let answer =
        shop.call(&format!("GET /pending?ref={evil}&entity={evil}&orderId={evil}"), &[], b"");
    assert!(!answer.text.contains("<script>alert"), "{}", answer.text);
    assert!(answer.head.contains("default-src 'none'"), "{}", answer.head);
    assert!(answer.head.contains("frame-ancestors 'none'"));
}

#[test]
fn an_order_has_its_story() {
    let shop = TestShop::open();
    let id = shop.order();
    shop.webhook(&event(&id, "CON"));
    shop.wait_until("the parcel", |shop| shop.happened(&id, "fulfilled") == 1);
    let answer = shop.call(&format!("GET /api/shop/order/{id}"), &[], b"").json();
    let story: Vec<_> =
        answer["story"].as_array().unwrap().iter().map(|one| &one["what"]).collect();
    assert_eq!(story, ["created", "reference", "webhook", "fulfilled"]);
}
