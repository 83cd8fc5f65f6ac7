//! `svc sandbox`, `svc exception` and `svc order`: what a merchant does to its own orders from the
//! shell, and what the operator sees and repairs; on a real service.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

use serde_json::{Value, json};

use crate::support::http::call;
use crate::support::merchant::{Merchant, reference};
use crate::support::receiver::Receiver;
use crate::support::{Place, Ran, Service, run, svc};

on_both_engines! {
    every_outcome_can_be_had_from_the_shell,
    a_day_passes_in_one_command_and_the_merchant_hears_of_it,
    a_long_journey_is_waited_for,
    chaos_is_set_told_and_switched_off,
    what_is_missing_or_wrong_is_told_in_a_sentence,
    what_is_not_this_service_is_told_by_its_address,
    an_order_that_has_ended_is_told_as_it_was,
    a_mismatch_is_listed_and_accepted,
    a_mismatch_is_refunded_and_its_order_ends,
    an_operator_sees_the_story_of_an_order_and_cancels_it,
    an_order_is_found_by_what_its_merchant_calls_it,
    a_replay_goes_by_the_sandboxs_time,
}

/// A service, a merchant and its endpoint.
struct Stage<'a> {
    place: &'a Place,
    service: Service,
    credentials: Value,
    merchant: Merchant,
    receiver: Receiver,
}

impl<'a> Stage<'a> {
    fn set(place: &'a Place) -> Self {
        Self::with(place, Receiver::start(|_| (200, String::new())))
    }

    fn with(place: &'a Place, receiver: Receiver) -> Self {
        let service = place.serve_locally();
        let credentials = place.partner();
        let merchant = Merchant::new(service.base_url(), &credentials);
        Self { place, service, credentials, merchant, receiver }
    }

    /// An order of this amount; its reference number.
    fn order(&self, id: &str, amount: i64) -> String {
        let token = self.merchant.token();
        let headers =
            format!("authorization: Bearer {token}\r\ncontent-type: application/json\r\n");
        let body = self.merchant.order(id, &self.receiver.url());
        let body = body.replace("\"amount\":15000", &format!("\"amount\":{amount}"));
        let target = "POST /svcpartner/createPaymentOrder";
        reference(&call(&self.merchant.base_url, target, &headers, &body).expect("an answer"))
    }

    /// The command with the variables of a merchant's backend.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = svc(&["sandbox"]);
        command.args(arguments).arg("--json").env("SVC_BASE_URL", self.service.base_url());
        for (variable, key) in [
            ("SVC_PUBLISHABLE_KEY", "publishableKey"),
            ("SVC_CLIENT_ID", "clientId"),
            ("SVC_CLIENT_SECRET", "clientSecret"),
        ] {
            command.env(variable, self.credentials[key].as_str().expect("it is text"));
        }
        command
    }

    fn sandbox(&self, arguments: &[&str]) -> Value {
        run(&mut self.command(arguments)).json()
    }

    fn refused(&self, arguments: &[&str]) -> Ran {
        run(&mut self.command(arguments))
    }

    /// The reference was paid with a kwanza less: the order is held.
    fn held(&self, id: &str) -> (String, i64) {
        let reference = self.order(id, 9003);
        self.sandbox(&["pending", id]);
        self.sandbox(&["clock", "--advance", "6s"]);
        let listed = self.place.svc(&["exception", "list", "--json"]).json();
        assert_eq!(listed[0]["kind"], "mismatch", "{listed}");
        assert_eq!(listed[0]["amount"], "9002.00", "{listed}");
        assert_eq!(listed[0]["referenceNumber"], reference.as_str(), "{listed}");
        (reference, listed[0]["id"].as_i64().expect("a number"))
    }

    fn status(&self, id: &str) -> String {
        let answer = self.merchant.query(&self.merchant.token(), id).json();
        answer["data"]["paymentStatus"].as_str().expect("a status").to_owned()
    }
}

fn every_outcome_can_be_had_from_the_shell(place: &Place) {
    let stage = Stage::set(place);
    for (outcome, status) in [
        ("confirm", "CON"),
        ("cancel", "CAN"),
        ("expire", "CAN"),
        ("pending", "PEN"),
        ("decline", "PEN"),
    ] {
        stage.order(outcome, 15_000);
        let answer = stage.sandbox(&[outcome, outcome]);
        assert_eq!(answer["paymentStatus"], status, "{outcome}: {answer}");
        assert_eq!(stage.status(outcome), status);
    }
    // Three final states, and two orders that have an instrument.
    let told = stage.receiver.wait_for(5);
    let mut statuses: Vec<_> =
        told.iter().map(|one| one.json()["data"]["paymentStatus"].to_string()).collect();
    statuses.sort();
    assert_eq!(statuses, ["\"CAN\"", "\"CAN\"", "\"CON\"", "\"PEN\"", "\"PEN\""]);
}

fn a_day_passes_in_one_command_and_the_merchant_hears_of_it(place: &Place) {
    let stage = Stage::set(place);
    stage.order("order_1", 15_000);
    stage.sandbox(&["pending", "order_1"]);
    stage.receiver.wait_for(1);
    let before = stage.sandbox(&["clock"]);
    assert_eq!(before["aheadSeconds"], 0);
    let after = stage.sandbox(&["clock", "--advance", "24h 10s"]);
    assert_eq!((&after["arrived"], &after["aheadSeconds"]), (&json!(true), &json!(86_410)));
    assert_eq!(stage.status("order_1"), "CAN");
    let told = stage.receiver.wait_for(2);
    assert_eq!(told[1].json()["data"]["paymentStatus"], "CAN");
}

/// Three attempts that are not answered cost five seconds each; one call waits for eight.
fn a_long_journey_is_waited_for(place: &Place) {
    let (_never, answered) = mpsc::channel::<()>();
    let (seen, answered) = (AtomicUsize::new(0), Mutex::new(answered));
    let receiver = Receiver::start(move |_| {
        if seen.fetch_add(1, Ordering::AcqRel) < 3 {
            let _ = answered.lock().expect("nobody fails inside").recv();
        }
        (200, String::new())
    });
    let stage = Stage::with(place, receiver);
    stage.order("order_1", 15_000);
    stage.sandbox(&["pending", "order_1"]);
    let ran = run(&mut stage.command(&["clock", "--advance", "1h"]));
    assert!(ran.stderr.contains("still on its way"), "{ran:?}");
    assert_eq!((&ran.json()["arrived"], &ran.json()["aheadSeconds"]), (&json!(true), &json!(3600)));
    assert_eq!(stage.receiver.received().len(), 4, "the fourth attempt is answered");
}

fn chaos_is_set_told_and_switched_off(place: &Place) {
    let stage = Stage::set(place);
    let wild =
        ["chaos", "--duplicate", "--drop-first", "1", "--failure-rate", "0.25", "--seed", "7"];
    let set = stage.sandbox(&wild);
    assert_eq!(set["dropFirst"], 1, "{set}");
    assert_eq!(stage.sandbox(&["chaos"]), set);
    let calm = stage.sandbox(&["chaos", "--off"]);
    assert_eq!((&calm["duplicate"], &calm["failureRate"]), (&json!(false), &json!(0.0)));
    stage.order("order_1", 15_000);
    stage.sandbox(&["confirm", "order_1"]);
    assert_eq!(stage.receiver.wait_for(1).len(), 1);
}

fn what_is_missing_or_wrong_is_told_in_a_sentence(place: &Place) {
    let stage = Stage::set(place);
    stage.refused(&["confirm", "order_1"]).refused("There is no order");
    let far = stage.refused(&["clock", "--advance", "401d"]);
    assert!(far.code == Some(2) && far.stderr.contains("at most 400d"), "{far:?}");
    let mut alone = svc(&["sandbox", "clock"]);
    for name in ["SVC_PUBLISHABLE_KEY", "SVC_CLIENT_ID", "SVC_CLIENT_SECRET"] {
        alone.env_remove(name);
    }
    run(&mut alone).refused("SVC_PUBLISHABLE_KEY is not set, or not exported");
    for name in ["SVC_PUBLISHABLE_KEY", "SVC_CLIENT_ID", "SVC_CLIENT_SECRET"] {
        let told = run(stage.command(&["clock"]).env(name, ""));
        told.refused(&format!("{name} is empty"));
    }
    let mut nobody = stage.command(&["clock"]);
    let told =
        "http://127.0.0.1:1 cannot be reached: connection refused. Is the service running?\n";
    let nobody = run(nobody.env("SVC_BASE_URL", "http://127.0.0.1:1"));
    assert_eq!((nobody.code, nobody.stderr), (Some(1), format!("error: {told}")));
    let mut wrong = stage.command(&["clock"]);
    run(wrong.env("SVC_CLIENT_SECRET", "svcsec_wrong")).refused("401");
    place
        .svc(&["exception", "resolve", "9", "--dismiss", "--reason", "x"])
        .refused("no exception 9");
    place.svc(&["order", "show", "nonsense"]).refused("there is no order nonsense");
}

fn what_is_not_this_service_is_told_by_its_address(place: &Place) {
    let stage = Stage::set(place);
    let page = r#"{"code":404,"error":"not_found","message":"There is no such page."}"#;
    for (status, answer) in [(404, ""), (404, page), (301, "")] {
        let shop = Receiver::start(move |_| (status, answer.to_owned()));
        let url = shop.url().replace("/api/svc/webhook", "");
        let told = format!("{url} does not answer like this service ({status}): is SVC_BASE_URL");
        run(stage.command(&["clock"]).env("SVC_BASE_URL", &url)).refused(&told);
    }
    let page = Receiver::start(|_| (200, "<html>".to_owned()));
    let told = run(stage.command(&["clock"]).env("SVC_BASE_URL", page.url()));
    told.refused("does not answer like this service");
}

fn an_order_that_has_ended_is_told_as_it_was(place: &Place) {
    let stage = Stage::set(place);
    stage.order("order_1", 15_000);
    let said = |outcome| run(&mut stage.command(&[outcome, "order_1"]));
    assert_eq!(said("cancel").stderr, "");
    for outcome in ["confirm", "decline", "cancel"] {
        let again = said(outcome);
        assert_eq!(again.json()["paymentStatus"], "CAN", "{outcome}");
        assert_eq!(again.stderr, "It was CAN already; nothing changed.\n", "{outcome}");
    }
}

#[test]
fn help_and_usage_name_what_is_needed() {
    for command in
        [&["sandbox", "--help"][..], &["sandbox", "confirm", "--help"], &["listen", "--help"]]
    {
        let help = run(&mut svc(command)).stdout;
        assert!(help.contains("SVC_CLIENT_SECRET"), "{command:?}: {help}");
    }
    let mut without = svc(&["sandbox", "confirm"]);
    let told = run(without.env("SVC_CLIENT_ID", "svc_1").env("SVC_BASE_URL", "http://127.0.0.1:1"));
    assert!(told.stderr.contains("Usage: svc sandbox confirm [OPTIONS] <ORDER>"), "{told:?}");
}

fn a_mismatch_is_listed_and_accepted(place: &Place) {
    let stage = Stage::set(place);
    let (_, id) = stage.held("order_1");
    let id = id.to_string();
    let why = ["--reason", "one kwanza is missing"];
    let dismissed = [&["exception", "resolve", &id, "--dismiss"][..], &why].concat();
    place.svc(&dismissed).refused("held for it");
    let accept = [&["exception", "resolve", &id, "--accept", "--json"][..], &why].concat();
    let resolved = place.svc(&accept).json();
    assert_eq!(resolved["resolution"], "accepted: one kwanza is missing");
    assert_eq!(stage.status("order_1"), "CON");
    place.svc(&accept).refused("resolved already");
    assert_eq!(place.svc(&["exception", "list", "--json"]).json(), json!([]));
    let all = place.svc(&["exception", "list", "--all", "--json"]).json();
    assert_eq!(all[0]["resolvedBy"], "operator:cli");
    let shown = place.svc(&["order", "show", "order_1", "--json"]).json();
    assert_eq!(shown["exceptions"], all);
    assert_eq!(shown["webhooks"][0]["referenceNumber"], shown["referenceNumber"]);
    let told = stage.receiver.wait_for(2);
    assert_eq!(told[1].json()["data"]["paymentStatus"], "CON");
}

fn a_mismatch_is_refunded_and_its_order_ends(place: &Place) {
    let stage = Stage::set(place);
    let (_, id) = stage.held("order_1");
    let id = id.to_string();
    let arguments = ["exception", "resolve", &id, "--refund", "--reason", "sent back", "--json"];
    let resolved = place.svc(&arguments).json();
    assert_eq!(resolved["resolution"], "refunded: sent back");
    assert_eq!(stage.status("order_1"), "CAN");
}

fn an_operator_sees_the_story_of_an_order_and_cancels_it(place: &Place) {
    let stage = Stage::set(place);
    let reference = stage.order("order_1", 15_000);
    stage.sandbox(&["decline", "order_1"]);
    stage.sandbox(&["pending", "order_1"]);
    let answer =
        ["order", "answer", &reference, "--not-paid", "--reason", "not in their statement"];
    let refused = place.svc(&answer);
    assert!(refused.stderr.contains("no payment of this order is unknown"), "{refused:?}");
    let both = place.svc(&[&answer[..], &["--paid", "tx-1"]].concat());
    assert!(both.stderr.contains("cannot be used with"), "{both:?}");
    let said = place.svc(&["order", "cancel", &reference, "--operator", "ana"]);
    assert!(said.stdout.contains(&format!("The order {reference} is CAN.")), "{said:?}");
    let shown = place.svc(&["order", "show", &reference, "--json"]).json();
    assert_eq!(shown["paymentStatus"], "CAN");
    let states: Vec<_> = shown["attempts"].as_array().expect("a list").iter().collect();
    assert_eq!((&states[0]["state"], &states[1]["state"]), (&json!("rejected"), &json!("revoked")));
    let history = shown["history"].to_string();
    for part in ["operator:cli/ana", "attempt.start", "payer_refused", "order.settle"] {
        assert!(history.contains(part), "{part} is missing in {history}");
    }
    let paid = stage.order("order_2", 15_000);
    stage.sandbox(&["confirm", "order_2"]);
    let told = place.svc(&["order", "cancel", &paid, "--operator", "ana"]);
    told.refused("is CON: it can no longer be cancelled");
    let table = place.svc(&["order", "show", &reference]);
    for part in ["FPSOLPGEXT", "Loja Kianda, ", "evt_", &stage.receiver.url()] {
        assert!(table.stdout.contains(part), "{part} is missing: {table:?}");
    }
}

fn an_order_is_found_by_what_its_merchant_calls_it(place: &Place) {
    let stage = Stage::set(place);
    let reference = stage.order("order_1", 15_000);
    // Somebody calls another order by the reference of this one.
    stage.order(&reference, 15_000);
    for id in ["order_1", &reference] {
        let shown = place.svc(&["order", "show", id, "--json"]).json();
        assert_eq!(shown["referenceNumber"], json!(reference), "{id}");
    }
    let merchant = Merchant::new(stage.service.base_url(), &place.partner());
    let other = Stage { merchant, ..stage };
    let another = other.order("order_1", 15_000);
    let told = place.svc(&["order", "cancel", "order_1"]);
    told.refused("several orders go by order_1");
    assert!(told.stderr.contains(&reference) && told.stderr.contains(&another), "{told:?}");
    assert_eq!(other.status("order_1"), "PEN");
}

fn a_replay_goes_by_the_sandboxs_time(place: &Place) {
    let stage = Stage::with(place, Receiver::start(|_| (500, String::new())));
    stage.sandbox(&["clock", "--advance", "960h"]);
    stage.order("order-1", 15_000);
    stage.sandbox(&["confirm", "order-1"]);
    let event = place.svc(&["webhook", "list", "--json"]).json()[0].clone();
    let id = event["id"].as_str().expect("an id");
    let ran = place.svc(&["webhook", "replay", id, "--json"]).json();
    assert_eq!(ran["replayed"], 1, "{ran}");
    let noted = place.svc(&["audit", "list", "--subject", id, "--json"]).json();
    let (noted, committed) = (noted[0]["at"].as_str(), event["createdAt"].as_str());
    assert!(noted >= committed && committed.is_some(), "{noted:?} of what was at {committed:?}");
}
