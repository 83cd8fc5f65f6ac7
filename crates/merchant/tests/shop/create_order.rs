//! POST /api/svc/create-order: the shop's own prices, its stock, and a service that may refuse.

use serde_json::json;

use crate::support::{TestShop, settings};
use svc_merchant::{SettingsError, Shop};

#[test]
fn the_total_is_the_shops_own() {
    let shop = TestShop::open();
    let asked = json!({
        "items": [{ "id": "livro-receitas", "quantity": 2 }, { "id": "cafe-amboim", "quantity": 1 }],
        "total": 1, "amount": 1, "clientId": "ana",
    });
    let answer = shop.create(&asked);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["referenceNumber"], "REF1");
    let created = shop.service.created.lock().unwrap()[0].clone();
    assert_eq!((&created["amount"], &created["clientId"]), (&json!(36_500), &json!("ana")));
    let id = created["externalTransactionId"].as_str().unwrap();
    assert!(id.starts_with("order_") && id.len() == "order_".len() + 36, "{id}");
    let info = created["additionalInfo"].as_str().unwrap();
    for path in ["/success", "/cancelled", "/api/svc/webhook"] {
        assert!(info.contains(path), "{info}");
    }
}

#[test]
fn what_is_not_an_order_is_422_and_reserves_nothing() {
    let shop = TestShop::open();
    let item = |id: &str, quantity: i64| json!({ "items": [{ "id": id, "quantity": quantity }] });
    let many: Vec<_> =
        (0..1_000).map(|_| json!({ "id": "livro-receitas", "quantity": 1 })).collect();
    let wrong = [
        json!({}),
        json!([]),
        json!({ "items": [] }),
        json!({ "items": many }),
        item("livro-receitas", 0),
        item("livro-receitas", -1),
        item("livro-receitas", 1_000_000),
        item("nothing", 1),
        json!({ "items": [{ "id": "livro-receitas", "quantity": 1.5 }] }),
        json!({ "items": [{ "id": "livro-receitas", "quantity": 1 }, { "id": "livro-receitas", "quantity": 1 }] }),
    ];
    for body in &wrong {
        assert_eq!(shop.create(body).status, 422, "{body}");
    }
    assert_eq!(shop.stock(), 500);
    assert!(shop.service.created.lock().unwrap().is_empty());
}

#[test]
fn a_service_that_refuses_leaves_no_reservation() {
    let shop = TestShop::open();
    *shop.service.refusing.lock().unwrap() = true;
    let asked = json!({ "items": [{ "id": "livro-receitas", "quantity": 3 }] });
    assert_eq!(shop.create(&asked).status, 502);
    assert_eq!(shop.stock(), 500);
    let sql = "select count(*) from orders where status = 'CAN'";
    let ended: i64 = shop.database().query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(ended, 1, "the order was there before the service was asked, and ended");
}

#[test]
fn what_is_sold_out_is_not_sold() {
    let shop = TestShop::open();
    shop.database().execute_batch("update stock set free = 2 where product = 'kissange'").unwrap();
    let asked = json!({ "items": [{ "id": "kissange", "quantity": 3 }, { "id": "mel-moxico", "quantity": 1 }] });
    assert_eq!(shop.create(&asked).status, 409);
    let sql = "select free from stock where product = 'mel-moxico'";
    let free: i64 = shop.database().query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(free, 500, "nothing of it is taken");
}

#[test]
fn a_shop_without_a_real_secret_does_not_open() {
    let folder = std::env::temp_dir();
    let with = |spoil: fn(&mut svc_merchant::Settings)| {
        let mut settings = settings("http://127.0.0.1:1", folder.join("never.db"));
        spoil(&mut settings);
        Shop::open(settings).err().map(|fault| fault.to_string()).unwrap_or_default()
    };
    let empty = with(|s| s.webhook_secret = String::new().into());
    assert_eq!(empty, SettingsError::Empty("SVC_WEBHOOK_SECRET").to_string());
    let short = with(|s| s.webhook_secret = "secret".to_owned().into());
    assert_eq!(short, SettingsError::ShortSecret.to_string());
    let short = with(|s| s.webhook_secret_previous = Some("x".to_owned().into()));
    assert_eq!(short, SettingsError::ShortSecret.to_string());
    assert!(with(|s| s.publishable_key.clear()).contains("SVC_PUBLISHABLE_KEY"));
    assert!(!folder.join("never.db").exists());
}
