//! Access tokens that were good once, or are nearly good.

use std::time::Duration;

use super::merchant::Merchant;
use super::running::Home;
use super::wire::Connection;
use crate::support::postgres::FreshDatabase;
use crate::support::until;

/// B8: how long a token may outlive its client.
const REVOKED_WITHIN: Duration = Duration::from_secs(5);

/// B4.
#[test]
fn a_token_with_any_one_bit_flipped_opens_nothing() {
    let home = Home::sandbox();
    let running = home.serve(&[]);
    let loja = Merchant::new(running.address, home.partner("Loja"));
    let mut connection = Connection::open(running.address);
    let mut status = |merchant: &Merchant| {
        let application = &merchant.credentials.application_uuid;
        let request = merchant.query_request(application, "order_none");
        connection.exchange(&request).unwrap().status
    };

    assert_eq!(status(&loja), 404, "the token itself is good");
    for at in 0..loja.token.len() {
        let mut flipped = loja.token.clone().into_bytes();
        flipped[at] ^= 1;
        let flipped = loja.with_token(String::from_utf8(flipped).unwrap());
        assert_eq!(status(&flipped), 401, "byte {at} of {}", flipped.token);
    }
}

/// B7: the same master key, so that only the environment tells the two apart.
#[test]
fn a_token_of_one_environment_opens_nothing_in_the_other() {
    let test = Home::sandbox();
    let mut live = Home::sandbox();
    live.master_key.clone_from(&test.master_key);
    live.run(&["migrate", "--environment", "production"]);
    let (sandbox, production) = (test.serve(&[]), live.serve_production());
    let in_test = Merchant::new(sandbox.address, test.partner("Loja"));
    let in_live = Merchant::new(production.address, live.partner("Loja"));

    assert_eq!(in_test.query("order_none").status, 404);
    assert_eq!(in_live.query("order_none").status, 404);
    for (merchant, token) in [(&in_live, &in_test.token), (&in_test, &in_live.token)] {
        let answer = merchant.with_token(token.clone()).query("order_none");
        assert_eq!(answer.status, 401);
        assert_eq!(answer.json()["error"], "invalid_token");
    }
}

/// B8; what a rotated secret ends is in commands.rs.
#[test]
fn a_disabled_client_loses_its_tokens_on_every_node() {
    let database = FreshDatabase::new();
    let home = Home::on(database.place());
    let (here, there) = (home.serve(&[]), home.serve(&[]));
    let loja = Merchant::new(here.address, home.partner("Loja"));
    let loja_there = Merchant { address: there.address, ..loja.with_token(loja.token.clone()) };
    assert_eq!(loja.query("order_none").status, 404);
    assert_eq!(loja_there.query("order_none").status, 404, "a token is good on every node");

    home.run(&["partner", "disable", &loja.credentials.client_id]);
    until_refused(&loja);
    until_refused(&loja_there);
}

fn until_refused(merchant: &Merchant) {
    let refused = until("the token is refused", REVOKED_WITHIN, || {
        Some(merchant.query("order_none")).filter(|answer| answer.status != 404)
    });
    assert_eq!(refused.status, 401, "{}", refused.text());
    assert_eq!(refused.json()["error"], "invalid_token");
}
