//! `svc demo`: what a person who just cloned the repository sees first.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;
use support::http::get;
use support::merchant::{Merchant, reference};
use support::{Folder, PATIENCE, Place, Ran, Service, now, run, svc, until};

const PRIVATE_TARGET: &str = "http://127.0.0.1:3000/api/svc/webhook";

const DATA: &str = "the demo's data";

fn demo(folder: &Folder, json: &[&str]) -> Command {
    let mut command = svc(&["demo", "--listen", "127.0.0.1:0", "--data"]);
    // Names that a shell would take apart, because the walk is pasted into one.
    command.arg(folder.path(DATA)).args(json);
    command
}

fn start(folder: &Folder) -> Service {
    Service::start(&mut demo(folder, &["--json"]))
}

fn merchant(service: &Service) -> Merchant {
    Merchant::new(service.base_url(), &service.ready())
}

#[test]
fn the_first_line_has_exactly_the_promised_keys() {
    let folder = Folder::new();
    let ready = start(&folder).ready();
    let mut keys: Vec<_> = ready.as_object().expect("an object").keys().collect();
    keys.sort_unstable();
    let promised = [
        "applicationUUID",
        "baseUrl",
        "clientId",
        "clientSecret",
        "publishableKey",
        "sdkUrl",
        "shopUrl",
        "webhookSecret",
    ];
    assert_eq!(keys, promised);
    let text = |key: &str| ready[key].as_str().expect("every value is text");
    assert_eq!(text("publishableKey"), format!("pk_test_{}", text("applicationUUID")));
}

#[test]
fn port_0_picks_a_port_and_tells_it() {
    let folder = Folder::new();
    let service = start(&folder);
    assert!(!service.base_url().ends_with(":0"), "{}", service.base_url());
    assert_eq!(get(&service.base_url(), "/livez").status, 200);
}

#[test]
fn with_json_stdout_holds_that_line_and_nothing_else() {
    let folder = Folder::new();
    let ended = start(&folder).stop();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
}

#[test]
fn credentials_and_orders_survive_a_restart() {
    let folder = Folder::new();
    let first = start(&folder);
    let before = merchant(&first);
    let created = before.create(&before.token(), "order-1").expect("the server answers");
    let credentials = credentials_of(&first);
    assert_eq!(first.stop().code, Some(0));

    let second = start(&folder);
    assert_eq!(credentials_of(&second), credentials);
    let after = merchant(&second);
    assert_eq!(reference(&after.query(&after.token(), "order-1")), reference(&created));
}

/// What is printed but for the addresses, whose port changes.
fn credentials_of(service: &Service) -> Value {
    let mut ready = service.ready();
    let fields = ready.as_object_mut().expect("an object");
    fields.retain(|key, _| !key.ends_with("Url"));
    ready
}

#[test]
fn the_files_with_secrets_are_for_their_owner_only() {
    let folder = Folder::new();
    let _service = start(&folder);
    for name in ["credentials.json", "svc.db"] {
        let path = folder.path(&format!("{DATA}/{name}"));
        let mode = std::fs::metadata(path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name} has mode {mode:o}");
    }
}

#[test]
fn a_second_demo_on_the_same_data_is_refused() {
    let folder = Folder::new();
    let first = start(&folder);
    run(&mut demo(&folder, &["--json"])).refused("another svc is serving");
    assert_eq!(get(&first.base_url(), "/readyz").status, 200, "the first goes on");
}

#[test]
fn private_webhook_targets_are_allowed_in_the_demo_only() {
    let place = Place::sqlite();
    let demo = start(&place.folder);
    let own = merchant(&demo);
    let answer = own.create_with(&own.token(), "order-1", PRIVATE_TARGET);
    assert_eq!(answer.expect("the server answers").status, 200);

    let service = place.serve();
    let own = Merchant::new(service.base_url(), &place.partner());
    let answer = own.create_with(&own.token(), "order-1", PRIVATE_TARGET);
    assert_eq!(answer.expect("the server answers").status, 422);
}

#[test]
fn the_printed_walk_works_when_pasted() {
    let folder = Folder::new();
    let service = Service::start(&mut demo(&folder, &[]));
    assert!(service.first_line.contains("http://127.0.0.1:"), "{}", service.first_line);
    let pasted = paste(&walk(&service));
    assert_eq!(pasted.code, Some(0), "{pasted:?}");
    let (answers, table): (Vec<_>, Vec<_>) =
        pasted.stdout.lines().partition(|line| line.starts_with('{'));
    let answers: Vec<Value> = answers
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{pasted:?}")))
        .collect();
    let [created, queried, paid] = &answers[..] else { panic!("three answers, not {pasted:?}") };
    for (answer, status) in [(created, "PEN"), (queried, "PEN"), (paid, "CON")] {
        assert_eq!(answer["code"], 200, "{answer}");
        assert_eq!(answer["data"]["paymentStatus"], status, "{answer}");
        assert_eq!(answer["data"]["amount"], 15000, "{answer}");
        assert_eq!(answer["data"]["referenceNumber"], created["data"]["referenceNumber"]);
    }
    let reference = created["data"]["referenceNumber"].as_str().expect("a reference is text");
    let [page, head, event] = table[..] else { panic!("a page and one event, not {pasted:?}") };
    let (_, target) = page.split_once("/checkout/").expect("the address of the checkout");
    assert!(target.contains("?key=pk_test_"), "{page}");
    assert!(head.starts_with("EVENT"), "{head}");
    for part in ["evt_", "CON", reference, "/api/svc/webhook"] {
        assert!(event.contains(part), "{part} is missing in {event}");
    }
}

/// The text after "Paste this", up to the last of its steps.
fn walk(service: &Service) -> String {
    let mut lines: Vec<String> = Vec::new();
    let start = now();
    while lines.last().is_none_or(|line| !line.contains(" webhook list ")) {
        assert!(start.elapsed() < PATIENCE, "the walk has no end: {lines:?}");
        lines.push(until("the next line", PATIENCE, || service.lines.try_recv().ok()));
    }
    let paste = lines.iter().position(|line| line.starts_with("Paste this"));
    lines.split_off(paste.expect("the walk is announced") + 1).join("\n")
}

fn paste(script: &str) -> Ran {
    run(Command::new("bash").arg("-euo").arg("pipefail").arg("-c").arg(script))
}
