//! `svc seed`: a believable month, made by the real engine, that leaves nothing behind for strangers.

use serde_json::Value;

use crate::support::http::get;
use crate::support::merchant::Merchant;
use crate::support::receiver::{Receiver, order, pay};
use crate::support::{PATIENCE, Place, run, svc, until};

on_both_engines! {
    a_month_has_every_method_and_every_outcome,
    a_seeded_sandbox_serves_and_owes_nothing_to_strangers,
    while_a_service_runs_it_is_refused,
    what_waits_for_somebody_is_not_sent_from_the_past,
}

fn seed(place: &Place, more: &[&str]) -> Value {
    place.svc(&[&["seed", "--orders", "60", "--json"], more].concat()).json()
}

fn list(place: &Place, arguments: &[&str]) -> Vec<Value> {
    let listed = place.svc(&[arguments, &["--json"]].concat()).json();
    listed.as_array().expect("a list").clone()
}

fn texts(list: &[Value], key: &str) -> Vec<String> {
    let mut found: Vec<_> =
        list.iter().map(|one| one[key].as_str().expect("it is text").to_owned()).collect();
    found.sort();
    found.dedup();
    found
}

fn a_month_has_every_method_and_every_outcome(place: &Place) {
    let seeded = seed(place, &[]);
    assert_eq!(seeded["orders"].as_u64().map(|n| (60..=61).contains(&n)), Some(true), "{seeded}");
    for part in ["paid", "cancelled", "pending", "exceptions", "exceptionsOpen"] {
        assert!(seeded[part].as_u64().is_some_and(|count| count > 0), "{part}: {seeded}");
    }
    let exceptions = list(place, &["exception", "list", "--all"]);
    assert_eq!(texts(&exceptions, "kind"), ["excess", "late", "mismatch", "reversal"]);
    assert!(exceptions.iter().any(|one| one["resolvedBy"] == "operator:ana.domingos"));

    let some =
        |which: &[&str]| list(place, &[&["exception", "list", "--all"], which].concat()).len();
    let middle = exceptions[exceptions.len() / 2]["createdAt"].as_str().expect("a time");
    let (since, until) = (some(&["--since", middle]), some(&["--until", middle]));
    assert_eq!((since + until, since > 0, until > 0), (exceptions.len(), true, true));

    let events = list(place, &["webhook", "list", "--limit", "1000"]);
    assert_eq!(texts(&events, "paymentStatus"), ["CAN", "CON", "PEN"]);
    let keys = texts(&events, "publishableKey");
    let of_orders = exceptions.iter().filter(|one| !one["referenceNumber"].is_null()).count();
    let of_each: usize = keys.iter().map(|key| some(&["--application", key])).sum();
    assert_eq!((of_each, of_orders > 0), (of_orders, true));
    let other = place.partner()["publishableKey"].as_str().expect("a key").to_owned();
    assert_eq!(some(&["--application", &other]), 0);
    let retried = events
        .iter()
        .find(|one| one["state"] == "delivered" && one["attempts"].as_u64().is_some_and(|n| n > 1));
    let retried = retried.expect("a webhook that failed and was retried")["id"].as_str();
    let shown = place.svc(&["webhook", "show", retried.expect("an id"), "--json"]).json();
    let tries = shown["deliveries"].as_array().expect("a list");
    assert!(tries[0]["httpStatus"].as_u64().is_some_and(|status| status >= 500), "{shown}");
    assert_eq!(tries.last().expect("a last one")["httpStatus"], 200, "{shown}");
    // Each try at its own moment, weeks of them.
    let at = |index: usize| tries[index]["at"].as_str().expect("a time").to_owned();
    assert!(at(0) < at(1), "{shown}");
    let days = texts(&events, "createdAt").iter().map(|at| at[..10].to_owned()).collect::<Vec<_>>();
    let mut distinct = days;
    distinct.dedup();
    assert!(distinct.len() > 12, "spread over the month: {distinct:?}");

    let mut methods: Vec<_> = texts(&events, "referenceNumber")
        .iter()
        .flat_map(|order| {
            let shown = place.svc(&["order", "show", order, "--json"]).json();
            texts(shown["attempts"].as_array().expect("a list"), "method")
        })
        .collect();
    methods.sort();
    methods.dedup();
    assert_eq!(methods, ["FPMCXEXPRSS", "FPSOLPG", "FPSOLPGEXT"]);
}

fn a_seeded_sandbox_serves_and_owes_nothing_to_strangers(place: &Place) {
    seed(place, &["--seed-number", "2"]);
    let events = list(place, &["webhook", "list", "--limit", "1000"]);
    for url in texts(&events, "webhookUrl") {
        assert!(url.starts_with("http://127.83.86.67:"), "{url}");
    }
    let service = place.serve();
    assert_eq!(get(&service.base_url(), "/readyz").status, 200);
    assert_eq!(service.stop().code, Some(0));
}

fn while_a_service_runs_it_is_refused(place: &Place) {
    let service = place.serve();
    let ran = place.svc(&["seed", "--orders", "5"]);
    let why = if place.database.starts_with("sqlite") {
        "another svc is using"
    } else {
        "a service runs"
    };
    ran.refused(why);
    assert_eq!(get(&service.base_url(), "/readyz").status, 200, "it goes on");
}

fn what_waits_for_somebody_is_not_sent_from_the_past(place: &Place) {
    let away = Receiver::start(|_| (500, String::new()));
    let service = place.serve_locally();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    order(&merchant, "order_1", &away.url());
    pay(&merchant, "order_1");
    away.wait_for(1);
    until("the failure is recorded", PATIENCE, || {
        let queued = list(place, &["webhook", "list", "--state", "queued"]);
        queued.iter().any(|one| one["attempts"] == 1).then_some(())
    });
    assert_eq!(service.stop().code, Some(0));
    let before = away.received().len();
    place.svc(&["seed", "--orders", "5"]).refused("webhooks wait in this sandbox");
    assert_eq!(away.received().len(), before, "nobody was called");
}

#[test]
fn the_same_number_tells_the_same_month() {
    let [first, again, other] = [7, 7, 8].map(|number| {
        let place = Place::sqlite();
        seed(&place, &["--seed-number", &number.to_string()])
    });
    let counts = |seeded: &Value| {
        ["paid", "cancelled", "pending", "exceptions", "exceptionsOpen"]
            .map(|key| seeded[key].clone())
    };
    assert_eq!(counts(&first), counts(&again));
    assert_ne!(counts(&first), counts(&other));
}

#[test]
fn production_is_refused() {
    let place = Place::sqlite();
    place.svc(&["seed", "--environment", "production"]).refused("never for production");
    let key = run(&mut svc(&["keygen"])).stdout;
    let migrated = ["migrate", "--environment", "production", "--database", &place.database];
    assert_eq!(run(svc(&migrated).env("SVC_SERVER_MASTER_KEY", key.trim())).code, Some(0));
    place.svc(&["seed"]).refused("never for production");
}
