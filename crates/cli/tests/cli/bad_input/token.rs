//! POST /token where one request is not enough: dying tokens, rates.

use std::net::SocketAddr;

use serde_json::json;

use super::merchant::{Merchant, assert_rate_limited, send, sign_in, token_for};
use super::running::Home;
use super::wire::Answer;

const GRANT: &str = "grant_type=client_credentials";

fn wrong_secret(address: SocketAddr, id: &str, more: &[&str]) -> Answer {
    send(address, &sign_in(id, "wrong", GRANT, more))
}

/// T31, B3: the sandbox's clock moves, nobody waits.
#[test]
fn a_token_for_one_second_is_dead_when_the_second_is_over() {
    let home = Home::sandbox();
    let running = home.serve(&[]);
    let long = Merchant::new(running.address, home.partner("Loja"));
    let lives_for = |seconds: u32| {
        let form = format!("{GRANT}&validity_period={seconds}");
        long.with_token(token_for(running.address, &long.credentials, &form))
    };
    let (short, quarter) = (lives_for(1), lives_for(900));
    let moved = long.post("/sandbox/clock", &json!({ "advanceSeconds": 2 }));
    assert_eq!(moved.status, 200, "{}", moved.text());
    assert_eq!(moved.json()["data"]["arrived"], true, "{}", moved.text());

    let dead = short.query("order_none");
    assert_eq!(dead.status, 401, "{}", dead.text());
    assert_eq!(dead.json()["error"], "invalid_token");
    assert_eq!(long.query("order_none").status, 404, "the other token lives on");
    assert_eq!(quarter.query("order_none").status, 404);
}

/// T37.
#[test]
fn too_many_failures_of_one_client_from_one_address_are_told_to_wait() {
    let home = Home::sandbox();
    let loja = home.partner("Loja");
    let running = home.serve(&["--token-failures-per-minute", "5"]);
    for _ in 0..5 {
        assert_eq!(wrong_secret(running.address, &loja.client_id, &[]).status, 401);
    }
    assert_rate_limited(&until_limited(|| wrong_secret(running.address, &loja.client_id, &[])));
    let right = sign_in(&loja.client_id, &loja.client_secret, GRANT, &[]);
    assert_eq!(send(running.address, &right).status, 200, "nobody is locked out (ASVS 6.1.1)");
}

/// T38, T40: behind a trusted proxy the address it saw counts, not what the client wrote before it.
#[test]
fn behind_a_proxy_the_last_untrusted_address_is_the_one_that_is_limited() {
    let home = Home::sandbox();
    let loja = home.partner("Loja");
    let running =
        home.serve(&["--token-failures-per-minute", "5", "--trusted-proxy", "127.0.0.0/8"]);
    let attacker = "X-Forwarded-For: 198.51.100.7";
    let limited = until_limited(|| wrong_secret(running.address, &loja.client_id, &[attacker]));
    assert_rate_limited(&limited);

    let forged = until_limited(|| {
        let forged = "X-Forwarded-For: 203.0.113.9, 198.51.100.7";
        wrong_secret(running.address, &loja.client_id, &[forged])
    });
    assert_rate_limited(&forged);
    let spelt_as_ipv6 = "X-Forwarded-For: ::ffff:198.51.100.7";
    assert_rate_limited(&wrong_secret(running.address, &loja.client_id, &[spelt_as_ipv6]));
    let elsewhere = "X-Forwarded-For: ::ffff:198.51.100.8";
    assert_eq!(wrong_secret(running.address, &loja.client_id, &[elsewhere]).status, 401);
    let right = sign_in(&loja.client_id, &loja.client_secret, GRANT, &[elsewhere]);
    assert_eq!(send(running.address, &right).status, 200);
}

/// T40: nobody declared a proxy, so nobody's word about addresses is taken.
#[test]
fn a_forged_forwarded_address_does_not_dodge_the_limit() {
    let home = Home::sandbox();
    let loja = home.partner("Loja");
    let running = home.serve(&["--token-failures-per-minute", "5"]);
    let statuses: Vec<_> = (1..=12)
        .map(|host| format!("X-Forwarded-For: 198.51.100.{host}"))
        .map(|forged| wrong_secret(running.address, &loja.client_id, &[&forged]).status)
        .collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(statuses[..5], [401; 5]);
    let figures = send(running.address, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").body;
    let figures = String::from_utf8(figures).expect("figures are text");
    assert!(figures.lines().any(|line| line == "svc_token_failures_total 12"), "{figures}");
}

/// T39.
#[test]
fn many_client_ids_from_one_address_are_limited_by_address() {
    let home = Home::sandbox();
    let running = home.serve(&["--address-failures-per-minute", "20"]);
    let mut guess = 0;
    let limited = until_limited(|| {
        guess += 1;
        wrong_secret(running.address, &format!("svc_guess{guess}"), &[])
    });
    assert_rate_limited(&limited);
    assert!(guess > 20, "limited after {guess} guesses");
}

/// The first 429 of a call that is repeated without pause.
fn until_limited(mut call: impl FnMut() -> Answer) -> Answer {
    let limited = (0..100).map(|_| call()).find(|answer| answer.status == 429);
    limited.expect("a hundred calls in a row are too many")
}
