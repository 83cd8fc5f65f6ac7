//! `svc partner`, `svc application` and `svc order list`, while the service runs and while it is stopped.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::http::get;
use crate::support::merchant::{Merchant, reference};
use crate::support::{Place, until};

/// Within this every node knows of a change.
const NOTICED_WITHIN: Duration = Duration::from_secs(5);

on_both_engines! {
    every_command_works_while_the_service_is_stopped,
    every_command_works_while_the_service_runs,
    an_application_created_while_the_service_runs_takes_orders_at_once,
    disabling_a_partner_kills_its_token_and_its_secret,
    a_partner_enabled_again_gets_tokens_but_its_old_ones_stay_dead,
    during_the_overlap_both_secrets_get_tokens,
    the_old_secret_ends_with_its_overlap,
    without_overlap_the_old_secret_dies,
    rotating_kills_the_tokens_issued_so_far,
    json_is_one_line_on_stdout_and_nothing_else,
    secrets_are_shown_once_and_never_listed,
    an_unknown_id_is_told_on_stderr_with_exit_code_1,
    a_name_nobody_can_read_is_refused,
    only_a_first_partner_makes_a_database_where_there_is_none,
    orders_are_listed_newest_first_and_narrowed,
}

fn every_command_works_while_the_service_is_stopped(place: &Place) {
    assert_eq!(place.serve().stop().code, Some(0));
    let merchant = walk_through_every_command(place);
    let service = place.serve();
    Merchant { base_url: service.base_url(), ..merchant }.token();
}

fn every_command_works_while_the_service_runs(place: &Place) {
    let service = place.serve();
    let merchant = walk_through_every_command(place);
    Merchant { base_url: service.base_url(), ..merchant }.token();
    assert_eq!(get(&service.base_url(), "/readyz").status, 200);
}

/// Every command once; what is left is a merchant with a rotated secret.
fn walk_through_every_command(place: &Place) -> Merchant {
    let credentials = place.partner();
    let id = text(&credentials, "clientId");
    let run = |arguments: &[&str]| place.svc(&[arguments, &["--json"]].concat()).json();

    assert_eq!(run(&["partner", "list"])[0]["clientId"], id);
    assert_eq!(run(&["partner", "show", id])["name"], "Loja Kianda");
    assert_eq!(run(&["partner", "disable", id])["state"], "disabled");
    assert_eq!(run(&["partner", "show", id])["state"], "disabled");
    assert_eq!(run(&["partner", "enable", id])["state"], "active");
    let rotated = run(&["partner", "rotate-secret", id]);
    assert_eq!(rotated["clientId"], id);
    assert_ne!(rotated["clientSecret"], credentials["clientSecret"]);

    let second = run(&["application", "create", "Loja online", "--partner", id]);
    let key = text(&second, "publishableKey");
    assert_eq!(key, format!("pk_test_{}", text(&second, "applicationUUID")));
    let listed = run(&["application", "list"]);
    let listed = listed.as_array().expect("a list").iter();
    let keys: Vec<_> = listed.map(|application| &application["publishableKey"]).collect();
    assert_eq!(keys, [&credentials["publishableKey"], &second["publishableKey"]]);
    let of = run(&["application", "list"])[1].clone();
    assert_eq!((&of["partner"], &of["clientId"]), (&"Loja Kianda".into(), &id.into()));
    for name in [key, text(&second, "applicationUUID")] {
        let fresh = run(&["application", "rotate-webhook-secret", name]);
        assert_eq!(fresh["publishableKey"], key);
        assert_ne!(fresh["webhookSecret"], second["webhookSecret"]);
    }
    let hosts = |given: &[&str]| {
        let command = [&["application", "webhook-hosts", key], given].concat();
        run(&command)["webhookHosts"].clone()
    };
    assert_eq!(hosts(&[]), Value::Null);
    assert_eq!(hosts(&["Loja.ao", "api.loja.ao"]), json!(["api.loja.ao", "loja.ao"]));
    assert_eq!(hosts(&[]), json!(["api.loja.ao", "loja.ao"]));
    let shown = run(&["partner", "show", id]);
    assert_eq!(shown["applications"][1]["webhookHosts"], json!(["api.loja.ao", "loja.ao"]));
    let history = run(&["audit", "list"]).to_string();
    assert!(history.contains("application.webhook_hosts"), "{history}");
    assert_eq!(hosts(&["--any"]), Value::Null);
    assert_eq!(run(&["partner", "show", id])["applications"][1]["name"], "Loja online");
    let client_secret = text(&rotated, "clientSecret").to_owned();
    Merchant { client_secret, ..Merchant::new(String::new(), &credentials) }
}

fn an_application_created_while_the_service_runs_takes_orders_at_once(place: &Place) {
    let service = place.serve();
    let mut merchant = Merchant::new(service.base_url(), &place.partner());
    let token = merchant.token();
    let second = place.svc(&[
        "application",
        "create",
        "Loja online",
        "--partner",
        &merchant.client_id,
        "--json",
    ]);
    merchant.application_uuid = text(&second.json(), "applicationUUID").to_owned();
    reference(&merchant.create(&token, "order-1").expect("the server answers"));
}

fn disabling_a_partner_kills_its_token_and_its_secret(place: &Place) {
    let service = place.serve();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    let other = Merchant::new(service.base_url(), &place.partner());
    let (token, others_token) = (merchant.token(), other.token());
    change(place, &["partner", "disable", &merchant.client_id]);
    dies(&merchant, &token);
    refuses(&merchant);
    assert_eq!(other.query(&others_token, "order-1").status, 404, "others are not touched");
}

fn a_partner_enabled_again_gets_tokens_but_its_old_ones_stay_dead(place: &Place) {
    let service = place.serve();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    let old = merchant.token();
    change(place, &["partner", "disable", &merchant.client_id]);
    dies(&merchant, &old);
    change(place, &["partner", "enable", &merchant.client_id]);
    let fresh = merchant.token();
    assert_eq!(merchant.query(&fresh, "order-1").status, 404, "let in, and no such order");
    assert_eq!(merchant.query(&old, "order-1").status, 401);
}

fn during_the_overlap_both_secrets_get_tokens(place: &Place) {
    let service = place.serve();
    let old = Merchant::new(service.base_url(), &place.partner());
    let new = rotate(place, &old, "1h");
    // The token of the new secret proves that the service knows of the rotation.
    assert_eq!(new.query(&new.token(), "order-1").status, 404);
    assert_eq!(old.query(&old.token(), "order-1").status, 404);
    let shown = place.svc(&["partner", "show", &old.client_id, "--json"]).json();
    assert!(shown["previousSecretUntil"].is_string(), "{shown}");
    let again = place.svc(&["partner", "rotate-secret", &old.client_id, "--overlap", "1h"]);
    assert!(again.stderr.contains("stops working now"), "{again:?}");
}

fn the_old_secret_ends_with_its_overlap(place: &Place) {
    let service = place.serve();
    let old = Merchant::new(service.base_url(), &place.partner());
    let new = rotate(place, &old, "1500ms");
    new.token();
    refuses(&old);
    new.token();
}

fn without_overlap_the_old_secret_dies(place: &Place) {
    let service = place.serve();
    let old = Merchant::new(service.base_url(), &place.partner());
    let new = rotate(place, &old, "0s");
    // The new secret makes this node look at the directory, so the old one is gone at once.
    new.token();
    assert_eq!(old.ask_token().status, 401);
}

fn rotating_kills_the_tokens_issued_so_far(place: &Place) {
    let service = place.serve();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    let token = merchant.token();
    rotate(place, &merchant, "1h");
    dies(&merchant, &token);
}

fn json_is_one_line_on_stdout_and_nothing_else(place: &Place) {
    let credentials = place.partner();
    let (id, uuid) = (text(&credentials, "clientId"), text(&credentials, "applicationUUID"));
    let commands: [&[&str]; 10] = [
        &["partner", "create", "Outra"],
        &["partner", "list"],
        &["partner", "show", id],
        &["partner", "disable", id],
        &["partner", "enable", id],
        &["partner", "rotate-secret", id],
        &["application", "create", "Outra", "--partner", id],
        &["application", "list"],
        &["application", "rotate-webhook-secret", uuid],
        &["application", "webhook-hosts", uuid],
    ];
    for command in commands {
        let ran = place.svc(&[command, &["--json"]].concat());
        assert_eq!(ran.stdout.lines().count(), 1, "{command:?}: {ran:?}");
        assert!(ran.json().is_object() || ran.json().is_array(), "{command:?}: {ran:?}");
    }
}

fn secrets_are_shown_once_and_never_listed(place: &Place) {
    let credentials = place.partner();
    let id = text(&credentials, "clientId");
    let secrets = [text(&credentials, "clientSecret"), text(&credentials, "webhookSecret")];
    let commands: [&[&str]; 5] = [
        &["partner", "list"],
        &["partner", "show", id],
        &["partner", "disable", id],
        &["partner", "enable", id],
        &["application", "list"],
    ];
    for (command, form) in commands.iter().flat_map(|c| [(c, None), (c, Some("--json"))]) {
        let ran = place.svc(&command.iter().copied().chain(form).collect::<Vec<_>>());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let printed = ran.stdout + &ran.stderr;
        assert!(!printed.contains("svcsec_") && !printed.contains("whsec_"), "{printed}");
        assert!(secrets.iter().all(|secret| !printed.contains(secret)), "{printed}");
    }
}

fn an_unknown_id_is_told_on_stderr_with_exit_code_1(place: &Place) {
    place.partner();
    let (nobody, nothing) = ("svc_nobody", "0b6f1d3c-8a55-4c1b-9c86-0f6f6ad0a111");
    let commands: [&[&str]; 7] = [
        &["partner", "show", nobody],
        &["partner", "disable", nobody],
        &["partner", "enable", nobody],
        &["partner", "rotate-secret", nobody],
        &["application", "create", "Loja", "--partner", nobody],
        &["application", "rotate-webhook-secret", nothing],
        &["application", "webhook-hosts", nothing],
    ];
    for command in commands {
        let told = match command[1] {
            "rotate-webhook-secret" | "webhook-hosts" => {
                format!("there is no application {nothing}; svc application list shows all")
            }
            _ => format!("there is no partner {nobody}; svc partner list shows all"),
        };
        place.svc(command).refused(&told);
    }
}

fn only_a_first_partner_makes_a_database_where_there_is_none(place: &Place) {
    let commands: [&[&str]; 5] = [
        &["order", "show", "order_1"],
        &["partner", "list"],
        &["partner", "disable", "svc_nobody"],
        &["application", "list"],
        &["application", "create", "Loja", "--partner", "svc_nobody"],
    ];
    for command in commands {
        place.svc(command).refused("run svc migrate first");
    }
    place.partner();
    assert_eq!(place.svc(&["partner", "list"]).code, Some(0));
}

fn orders_are_listed_newest_first_and_narrowed(place: &Place) {
    let service = place.serve();
    let (kianda, other) = (place.partner(), place.partner());
    let order = |credentials: &Value, id: &str| {
        let merchant = Merchant::new(service.base_url(), credentials);
        reference(&merchant.create(&merchant.token(), id).expect("the server answers"))
    };
    let orders = [order(&kianda, "o-1"), order(&kianda, "o-2"), order(&other, "o-3")];
    assert_eq!(place.svc(&["order", "cancel", &orders[0]]).code, Some(0));

    let list = |narrowed: &[&str]| place.svc(&[&["order", "list", "--json"], narrowed].concat());
    let ids = |narrowed: &[&str]| -> Vec<String> {
        let listed = list(narrowed).json();
        let listed = listed.as_array().expect("a list").iter();
        listed.map(|order| text(order, "externalTransactionId").to_owned()).collect()
    };
    assert_eq!(ids(&[]), ["o-3", "o-2", "o-1"]);
    assert_eq!(ids(&["--limit", "2"]), ["o-3", "o-2"]);
    assert_eq!(ids(&["--status", "CAN"]), ["o-1"]);
    let of_kianda = ["--application", text(&kianda, "publishableKey")];
    assert_eq!(ids(&of_kianda), ["o-2", "o-1"]);
    assert_eq!(ids(&["--status", "PEN", of_kianda[0], of_kianda[1]]), ["o-2"]);
    assert_eq!(ids(&["--until", "1h"]), [] as [&str; 0]);
    assert_eq!(ids(&["--amount", "15001"]), [] as [&str; 0]);
    assert_eq!(ids(&["--amount", "15000", "--limit", "1"]), ["o-3"]);
    assert_eq!(ids(&["--since", "1h", "--limit", "1"]), ["o-3"]);
    assert_eq!(ids(&["--since", "2096-01-01T00:00:00Z"]), [] as [&str; 0]);

    let first = &list(&["--status", "CAN"]).json()[0];
    assert_eq!(first["referenceNumber"], orders[0].as_str());
    assert_eq!(
        (&first["merchant"], &first["paymentStatus"]),
        (&"Loja Kianda".into(), &"CAN".into())
    );
    let table = place.svc(&["order", "list", "--limit", "2"]);
    assert!(table.stdout.starts_with("ORDER") && table.stdout.contains(&orders[2]), "{table:?}");
    assert!(table.stderr.contains("--limit shows more"), "{table:?}");
    let all = place.svc(&["order", "list", "--limit", "3"]);
    assert!(!all.stderr.contains("--limit"), "there are no more: {all:?}");
    let nobody = ["order", "list", "--application", "0b6f1d3c-8a55-4c1b-9c86-0f6f6ad0a111"];
    place.svc(&nobody).refused("there is no application 0b6f1d3c");
}

fn a_name_nobody_can_read_is_refused(place: &Place) {
    let credentials = place.partner();
    let id = text(&credentials, "clientId");
    for (name, told) in [("", "the name must not be empty"), ("a\u{1b}[2J", "control")] {
        place.svc(&["partner", "create", name]).refused(told);
        place.svc(&["application", "create", name, "--partner", id]).refused(told);
    }
    assert_eq!(
        place.svc(&["partner", "list", "--json"]).json().as_array().expect("a list").len(),
        1
    );
}

#[test]
fn a_usage_error_is_exit_code_2_with_nothing_on_stdout() {
    let place = Place::sqlite();
    let commands: [&[&str]; 6] = [
        &["partner", "create"],
        &["partner", "show", "svc_a", "svc_b"],
        &["partner", "rotate-secret", "svc_a", "--overlap", "soon"],
        &["application", "create", "Loja"],
        &["serve", "--listen", "nowhere"],
        &["serve", "--environment", "staging"],
    ];
    for command in commands {
        let ran = place.svc(command);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command:?}: {ran:?}");
        assert!(ran.stderr.starts_with("error: "), "{command:?}: {ran:?}");
    }
    for listen in ["9000", ":9000", "localhost:9000"] {
        let ran = place.svc(&["serve", "--listen", listen]);
        assert!(ran.stderr.contains("write address and port: 127.0.0.1:9000"), "{ran:?}");
    }
    let far = place.svc(&["serve", "--listen", "127.0.0.1:80000"]);
    assert!(far.stderr.contains("a port is at most 65535"), "{far:?}");
    assert!(!std::fs::exists(place.folder.path("svc.db")).expect("the folder can be read"));
}

fn text<'a>(document: &'a Value, key: &str) -> &'a str {
    document[key].as_str().unwrap_or_else(|| panic!("{key} is not text in {document}"))
}

fn change(place: &Place, command: &[&str]) {
    let ran = place.svc(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// The same merchant with its new secret.
fn rotate(place: &Place, merchant: &Merchant, overlap: &str) -> Merchant {
    let id = &merchant.client_id;
    let rotated = place.svc(&["partner", "rotate-secret", id, "--overlap", overlap, "--json"]);
    let client_secret = text(&rotated.json(), "clientSecret").to_owned();
    Merchant { client_secret, ..merchant.clone() }
}

fn dies(merchant: &Merchant, token: &str) {
    let refused = until("the token is refused", NOTICED_WITHIN, || {
        Some(merchant.query(token, "order-1")).filter(|answer| answer.status != 404)
    });
    assert_eq!(refused.status, 401, "{refused:?}");
    assert_eq!(refused.json()["error"], "invalid_token");
}

fn refuses(merchant: &Merchant) {
    let refused = until("the secret is refused", NOTICED_WITHIN, || {
        Some(merchant.ask_token()).filter(|answer| answer.status != 200)
    });
    assert_eq!(refused.status, 401, "{refused:?}");
    assert_eq!(refused.json()["error"], "invalid_client");
}
