//! The shop's pages: in three languages, escaped, and true without JavaScript.

use std::collections::BTreeSet;

use crate::support::{TestShop, event};

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

#[test]
fn an_order_page_says_how_the_order_is_without_javascript() {
    let shop = TestShop::open();
    let page = |page: &str, id: &str| {
        let address = format!("GET /{page}?lang=en&orderId={id}&ref=123456789&entity=00348");
        shop.call(&address, &[], b"").text
    };
    let (paid, cancelled) = (shop.order(), shop.order());
    for id in [&paid, &cancelled] {
        let text = page("pending", id);
        for part in
            ["Still to be paid", "Open the payment", "Total", "data-open", "Check for updates"]
        {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(text.contains(r#"<li data-what="created"><time>09:00:00</time> Order created"#));
    }
    shop.webhook(&event(&paid, "CON"));
    shop.wait_until("the parcel", |shop| shop.happened(&paid, "fulfilled") == 1);
    shop.webhook(&event(&cancelled, "CAN"));
    for place in ["success", "pending", "cancelled"] {
        let text = page(place, &paid);
        assert!(text.contains("The payment is confirmed"), "{place}: {text}");
        assert!(text.contains("Webhook received and verified (CON)"), "{text}");
        assert!(text.contains(r#"<li data-what="fulfilled">"#), "{text}");
        let text = page(place, &cancelled);
        assert!(text.contains("Payment cancelled"), "{place}: {text}");
        for over in [text, page(place, &paid)] {
            assert!(!over.contains("data-open") && !over.contains("Open the payment"), "{over}");
        }
    }
    for place in ["success", "pending", "cancelled"] {
        let text = page(place, "order_unknown");
        assert!(text.contains("Order not found") && !text.contains("Open the payment"), "{text}");
    }
    // The address may name no order at all.
    let text = page("pending", "");
    assert!(text.contains(r#"id="story" hidden"#) && !text.contains("Open the payment"), "{text}");
}

#[test]
fn what_an_address_names_is_printed_in_figures_and_only_while_it_can_be_paid() {
    let shop = TestShop::open();
    let (pending, paid) = (shop.order(), shop.order());
    shop.webhook(&event(&paid, "CON"));
    let page = |page: &str, id: &str, slip: &str| {
        shop.call(&format!("GET /{page}?orderId={id}&status=PEN&{slip}"), &[], b"").text
    };
    let slip = "ref=987654321&entity=00999";
    for (id, is_payable) in
        [(&*pending, true), (&*paid, false), ("order_unknown", false), ("", true)]
    {
        for name in ["pending", "success"] {
            let text = page(name, id, slip);
            for figure in [">987 654 321<", ">00999<"] {
                assert_eq!(text.contains(figure), is_payable, "{name} {id}: {text}");
            }
            // The way on leads to what this very order is to be paid with.
            let leads =
                text.contains(&format!("{}/checkout/REF1?key=pk_test_0b6f", shop.service.url()));
            assert_eq!(leads, id == pending, "{name} {id}: {text}");
        }
        assert!(!page("cancelled", id, slip).contains("987"), "{id}");
    }
    for strange in
        ["ref=987654321&entity=0099", "ref=9876543x1&entity=00999", "ref=12&entity=00999"]
    {
        assert!(!page("pending", "", strange).contains("00999"), "{strange}");
    }
    let text = shop.call("GET /pending?ref=987654321&entity=00999", &[], b"").text;
    assert!(text.contains(">987 654 321<") && !text.contains("pague outra vez"), "{text}");
}

#[test]
fn an_address_that_leads_nowhere_is_a_page_for_readers_and_json_for_programs() {
    let shop = TestShop::open();
    let html = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let lost = [
        "/nowhere",
        "/api/svc/order/%FF/status",
        "/api/svc/order/%FF/events",
        "/api/shop/order/%FF",
    ];
    for path in lost {
        for (query, language, title) in [
            ("?lang=fr", "pt", "Page introuvable"),
            ("", "en", "Page not found"),
            ("", "de", "Página não encontrada"),
        ] {
            let headers = [html, ("accept-language", language)];
            let answer = shop.call(&format!("GET {path}{query}"), &headers, b"");
            assert_eq!(answer.status, 404, "{answer:?}");
            assert!(answer.head.contains("content-type: text/html"), "{answer:?}");
            assert!(answer.head.contains("default-src 'none'"), "{answer:?}");
            assert!(answer.text.contains(&format!("<h1>{title}</h1>")), "{answer:?}");
        }
        for headers in [&[][..], &[("accept", "application/json")], &[("accept", "*/*")]] {
            let answer = shop.call(&format!("GET {path}"), headers, b"");
            assert_eq!((answer.status, &answer.json()["error"]), (404, &"not_found".into()));
        }
    }
}

#[test]
fn the_shop_can_be_read_aloud() {
    let shop = TestShop::open();
    for (lang, add) in [("pt", "Adicionar:"), ("en", "Add:"), ("fr", "Ajouter :")] {
        let text = shop.call(&format!("GET /?lang={lang}"), &[], b"").text;
        let label = format!("aria-label=\"{add} ");
        let named = text.split(&label).skip(1);
        let names: BTreeSet<_> = named.filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(names.len(), text.matches("data-add=").count(), "{names:?}");
        let headings: Vec<_> = text.split("<h").filter_map(|rest| rest.chars().next()).collect();
        assert_eq!(headings.iter().filter(|level| **level == '1').count(), 1, "{headings:?}");
        assert!(text.find("<h1") < text.find("<h2"), "{text}");
        assert!(text.find("<noscript") < text.find("data-add="), "said before anything is pressed");
    }
}

#[test]
fn who_has_no_reference_is_not_asked_to_pay() {
    let shop = TestShop::open();
    let id = shop.order();
    for slip in ["", "&ref=&entity=", "&entity=00348"] {
        let address = format!("GET /pending?lang=en&orderId={id}{slip}");
        let text = shop.call(&address, &[], b"").text;
        assert!(text.contains("Do not pay again"), "{slip}: {text}");
        assert!(!text.contains("Open the payment") && !text.contains("<dl>"), "{slip}: {text}");
    }
}

#[test]
fn every_happening_has_words_in_every_language() {
    let shop = TestShop::open();
    let id = shop.order();
    let sql =
        "insert into story (external_transaction_id, at_ms, what, detail) values (?1, 0, ?2, '')";
    for what in ["created", "reference", "webhook", "query", "held", "fulfilled", "failed"] {
        shop.database().execute(sql, [&id, what]).unwrap();
    }
    for lang in ["pt", "en", "fr"] {
        let page = shop.call(&format!("GET /success?lang={lang}&orderId={id}"), &[], b"").text;
        assert_eq!(page.matches("<li data-what=").count(), 9, "{page}");
        assert!(!page.contains("</time> ?"), "{page}");
    }
}
