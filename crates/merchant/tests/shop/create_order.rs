//! POST /api/svc/create-order: the shop's own prices, its stock, and a service that may refuse.

use std::io::{Read, Write};

use serde_json::{Value, json};

use crate::support::{PATIENCE, SECRET, TestShop, call, event, settings, sign};
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
    // A million items are not even read.
    let mut stream = std::net::TcpStream::connect(shop.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = "POST /api/svc/create-order HTTP/1.1\r\nhost: shop\r\nconnection: close\r\n\
                content-type: application/json\r\ncontent-length: 40000000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 413");
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
fn a_service_whose_answer_is_lost_may_have_taken_the_order() {
    let shop = TestShop::open();
    shop.order();
    *shop.service.losing.lock().unwrap() = 1_000;
    let asked = json!({ "items": [{ "id": "livro-receitas", "quantity": 3 }] });
    assert_eq!(shop.create(&asked).status, 502);
    *shop.service.losing.lock().unwrap() = 0;
    let taken = shop.service.created.lock().unwrap().last().unwrap().clone();
    let id = taken["externalTransactionId"].as_str().unwrap();
    assert_eq!((shop.status(id).as_str(), shop.stock()), ("PEN", 496));
    // It was paid after all.
    assert_eq!(shop.webhook(&event(id, "CON")).status, 200);
    assert_eq!(shop.status(id), "CON");
}

#[test]
fn the_order_is_there_before_the_service_is_asked_for_anything() {
    let shop = TestShop::open();
    let (told, heard) = std::sync::mpsc::channel();
    let path = shop.path();
    let look = move |what: &str| {
        let db = rusqlite::Connection::open(&path).unwrap();
        let sql = "select status from orders";
        let status: String = db.query_row(sql, [], |row| row.get(0)).unwrap_or_default();
        told.send((what == "/token", status)).unwrap();
    };
    *shop.service.before_answer.lock().unwrap() = Some(Box::new(look));
    *shop.service.forgetful.lock().unwrap() = true;
    shop.order();
    let seen: Vec<_> = heard.try_iter().collect();
    let (token, order) = ((true, "PEN".to_owned()), (false, "PEN".to_owned()));
    assert_eq!(seen, [order.clone(), token, order]);
}

#[test]
fn a_webhook_that_overtakes_the_answer_finds_its_order() {
    let shop = TestShop::open();
    let address = shop.address;
    let overtake = move |what: &str| {
        if what != "/token" {
            let body = event(what, "CON");
            let signature = sign(SECRET, body.as_bytes());
            let headers = [("x-svc-content-token", signature.as_str())];
            assert_eq!(
                call(address, "POST /api/svc/webhook", &headers, body.as_bytes()).status,
                200
            );
        }
    };
    *shop.service.before_answer.lock().unwrap() = Some(Box::new(overtake));
    let id = shop.order();
    assert_eq!(shop.status(&id), "CON");
    shop.wait_until("the parcel", |shop| shop.happened(&id, "fulfilled") == 1);
    assert_eq!((shop.stock(), shop.happened(&id, "held")), (499, 0));
}

#[test]
fn an_answer_that_is_lost_is_asked_for_again_with_the_same_id() {
    let shop = TestShop::open();
    shop.order();
    *shop.service.losing.lock().unwrap() = 2;
    let id = shop.order();
    let created = shop.service.created.lock().unwrap();
    let ids: Vec<_> = created.iter().skip(1).map(|one| &one["externalTransactionId"]).collect();
    assert_eq!(ids, [&id, &id, &id]);
    assert_eq!(shop.stock(), 498, "reserved once");
}

#[test]
fn a_payer_the_service_would_not_take_is_refused_here() {
    let shop = TestShop::open();
    let create = |payer: &Value| {
        let items = json!([{ "id": "livro-receitas", "quantity": 1 }]);
        shop.create(&json!({ "items": items, "clientId": payer }))
    };
    let long = "x".repeat(129);
    for payer in
        [long.as_str(), "a\nb", "a\u{202e}b", "a\u{200f}b", "\u{2066}a", "\u{200b}", "\u{3164}"]
    {
        let answer = create(&json!(payer));
        assert_eq!(answer.status, 422, "{payer:?}");
        assert_eq!(answer.json()["error"], "invalid_client_id", "{payer:?}");
    }
    for payer in [json!(7), json!(["ana"]), json!(true)] {
        let answer = create(&payer);
        assert_eq!((answer.status, &answer.json()["error"]), (422, &json!("invalid_client_id")));
        assert!(answer.text.contains("clientId is a text"), "{answer:?}");
    }
    assert_eq!(shop.stock(), 500, "nothing was reserved");
    assert!(shop.service.created.lock().unwrap().is_empty(), "and nobody was asked");
    for (payer, told) in
        [(json!("José 7"), "José 7"), (json!(" "), "guest"), (json!(null), "guest")]
    {
        assert_eq!(create(&payer).status, 200, "{payer}");
        assert_eq!(shop.service.created.lock().unwrap().last().unwrap()["clientId"], told);
    }
}

#[test]
fn a_payer_comes_back_to_the_language_of_the_page() {
    let shop = TestShop::open();
    let cart = json!({ "items": [{ "id": "livro-receitas", "quantity": 1 }] }).to_string();
    for (query, end) in
        [("?lang=fr", "?lang=fr"), ("?lang=en", "?lang=en"), ("", ""), ("?lang=de", "")]
    {
        let request = format!("POST /api/svc/create-order{query}");
        let headers = [("content-type", "application/json"), ("accept-language", "fr")];
        assert_eq!(shop.call(&request, &headers, cart.as_bytes()).status, 200, "{query}");
        let created = shop.service.created.lock().unwrap().last().unwrap().clone();
        let info: Value =
            serde_json::from_str(created["additionalInfo"].as_str().unwrap()).unwrap();
        let address = |path: &str| json!(format!("http://{}{path}", shop.address));
        assert_eq!(info["returnUrl"], address(&format!("/success{end}")));
        assert_eq!(info["cancelUrl"], address(&format!("/cancelled{end}")));
        assert_eq!(info["webhookUrl"], address("/api/svc/webhook"));
    }
}

#[test]
fn a_page_of_another_site_reserves_nothing() {
    let shop = TestShop::open();
    let cart = json!({ "items": [{ "id": "livro-receitas", "quantity": 1 }] }).to_string();
    let send = |headers: &[(&str, &str)]| {
        shop.call("POST /api/svc/create-order", headers, cart.as_bytes())
    };
    let origin = ("origin", "https://elsewhere.example");
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
        "application/jsonp",
    ] {
        let answer = send(&[("content-type", kind), origin]);
        assert_eq!((answer.status, &answer.json()["error"]), (415, &json!("not_json")), "{kind}");
        assert_eq!(send(&[("content-type", kind)]).status, 415, "{kind}");
    }
    assert_eq!(send(&[origin]).status, 415, "a browser may leave the type out");
    assert_eq!(send(&[]).status, 415);
    assert_eq!(shop.stock(), 500);
    // With this type a browser asks first, and this shop never agrees.
    let json = ("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(send(&[json, origin]).status, 200);
    let asked = shop.call("OPTIONS /api/svc/create-order", &[origin], b"");
    assert!(asked.status == 405 && !asked.head.contains("access-control"), "{asked:?}");
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
    type Spoil = fn(&mut svc_merchant::Settings);
    let with = |spoil: Spoil| {
        let mut settings = settings("http://127.0.0.1:1", folder.join("never.db"));
        spoil(&mut settings);
        Shop::open(settings).err().map(|fault| fault.to_string()).unwrap_or_default()
    };
    let empty = with(|s| s.webhook_secret = String::new().into());
    assert_eq!(empty, SettingsError::Empty("SVC_WEBHOOK_SECRET").to_string());
    let short = with(|s| s.webhook_secret = "secret".to_owned().into());
    assert_eq!(short, SettingsError::ShortSecret("SVC_WEBHOOK_SECRET").to_string());
    let short = with(|s| s.webhook_secret_previous = Some("x".to_owned().into()));
    assert_eq!(short, SettingsError::ShortSecret("SVC_WEBHOOK_SECRET_PREVIOUS").to_string());
    let padded: [(&str, Spoil); 8] = [
        ("SVC_WEBHOOK_SECRET", |s| s.webhook_secret = format!("{SECRET}\n").into()),
        ("SVC_WEBHOOK_SECRET_PREVIOUS", |s| {
            s.webhook_secret_previous = Some(format!("{SECRET} ").into());
        }),
        ("SVC_CLIENT_SECRET", |s| s.client_secret = " svcsec_1".to_owned().into()),
        ("SVC_CLIENT_ID", |s| s.client_id.push('\r')),
        ("SVC_PUBLISHABLE_KEY", |s| s.publishable_key.push(' ')),
        ("SVC_BASE_URL", |s| s.base_url.push('\t')),
        ("SVC_SDK_URL", |s| s.sdk_url.push(' ')),
        ("SVC_SHOP_URL", |s| s.public_url = Some("http://shop.example ".into())),
    ];
    for (name, spoil) in padded {
        assert_eq!(with(spoil), SettingsError::Padded(name).to_string());
    }
    for half in ["pk_test_", "pk_live_"] {
        let mut settings = settings("http://127.0.0.1:1", folder.join("never.db"));
        settings.publishable_key = half.into();
        assert_eq!(settings.check(), Err(SettingsError::HalfKey("SVC_PUBLISHABLE_KEY")));
    }
    let live = with(|s| s.publishable_key = "pk_live_0b6f".into());
    assert_eq!(live, SettingsError::LiveWithoutHttps.to_string());
    assert!(with(|s| s.publishable_key.clear()).contains("SVC_PUBLISHABLE_KEY"));
    assert!(!folder.join("never.db").exists());
}
