//! `svc rail reconcile`: a day of an acquirer beside the orders, from the shell.

use serde_json::json;

use crate::support::receiver::Receiver;
use crate::support::{Place, Ran, run, svc};

on_both_engines! {
    what_a_rail_has_and_we_have_not_is_told_and_settled_when_asked,
    without_a_rail_that_answers_it_says_what_to_do,
}

/// The settings of a service with this connector. They hold a secret, so they go with the test.
struct Configured(String);

impl Configured {
    fn new(place: &Place, url: &str) -> Self {
        let secret = place.folder.path("rail-secret");
        let key = run(&mut svc(&["keygen", "--rail"]));
        std::fs::write(&secret, key.stdout.trim()).expect("the folder can be written");
        let settings = place.folder.path("svc.toml");
        let text =
            format!("[[rail]]\nname = \"acquirer\"\nurl = \"{url}\"\nsecret_file = \"{secret}\"\n");
        std::fs::write(&settings, text).expect("the folder can be written");
        Self(settings)
    }

    fn reconcile(&self, place: &Place, more: &[&str]) -> Ran {
        let arguments = ["rail", "reconcile", "--config", &self.0];
        place.svc(&[&arguments[..], more].concat())
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0.replace("svc.toml", "rail-secret"));
    }
}

fn what_a_rail_has_and_we_have_not_is_told_and_settled_when_asked(place: &Place) {
    place.partner();
    let stranger = json!({
        "railPaymentId": "p1", "entity": "00348", "reference": "987654321", "kind": "payment",
        "amount": "15000.00",
    });
    let statement = json!({ "lines": [stranger] }).to_string();
    let connector = Receiver::start(move |_| (200, statement.clone()));
    let configured = Configured::new(place, &connector.url());
    let asked = ["acquirer", "2026-01-15"];
    let looked = configured.reconcile(place, &asked);
    assert_eq!(looked.code, Some(1), "{looked:?}");
    assert!(looked.stdout.contains("missing_here"), "{looked:?}");
    assert!(looked.stdout.contains("0 matched, 1 not."), "{looked:?}");
    assert!(connector.received()[0].head.starts_with("POST /api/svc/webhook/statement "));
    let applied = configured.reconcile(place, &[&asked[..], &["--apply"]].concat());
    assert_eq!(applied.code, Some(1), "{applied:?}");
    assert!(applied.stdout.contains("exception_now"), "{applied:?}");
    let again = configured.reconcile(place, &[&asked[..], &["--json"]].concat()).json();
    assert_eq!(again["matched"], 1);
    assert_eq!(again["findings"][0]["result"], "matched");
    assert_eq!(again["findings"][0]["amount"], "15000.00");
    let exceptions = place.svc(&["exception", "list", "--json"]).json();
    assert_eq!(exceptions[0]["railPaymentId"], "p1");
    let history = place.svc(&["audit", "list", "--json"]).json().to_string();
    assert!(history.contains("rail.reconcile"), "{history}");
}

fn without_a_rail_that_answers_it_says_what_to_do(place: &Place) {
    place.partner();
    let configured = Configured::new(place, "http://127.0.0.1:1");
    let ask = |rail, day| configured.reconcile(place, &[rail, day]);
    ask("nobody", "2026-01-15").could_not_look("there is no rail nobody");
    ask("simulator", "2026-01-15").could_not_look("has no statements");
    ask("acquirer", "2026-01-15").could_not_look("the connector did not answer");
    ask("acquirer", "2999-01-15").could_not_look("has not begun in Luanda");
    let doctor = place.svc(&["doctor", "--config", &configured.0]);
    assert!(doctor.stdout.contains("acquirer: the connector did not answer"), "{doctor:?}");
    let connector = Receiver::start(|_| (200, json!({ "methods": [] }).to_string()));
    let answering = Configured::new(place, &connector.url());
    let doctor = place.svc(&["doctor", "--config", &answering.0]);
    assert!(doctor.stdout.contains("acquirer answers and offers"), "{doctor:?}");
    let yesterday = ask("acquirer", "yesterday");
    assert_eq!(yesterday.code, Some(2), "{yesterday:?}");
}
