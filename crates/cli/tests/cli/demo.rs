//! `svc demo`: what a person who just cloned the repository sees first.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::http::{call, get};
use crate::support::merchant::{Merchant, reference};
use crate::support::shop::{buy, pay, until_told, variables};
use crate::support::{Folder, PATIENCE, Place, Ran, Service, now, run, svc, until};

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
        "consoleUrl",
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
fn the_consoles_link_signs_in() {
    let folder = Folder::new();
    let service = start(&folder);
    let base_url = service.base_url();
    let url = text(&service.ready(), "consoleUrl");
    let path = url.strip_prefix(&base_url).expect("it is on the same service");
    assert!(path.starts_with("/console/enter/"), "{path}");
    // As often as it is followed: a demo is for showing.
    for _ in 0..2 {
        let answer = get(&base_url, path);
        assert_eq!((answer.status, answer.header("location")), (303, Some("/console")));
        let set = answer.header("set-cookie").expect("a session");
        assert!(set.starts_with("__Host-svc-console="), "{set}");
        let cookie = set.split(';').next().expect("its first part");
        let headers = format!("cookie: {cookie}\r\n");
        let home = call(&base_url, "GET /console", &headers, "").expect("the server answers");
        assert_eq!(home.status, 200);
        assert!(home.body.contains("class=\"mark sandbox\""), "{}", home.body);
    }
    let wrong = format!("{path}x");
    assert_eq!(get(&base_url, &wrong).status, 404);
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

/// Runs a command on the demo's database.
fn on_data(folder: &Folder, arguments: &[&str]) -> Ran {
    let database = format!("sqlite:{}", folder.path(&format!("{DATA}/svc.db")));
    run(svc(arguments).args(["--database", &database, "--json"]))
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("{key} is not told in {value}")).to_owned()
}

/// Buys something in the demo's shop and pays; its webhook must be believed.
fn buys(service: &Service) {
    let ready = service.ready();
    let shop_url = text(&ready, "shopUrl");
    let id = buy(&shop_url);
    pay(&variables(&service.base_url(), &ready), "confirm", &id);
    let (status, story) = until_told(&shop_url, &id, "fulfilled");
    assert_eq!((status.as_str(), story[2].as_str()), ("CON", "webhook"), "{story:?}");
}

#[test]
fn something_can_be_bought_at_once() {
    let folder = Folder::new();
    buys(&start(&folder));
}

#[test]
fn after_the_webhook_secret_was_rotated_the_shop_believes_the_new_one() {
    let folder = Folder::new();
    let first = start(&folder);
    let (old, key) =
        (text(&first.ready(), "webhookSecret"), text(&first.ready(), "publishableKey"));
    assert_eq!(first.stop().code, Some(0));
    let rotate = |takeover: &[&str]| {
        let command = ["application", "rotate-webhook-secret", &key];
        text(&on_data(&folder, &[&command[..], takeover].concat()).json(), "webhookSecret")
    };

    // In peace: for an hour the old one still signs.
    let new = rotate(&[]);
    let second = start(&folder);
    let ready = second.ready();
    assert_eq!(text(&ready, "webhookSecret"), new);
    assert_eq!(text(&ready, "webhookSecretPrevious"), old);
    buys(&second);
    assert_eq!(second.stop().code, Some(0));

    // Because it leaked: the new one signs now, and no other.
    let newest = rotate(&["--switch-after", "0s", "--overlap", "0s"]);
    for _ in 0..2 {
        let third = start(&folder);
        let ready = third.ready();
        assert_eq!(text(&ready, "webhookSecret"), newest);
        assert_eq!(ready["webhookSecretPrevious"], json!(null), "none is believed beside it");
        buys(&third);
        assert_eq!(third.stop().code, Some(0));
    }
}

#[test]
fn for_people_it_prints_the_secrets_of_now() {
    let folder = Folder::new();
    let first = start(&folder);
    let (old, key) =
        (text(&first.ready(), "webhookSecret"), text(&first.ready(), "publishableKey"));
    assert_eq!(first.stop().code, Some(0));
    let rotated = on_data(&folder, &["application", "rotate-webhook-secret", &key]).json();
    let second = Service::start(&mut demo(&folder, &[]));
    let printed = [
        format!("SVC_WEBHOOK_SECRET={}", text(&rotated, "webhookSecret")),
        format!("SVC_WEBHOOK_SECRET_PREVIOUS={old}"),
    ];
    for wanted in printed {
        until(&wanted, PATIENCE, || {
            second.lines.try_iter().find(|line| line.trim() == wanted).map(drop)
        });
    }
}

#[test]
fn a_client_secret_that_was_rotated_is_asked_for() {
    let folder = Folder::new();
    let first = start(&folder);
    let client = text(&first.ready(), "clientId");
    assert_eq!(first.stop().code, Some(0));
    let rotate = ["partner", "rotate-secret", &client, "--overlap", "0s"];
    let new = text(&on_data(&folder, &rotate).json(), "clientSecret");
    run(&mut demo(&folder, &["--json"])).refused("the demo's client secret was rotated");

    // As it says: the new one, written into the file.
    let path = folder.path(&format!("{DATA}/credentials.json"));
    let kept = std::fs::read_to_string(&path).expect("it is there");
    let mut kept: Value = serde_json::from_str(&kept).expect("it is JSON");
    kept["credentials"]["clientSecret"] = json!(new);
    std::fs::write(&path, kept.to_string()).expect("it is ours");
    buys(&start(&folder));
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
    for name in ["credentials.json", "env", "svc.db"] {
        let path = folder.path(&format!("{DATA}/{name}"));
        let mode = std::fs::metadata(path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name} has mode {mode:o}");
    }
}

#[test]
fn a_second_demo_on_the_same_data_is_refused() {
    let folder = Folder::new();
    let first = start(&folder);
    run(&mut demo(&folder, &["--json"])).refused("another svc is using");
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
    while lines.last().is_none_or(|line| line != "svc webhook list") {
        assert!(start.elapsed() < PATIENCE, "the walk has no end: {lines:?}");
        lines.push(until("the next line", PATIENCE, || service.lines.try_recv().ok()));
    }
    let paste = lines.iter().position(|line| line.starts_with("Paste this"));
    lines.split_off(paste.expect("the walk is announced") + 1).join("\n")
}

fn paste(script: &str) -> Ran {
    run(Command::new("bash").arg("-euo").arg("pipefail").arg("-c").arg(script))
}
