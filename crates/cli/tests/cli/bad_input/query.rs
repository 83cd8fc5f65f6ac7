//! Queries across tenants, applications and one connection; and too many of them.

use serde_json::Value;

use super::merchant::{Merchant, assert_rate_limited, fresh_uuid, reference};
use super::running::Home;
use super::wire::{self, Connection};

/// Q4, Q5.
#[test]
fn an_order_of_elsewhere_looks_like_one_that_does_not_exist() {
    let home = Home::sandbox();
    let running = home.serve(&[]);
    let loja = Merchant::new(running.address, home.partner("Loja"));
    let other = Merchant::new(running.address, home.partner("Outra"));
    reference(&loja.create(&loja.order("order_1")));
    let theirs = &loja.credentials.application_uuid;

    let (foreign, unknown) = (other.query("order_1"), other.query("order_none"));
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.json()["error"], "order_not_found");
    assert_eq!(foreign.json_without_id(), unknown.json_without_id());

    let foreign = other.query_in(theirs, "order_1");
    let unknown = other.query_in(&fresh_uuid(), "order_1");
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.json()["error"], "application_not_found");
    assert_eq!(foreign.json_without_id(), unknown.json_without_id());

    let client = &loja.credentials.client_id;
    let printed = home.run(&["application", "create", "Segunda", "--partner", client, "--json"]);
    let second: Value = serde_json::from_str(&printed).unwrap();
    let second = second["applicationUUID"].as_str().unwrap();
    assert_eq!(loja.query("order_1").status, 200);
    let misplaced = loja.query_in(second, "order_1");
    assert_eq!(misplaced.status, 404, "{}", misplaced.text());
    assert_eq!(misplaced.json()["error"], "order_not_found");
}

/// Q11.
#[test]
fn the_body_of_a_get_is_skipped_and_the_connection_goes_on() {
    let home = Home::sandbox();
    let running = home.serve(&[]);
    let loja = Merchant::new(running.address, home.partner("Loja"));
    let order = reference(&loja.create(&loja.order("order_1")));
    let bearer = format!("Authorization: Bearer {}", loja.token).into_bytes();
    let target = format!(
        "GET /svcpartner/paymentByExternalTransaction?externalTransactionId=order_1&applicationUUID={}",
        loja.credentials.application_uuid
    );
    // What follows the head would be a request of its own if its length were not respected.
    let hidden = b"POST /token HTTP/1.1\r\nHost: svc.test\r\nContent-Length: 0\r\n\r\n";
    let with_body = wire::request(target.as_bytes(), &[bearer], hidden);

    let mut connection = Connection::open(running.address);
    for _ in 0..3 {
        assert_eq!(reference(&connection.exchange(&with_body).unwrap()), order);
    }
    let alive = connection.exchange(&wire::request(b"GET /livez", &[], b"")).unwrap();
    assert_eq!(alive.status, 200);
}

/// Q14.
#[test]
fn an_order_that_is_polled_without_pause_is_rate_limited_and_others_are_not() {
    let home = Home::sandbox();
    let running = home.serve(&["--order-queries-per-second", "5"]);
    let loja = Merchant::new(running.address, home.partner("Loja"));
    reference(&loja.create(&loja.order("order_1")));
    let request = loja.query_request(&loja.credentials.application_uuid, "order_1");
    let mut connection = Connection::open(running.address);
    let limited = (0..1_000)
        .map(|_| connection.exchange(&request).unwrap())
        .find(|answer| answer.status != 200)
        .expect("a thousand queries in a row are too many");
    assert_eq!(limited.status, 429, "{}", limited.text());
    assert_rate_limited(&limited);
    assert_eq!(loja.query("order_2").status, 404, "other orders can be asked for");
}
