//! Creations that meet each other: conflicts, repeats, twins, tenants, rates.

use serde_json::{Value, json};

use super::merchant::{Merchant, assert_rate_limited, fresh_uuid, reference};
use super::running::{Home, Running};
use super::wire::Connection;

fn with(mut order: Value, field: &str, value: Value) -> Value {
    order[field] = value;
    order
}

fn with_url(order: &Value, key: &str, url: &str) -> Value {
    let info = order["additionalInfo"].as_str().unwrap_or_default();
    let mut info: Value = serde_json::from_str(info).unwrap_or_default();
    info[key] = json!(url);
    with(order.clone(), "additionalInfo", json!(info.to_string()))
}

fn sandbox_with_loja() -> (Running, Merchant, Home) {
    let home = Home::sandbox();
    let running = home.serve(&[]);
    let loja = Merchant::new(running.address, home.partner("Loja"));
    (running, loja, home)
}

/// C38, C39.
#[test]
fn the_same_id_with_other_content_is_a_conflict_that_changes_nothing() {
    let (_running, loja, _home) = sandbox_with_loja();
    let order = loja.order("order_1");
    let first = loja.create(&order);
    let others = [
        ("amount", with(order.clone(), "amount", json!(15_001))),
        ("name", with(order.clone(), "name", json!("Caderno"))),
        ("clientId", with(order.clone(), "clientId", json!("user-2"))),
        ("quantity", with(order.clone(), "quantity", json!(2))),
        ("additionalInfo", with_url(&order, "webhookUrl", "https://loja.ao/outro")),
    ];
    for (field, other) in others {
        let answer = loja.create(&other);
        assert_eq!(answer.status, 409, "{field}: {}", answer.text());
        assert_eq!(answer.json()["error"], "idempotency_conflict");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(field), "{field} is not named: {message}");
    }
    assert_eq!(loja.query("order_1").body, first.body);
    let again = loja.create(&order);
    assert_eq!(again.body, first.body);
    assert_eq!(first.header("idempotent-replayed"), None);
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
}

/// C37.
#[test]
fn ids_that_differ_in_case_are_two_orders() {
    let (_running, loja, _home) = sandbox_with_loja();
    let (lower, upper) = (loja.create(&loja.order("order_a")), loja.create(&loja.order("ORDER_A")));
    assert_ne!(reference(&lower), reference(&upper));
}

/// C48, C49.
#[test]
fn an_application_that_is_not_ours_is_not_there() {
    let (running, loja, home) = sandbox_with_loja();
    let other = home.partner("Outra");
    let live = Home::production().partner("Loja");
    let create_in =
        |uuid: &str| loja.create(&with(loja.order("order_1"), "applicationUUID", json!(uuid)));
    let unknown = create_in(&fresh_uuid());
    assert_eq!(unknown.status, 404, "{}", unknown.text());
    assert_eq!(unknown.json()["error"], "application_not_found");
    for foreign in [other.application_uuid.clone(), live.application_uuid] {
        let answer = create_in(&foreign);
        assert_eq!(answer.status, 404, "{}", answer.text());
        assert_eq!(answer.json_without_id(), unknown.json_without_id());
    }
    let theirs = Merchant::new(running.address, other);
    assert_eq!(theirs.query("order_1").status, 404, "nothing was created there");
}

/// C67: the form that is stored is the one a second request is compared with.
#[test]
fn an_international_host_is_stored_as_punycode() {
    let (_running, loja, _home) = sandbox_with_loja();
    let hosts = [("caf\u{e9}.ao", "xn--caf-dma.ao"), ("l\u{43e}ja.ao", "xn--lja-sed.ao")];
    for (written, punycode) in hosts {
        let order = loja.order(&format!("order_{punycode}"));
        let url = |host: &str| format!("https://{host}/webhook");
        let first = loja.create(&with_url(&order, "webhookUrl", &url(written)));
        let again = loja.create(&with_url(&order, "webhookUrl", &url(punycode)));
        assert_eq!(reference(&first), reference(&again));
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        let latin = loja.create(&order);
        assert_eq!(latin.status, 409, "the look-alike is another host");
    }
}

/// C40, C77.
#[test]
fn a_partner_above_its_rate_is_told_to_wait_and_others_are_not() {
    let home = Home::sandbox();
    let running = home.serve(&["--partner-requests-per-second", "5"]);
    let loja = Merchant::new(running.address, home.partner("Loja"));
    let other = Merchant::new(running.address, home.partner("Outra"));
    let request = loja.create_request(&loja.order("order_1"));
    let mut connection = Connection::open(running.address);
    let ours = reference(&connection.exchange(&request).unwrap());
    let limited = (0..1_000)
        .map(|_| connection.exchange(&request).unwrap())
        .find(|answer| answer.status != 200)
        .expect("a thousand calls in a row are too many");
    assert_eq!(limited.status, 429, "{}", limited.text());
    assert_rate_limited(&limited);
    let theirs = other.create(&other.order("order_1"));
    assert_ne!(reference(&theirs), ours, "the same id is another order there");
    assert_eq!(theirs.header("idempotent-replayed"), None);
}
