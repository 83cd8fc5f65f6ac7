//! `svc webhook`: what was sent, what came of it, and sending it again; on a real service with a
//! real receiver at the other end.

use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::support::http::connect;
use crate::support::merchant::Merchant;
use crate::support::receiver::{Receiver, order, pay};
use crate::support::{PATIENCE, Place, Service, until};

const UNKNOWN: &str = "evt_01JC4E9V7Q3M8Y5T2K6R1N0WXZ";

on_both_engines! {
    events_are_listed_newest_first,
    the_list_is_narrowed_by_state,
    the_list_is_narrowed_by_order,
    the_list_is_narrowed_by_application,
    the_list_is_narrowed_by_time,
    show_tells_what_every_attempt_brought,
    show_tells_why_nothing_was_answered,
    show_tells_that_an_address_is_not_sent_to,
    a_replayed_event_comes_again_with_the_same_id_and_bytes,
    a_replay_while_the_service_is_stopped_is_sent_at_its_start,
    a_replay_by_state_takes_all_of_that_state,
    a_replay_of_everything_is_refused,
    a_superseded_event_is_not_replayed_and_says_why,
    an_unknown_or_malformed_id_is_refused_with_a_sentence,
    sigterm_during_a_delivery_lets_it_end,
}

/// What the merchant's endpoint does with events for these paths; all others it takes.
const DOWN: &str = "/down";
const BETTER_THE_SECOND_TIME: &str = "/better-the-second-time";

/// A running service, a merchant, and its endpoint.
struct Stage<'a> {
    place: &'a Place,
    service: Service,
    credentials: Value,
    merchant: Merchant,
    receiver: Receiver,
}

impl<'a> Stage<'a> {
    fn set(place: &'a Place) -> Self {
        let receiver = Receiver::start(|received| {
            let attempt = received.header("x-svc-delivery-attempt");
            let status = match received.head.split_whitespace().nth(1).unwrap_or_default() {
                path if path.ends_with(DOWN) => 500,
                path if path.ends_with(BETTER_THE_SECOND_TIME) && attempt == "1" => 500,
                // This merchant has no use for it, so that it can be superseded.
                _ if text(&received.json()["data"], "paymentStatus") == "PEN" => 500,
                _ => 200,
            };
            (status, format!("said {status} to attempt {attempt}"))
        });
        let service = place.serve_locally();
        let credentials = place.partner();
        let merchant = Merchant::new(service.base_url(), &credentials);
        Self { place, service, credentials, merchant, receiver }
    }

    /// A paid order whose event was taken.
    fn delivered(&self, id: &str) -> Value {
        self.paid(id, "", "delivered")
    }

    /// A paid order; its one event, once it was tried and is in this state.
    fn paid(&self, id: &str, path: &str, state: &str) -> Value {
        let reference = order(&self.merchant, id, &(self.receiver.url() + path));
        pay(&self.merchant, id);
        self.tried(&reference, state)
    }

    fn tried(&self, reference: &str, state: &str) -> Value {
        until("the event was tried", PATIENCE, || {
            let mut found = listed(self.place, &["--order", reference, "--state", state]);
            found.pop().filter(|event| !attempts(self.place, event).is_empty())
        })
    }
}

fn listed(place: &Place, narrowed: &[&str]) -> Vec<Value> {
    let events = place.svc(&[&["webhook", "list", "--json"], narrowed].concat()).json();
    events.as_array().expect("a list").clone()
}

fn ids(place: &Place, narrowed: &[&str]) -> Vec<String> {
    listed(place, narrowed).iter().map(|event| text(event, "id")).collect()
}

fn shown(place: &Place, event: &Value) -> Value {
    place.svc(&["webhook", "show", &text(event, "id"), "--json"]).json()
}

fn attempts(place: &Place, event: &Value) -> Vec<Value> {
    shown(place, event)["deliveries"].as_array().expect("a list").clone()
}

fn replayed(place: &Place, which: &[&str]) -> Value {
    place.svc(&[&["webhook", "replay", "--json"], which].concat()).json()
}

fn text(document: &Value, key: &str) -> String {
    document[key].as_str().unwrap_or_else(|| panic!("{key} is no text in {document}")).to_owned()
}

fn time(document: &Value, key: &str) -> jiff::Timestamp {
    text(document, key).parse().expect("it is a time")
}

fn events_are_listed_newest_first(place: &Place) {
    let stage = Stage::set(place);
    assert_eq!(listed(place, &[]), [] as [Value; 0]);
    let (first, second) = (stage.delivered("order-1"), stage.delivered("order-2"));
    assert_eq!(ids(place, &[]), [text(&second, "id"), text(&first, "id")]);
    assert_eq!(ids(place, &["--limit", "1"]), [text(&second, "id")]);

    let created_at = text(&first, "createdAt");
    let expected = json!({
        "id": first["id"],
        "state": "delivered",
        "paymentStatus": "CON",
        "referenceNumber": first["referenceNumber"],
        "externalTransactionId": "order-1",
        "publishableKey": stage.credentials["publishableKey"],
        "attempts": 1,
        "last": "HTTP 200",
        "createdAt": created_at,
        "webhookUrl": stage.receiver.url(),
    });
    assert_eq!(first, expected, "what has ended has no next attempt");
    assert!(created_at.ends_with('Z'), "{created_at}");

    let table = place.svc(&["webhook", "list", "--limit", "2"]);
    assert_eq!(table.code, Some(0), "{table:?}");
    let lines: Vec<_> = table.stdout.lines().collect();
    let head: Vec<_> =
        lines[0].split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
    let columns =
        ["EVENT", "STATE", "STATUS", "ORDER", "MERCHANT'S ID", "TRIES", "LAST", "DUE", "TO"];
    assert_eq!(head, columns);
    assert_eq!(lines.len(), 3, "{table:?}");
    for (line, event) in lines[1..].iter().zip([&second, &first]) {
        for key in [
            "id",
            "state",
            "paymentStatus",
            "referenceNumber",
            "externalTransactionId",
            "webhookUrl",
        ] {
            assert!(line.contains(&text(event, key)), "{key} is missing in {line:?}");
        }
    }
    assert!(!table.stderr.contains("--limit"), "there are no more: {table:?}");
    let table = place.svc(&["webhook", "list", "--limit", "1"]);
    assert!(table.stderr.contains("The first 1 only; --limit shows more"), "{table:?}");
}

fn the_list_is_narrowed_by_state(place: &Place) {
    let stage = Stage::set(place);
    let delivered = stage.delivered("order-1");
    let queued = stage.paid("order-2", DOWN, "queued");
    assert!(queued["nextAttemptAt"].is_string(), "{queued}");
    assert_eq!(ids(place, &["--state", "delivered"]), [text(&delivered, "id")]);
    assert_eq!(ids(place, &["--state", "queued"]), [text(&queued, "id")]);
    for state in ["exhausted", "superseded"] {
        assert_eq!(ids(place, &["--state", state]), [] as [String; 0], "{state}");
    }
}

fn the_list_is_narrowed_by_order(place: &Place) {
    let stage = Stage::set(place);
    let (first, second) = (stage.delivered("order-1"), stage.delivered("order-2"));
    let key = text(&stage.credentials, "publishableKey");
    assert_eq!(ids(place, &["--order", &text(&first, "referenceNumber")]), [text(&first, "id")]);
    let by_own_id = ["--order", "order-2", "--application", &key];
    assert_eq!(ids(place, &by_own_id), [text(&second, "id")]);
    assert_eq!(ids(place, &["--order", "order-2"]), [text(&second, "id")]);
    let other = Merchant::new(stage.service.base_url(), &place.partner());
    order(&other, "order-2", &stage.receiver.url());
    place.svc(&["webhook", "list", "--order", "order-2"]).refused("several orders go by order-2");
    assert_eq!(ids(place, &by_own_id), [text(&second, "id")]);
    let unknown = ["webhook", "list", "--order", "order-3", "--application", &key];
    place.svc(&unknown).refused("there is no order order-3");
}

fn the_list_is_narrowed_by_application(place: &Place) {
    let stage = Stage::set(place);
    let event = stage.delivered("order-1");
    let (own, other) = (&stage.credentials, place.partner());
    for key in ["publishableKey", "applicationUUID"] {
        assert_eq!(ids(place, &["--application", &text(own, key)]), [text(&event, "id")]);
        assert_eq!(ids(place, &["--application", &text(&other, key)]), [] as [String; 0]);
    }
    let nobody = "0b6f1d3c-8a55-4c1b-9c86-0f6f6ad0a111";
    let told = format!("there is no application {nobody}; svc application list shows all");
    place.svc(&["webhook", "list", "--application", nobody]).refused(&told);
}

fn the_list_is_narrowed_by_time(place: &Place) {
    let stage = Stage::set(place);
    let event = stage.delivered("order-1");
    let (id, created_at) = (text(&event, "id"), text(&event, "createdAt"));
    for (narrowed, there) in [
        (["--since", "1h"], true),
        (["--until", "1h"], false),
        (["--since", "2026-01-01T00:00:00Z"], true),
        (["--until", "2026-01-01T00:00:00Z"], false),
        (["--since", &created_at], true),
        (["--since", "2096-01-01T00:00:00Z"], false),
        (["--until", &created_at], false),
    ] {
        assert_eq!(ids(place, &narrowed).contains(&id), there, "{narrowed:?}");
    }
}

fn show_tells_what_every_attempt_brought(place: &Place) {
    let stage = Stage::set(place);
    let event = stage.paid("order-1", BETTER_THE_SECOND_TIME, "queued");
    // Not in five seconds: now.
    assert_eq!(replayed(place, &[&text(&event, "id")]), json!({ "replayed": 1 }));
    let event = stage.tried(&text(&event, "referenceNumber"), "delivered");

    let shown = shown(place, &event);
    for (key, value) in event.as_object().expect("an object") {
        assert_eq!(&shown[key], value, "{key} is the same in list and show");
    }
    let body = stage.receiver.received().remove(0).body;
    assert_eq!(text(&shown, "body").as_bytes(), body, "the very bytes that were sent");
    let deliveries = shown["deliveries"].as_array().expect("a list");
    assert!(deliveries.len() >= 2, "{shown}");
    for (delivery, (attempt, status)) in deliveries.iter().zip([(1, 500), (2, 200)]) {
        assert_eq!(delivery["attempt"], attempt, "{delivery}");
        assert_eq!(delivery["httpStatus"], status, "{delivery}");
        assert_eq!(delivery["error"], Value::Null, "{delivery}");
        let said = format!("said {status} to attempt {attempt}");
        assert_eq!(delivery["answerStart"], said, "{delivery}");
        assert!(delivery["latencyMs"].as_i64().is_some_and(|took| took < 5_000), "{delivery}");
        assert!(time(delivery, "at") >= time(&event, "createdAt"), "{delivery}");
    }

    let printed = place.svc(&["webhook", "show", &text(&event, "id")]);
    assert_eq!(printed.code, Some(0), "{printed:?}");
    for part in ["TRY", "WHAT CAME", "said 500 to attempt 1", "said 200 to attempt 2", " ms"] {
        assert!(printed.stdout.contains(part), "{part} is missing: {}", printed.stdout);
    }
}

fn show_tells_why_nothing_was_answered(place: &Place) {
    let stage = Stage::set(place);
    // A port that was free a moment ago, at an address that no other test uses.
    let nobody = std::net::TcpListener::bind("127.0.0.8:0").expect("a free port can be had");
    let url = format!("http://{}/", nobody.local_addr().expect("it has an address"));
    drop(nobody);
    let reference = order(&stage.merchant, "order-1", &url);
    pay(&stage.merchant, "order-1");
    let event = stage.tried(&reference, "queued");
    let delivery = &attempts(place, &event)[0];
    assert_eq!(delivery["httpStatus"], Value::Null, "{delivery}");
    assert_eq!(delivery["error"], "connection refused", "{delivery}");
    assert_eq!(delivery["answerStart"], "", "{delivery}");
}

fn show_tells_that_an_address_is_not_sent_to(place: &Place) {
    let stage = Stage::set(place);
    let event = stage.delivered("order-1");
    assert_eq!(stage.service.stop().code, Some(0));
    assert_eq!(replayed(place, &[&text(&event, "id")]), json!({ "replayed": 1 }));
    // This one may send to public addresses only.
    let _service = place.serve();
    let second =
        until("it was tried again", PATIENCE, || attempts(place, &event).into_iter().nth(1));
    assert_eq!(second["httpStatus"], Value::Null, "{second}");
    assert!(text(&second, "error").starts_with("the URL "), "{second}");
    assert_eq!(stage.receiver.received().len(), 1, "nothing was sent");
}

fn a_replayed_event_comes_again_with_the_same_id_and_bytes(place: &Place) {
    let stage = Stage::set(place);
    let event = stage.delivered("order-1");
    let told = place.svc(&["webhook", "replay", &text(&event, "id")]);
    assert_eq!(told.code, Some(0), "{told:?}");
    let pauses =
        "at once, or, while their destination is failing, one by one with pauses of up to 15 s";
    assert!(told.stdout.starts_with("1 queued") && told.stdout.contains(pauses), "{told:?}");
    let received = stage.receiver.wait_for(2);
    assert_eq!(received[1].body, received[0].body);
    for again in &received {
        assert_eq!(again.header("webhook-id"), text(&event, "id"));
    }
    let attempts: Vec<_> =
        received.iter().map(|again| again.header("x-svc-delivery-attempt")).collect();
    assert_eq!(attempts, ["1", "2"]);
}

fn a_replay_while_the_service_is_stopped_is_sent_at_its_start(place: &Place) {
    let stage = Stage::set(place);
    let event = stage.delivered("order-1");
    assert_eq!(stage.service.stop().code, Some(0));
    assert_eq!(replayed(place, &[&text(&event, "id")]), json!({ "replayed": 1 }));
    assert_eq!(ids(place, &["--state", "queued"]), [text(&event, "id")]);
    assert_eq!(stage.receiver.received().len(), 1, "nobody is there to send it");
    let _service = place.serve_locally();
    let received = stage.receiver.wait_for(2);
    assert_eq!(received[1].header("webhook-id"), text(&event, "id"));
    assert_eq!(received[1].body, received[0].body);
}

fn a_replay_by_state_takes_all_of_that_state(place: &Place) {
    let stage = Stage::set(place);
    let mut wanted: Vec<_> =
        ["a", "b", "c"].iter().map(|id| text(&stage.delivered(id), "id")).collect();
    let waiting = text(&stage.paid("d", DOWN, "queued"), "id");
    assert_eq!(
        replayed(place, &["--all-merchants", "--state", "exhausted"]),
        json!({ "replayed": 0 })
    );
    assert_eq!(
        replayed(place, &["--all-merchants", "--state", "delivered"]),
        json!({ "replayed": 3 })
    );
    wanted = [wanted.clone(), wanted].concat();
    wanted.sort_unstable();
    until("each of the three came twice", PATIENCE, || {
        let received = stage.receiver.received();
        let came = received.iter().map(|one| one.header("webhook-id").to_owned());
        // The waiting one has its own times.
        let mut came: Vec<_> = came.filter(|id| *id != waiting).collect();
        came.sort_unstable();
        (came == wanted).then_some(())
    });
}

fn a_replay_of_everything_is_refused(place: &Place) {
    let stage = Stage::set(place);
    let event = stage.delivered("order-1");
    for (which, told) in [
        (&[][..], "say whose events"),
        (&["--since", "2h"], "say whose events"),
        (&["--all-merchants"], "say which events"),
    ] {
        place.svc(&[&["webhook", "replay"], which].concat()).refused(told);
    }
    let still = listed(place, &[]);
    assert_eq!(still, [event], "nothing was queued");
}

fn a_superseded_event_is_not_replayed_and_says_why(place: &Place) {
    let stage = Stage::set(place);
    let merchant = announcing(&stage);
    let reference = order(&merchant, "order-1", &stage.receiver.url());
    let pending = stage.tried(&reference, "queued");
    assert_eq!(pending["paymentStatus"], "PEN");
    pay(&merchant, "order-1");
    let confirmed = stage.tried(&reference, "delivered");
    assert_eq!(confirmed["paymentStatus"], "CON");
    assert_eq!(ids(place, &["--state", "superseded"]), [text(&pending, "id")]);

    let refused = place.svc(&["webhook", "replay", &text(&pending, "id")]);
    refused.refused("a newer event of the same order has taken its place");
    let all = ["webhook", "replay", "--all-merchants", "--state", "superseded"];
    place.svc(&all).refused("a superseded event is never sent again");
    assert_eq!(replayed(place, &["--order", &reference]), json!({ "replayed": 1 }));
    let statuses = || -> Vec<_> {
        let received = stage.receiver.received();
        received.iter().map(|one| text(&one.json()["data"], "paymentStatus")).collect()
    };
    until("CON came again", PATIENCE, || {
        (statuses().iter().filter(|status| *status == "CON").count() == 2).then_some(())
    });
    let first = statuses().iter().position(|status| status == "CON").expect("it came");
    assert!(statuses()[first..].iter().all(|status| status == "CON"), "{:?}", statuses());
}

/// The same merchant with an application that tells of `PEN` when an order is created.
fn announcing(stage: &Stage<'_>) -> Merchant {
    let application = stage.place.svc(&[
        "application",
        "create",
        "Loja online",
        "--partner",
        &stage.merchant.client_id,
        "--pending-event",
        "creation",
        "--json",
    ]);
    let application_uuid = text(&application.json(), "applicationUUID");
    Merchant { application_uuid, ..stage.merchant.clone() }
}

fn an_unknown_or_malformed_id_is_refused_with_a_sentence(place: &Place) {
    place.partner();
    for command in ["show", "replay"] {
        place.svc(&["webhook", command, UNKNOWN]).refused(UNKNOWN);
        let lower = UNKNOWN.to_lowercase();
        for malformed in ["42", "evt_", "01JC4E9V7Q3M8Y5T2K6R1N0WXZ", &lower] {
            let wanted = format!("{malformed} is not an event id: they look like evt_");
            place.svc(&["webhook", command, malformed]).refused(&wanted);
        }
    }
}

fn sigterm_during_a_delivery_lets_it_end(place: &Place) {
    let (let_go, held) = channel::<()>();
    let held = Mutex::new(held);
    let receiver = Receiver::start(move |_| {
        let _ = held.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PATIENCE);
        (200, String::new())
    });
    let service = place.serve_locally();
    let merchant = Merchant::new(service.base_url(), &place.partner());
    order(&merchant, "order-1", &receiver.url());
    pay(&merchant, "order-1");
    receiver.wait_for(1);

    service.terminate();
    until("no new connection is accepted", PATIENCE, || connect(&merchant.base_url).err());
    let_go.send(()).expect("the merchant is still there");
    let ended = service.ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let events = listed(place, &[]);
    assert_eq!((&events[0]["state"], &events[0]["attempts"]), (&json!("delivered"), &json!(1)));
    assert_eq!(attempts(place, &events[0]).len(), 1);
    assert_eq!(receiver.received().len(), 1);
}

#[test]
fn wrong_usage_is_exit_code_2_with_nothing_on_stdout() {
    let place = Place::sqlite();
    let commands: [&[&str]; 6] = [
        &["webhook"],
        &["webhook", "show"],
        &["webhook", "show", UNKNOWN, UNKNOWN],
        &["webhook", "list", "--state", "lost"],
        &["webhook", "list", "--since", "yesterday"],
        &["webhook", "replay", "--limit", "3"],
    ];
    for command in commands {
        let ran = place.svc(command);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command:?}: {ran:?}");
    }
    assert!(!std::fs::exists(place.folder.path("svc.db")).expect("the folder can be read"));
}

#[test]
fn where_there_is_no_database_none_is_made() {
    let place = Place::sqlite();
    for command in [&["webhook", "list"][..], &["webhook", "show", UNKNOWN]] {
        place.svc(command).refused("there is no database at");
    }
}
