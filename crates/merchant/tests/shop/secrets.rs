//! Whatever the shop serves, no secret is in it.

use std::collections::BTreeSet;

use crate::support::{CLIENT_SECRET, PREVIOUS, SECRET, TestShop, event, event_of};

/// Each secret as it is, and as it travels in a header to the service.
fn forms() -> Vec<String> {
    let basic = "c3ZjXzE6c3Zjc2VjX2NhbmFyeQ==";
    [SECRET, PREVIOUS, CLIENT_SECRET, basic, "whsec_", "svcsec_", "Bearer"]
        .map(str::to_ascii_lowercase)
        .to_vec()
}

/// The addresses on this shop that a page leads to.
fn links(page: &str) -> Vec<String> {
    ["href=\"/", "src=\"/"]
        .iter()
        .flat_map(|beginning| page.split(beginning).skip(1))
        .filter_map(|rest| rest.split('"').next())
        .map(|path| format!("/{path}").replace("&amp;", "&"))
        .collect()
}

#[test]
fn no_page_file_or_answer_holds_a_secret() {
    let shop = TestShop::open();
    let mut to_see = BTreeSet::from(["/nowhere".to_owned()]);
    let orders = ["PEN", "CON", "CAN", "held", "unknown"].map(|state| {
        let id = shop.order();
        match state {
            "held" => shop.webhook(&event_of(&id, "CON", "REF1", 1)),
            "unknown" => return "order_unknown".to_owned(),
            state => shop.webhook(&event(&id, state)),
        };
        id
    });
    for lang in ["pt", "en", "fr"] {
        to_see.insert(format!("/?lang={lang}"));
        for (page, id) in ["success", "pending", "cancelled"].iter().zip(&orders) {
            to_see.insert(format!("/{page}?lang={lang}&orderId={id}&ref=1&entity=2"));
        }
    }
    for id in &orders {
        to_see.insert(format!("/api/shop/order/{id}"));
        to_see.insert(format!("/api/svc/order/{id}/status"));
        // The one that stays open is read in its own test; these answer and end.
        if *id != orders[0] {
            to_see.insert(format!("/api/svc/order/{id}/events"));
        }
    }
    let mut seen = BTreeSet::new();
    while let Some(path) = to_see.pop_first() {
        let answer = shop.call(&format!("GET {path}"), &[], b"");
        let all = format!("{}{}", answer.head, answer.text).to_ascii_lowercase();
        for secret in forms() {
            assert!(!all.contains(&secret), "{path} holds {secret}");
        }
        seen.insert(path);
        to_see.extend(links(&answer.text).into_iter().filter(|path| !seen.contains(path)));
    }
    for bundle in ["/assets/shop.js", "/assets/shop.css"] {
        assert!(seen.contains(bundle), "a page leads to {bundle}");
    }
    let front = shop.call("GET /", &[], b"");
    assert!(front.text.contains("pk_test_0b6f"), "only the publishable key is for pages");
}

#[test]
fn refusals_tell_no_secret_either() {
    let shop = TestShop::open();
    *shop.service.refusing.lock().unwrap() = true;
    let answers = [
        shop.create(&serde_json::json!({ "items": [{ "id": "livro-receitas", "quantity": 1 }] })),
        shop.create(&serde_json::json!({})),
        shop.webhook("not json"),
        shop.webhook_signed(b"{}", "0"),
        shop.call("GET /api/svc/webhook", &[], b""),
    ];
    for answer in answers {
        assert!(answer.status >= 400, "{answer:?}");
        let all = format!("{}{}", answer.head, answer.text).to_ascii_lowercase();
        for secret in forms() {
            assert!(!all.contains(&secret), "{answer:?}");
        }
    }
}

#[cfg(unix)]
#[test]
fn what_payers_bought_is_for_nobody_else_on_the_machine() {
    use std::os::unix::fs::PermissionsExt;
    let shop = TestShop::open();
    shop.order();
    for name in ["shop.db", "shop.db-wal", "shop.db-shm"] {
        let mode =
            std::fs::metadata(shop.path().with_file_name(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
