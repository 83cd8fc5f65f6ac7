//! `svc merchant`: the reference shop as a process of its own, against a real service.

use std::process::Command;

use aws_lc_rs::hmac;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::shop::{ask, buy, pay, told, until_told, variables};
use crate::support::{Folder, PATIENCE, Place, Ran, Service, run, svc, until};

/// A service with one partner, and a folder for the partner's shop.
struct Stage {
    place: Place,
    credentials: Value,
    service: Service,
}

impl Stage {
    fn set() -> Self {
        let place = Place::sqlite();
        let service = place.serve_locally();
        Self { credentials: place.partner(), service, place }
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        variables(&self.service.base_url(), &self.credentials)
    }

    fn secret(&self) -> &str {
        self.credentials["webhookSecret"].as_str().expect("a secret is text")
    }

    fn open_shop(&self) -> Shop {
        let mut command = merchant(&self.place.folder);
        Shop(Service::start(command.arg("--json").envs(self.variables())))
    }

    fn shop_database(&self) -> Connection {
        Connection::open(self.place.folder.path("shop/shop.db")).expect("the shop made it")
    }

    fn count(&self, sql: &str) -> i64 {
        self.shop_database().query_row(sql, [], |row| row.get(0)).expect("the question is right")
    }

    /// Events that the shop answered with 200.
    fn delivered(&self) -> usize {
        let events = self.place.svc(&["webhook", "list", "--state", "delivered", "--json"]).json();
        events.as_array().expect("a list").len()
    }

    /// A webhook as this partner's service signs it.
    fn webhook(&self, shop_url: &str, body: &Value) -> u16 {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret().as_bytes());
        let digest = hmac::sign(&key, body.to_string().as_bytes());
        let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let header = format!("x-svc-content-token: {digest}\r\n");
        ask(shop_url, "POST /api/svc/webhook", &header, &body.to_string()).status
    }
}

struct Shop(Service);

impl Shop {
    fn url(&self) -> String {
        self.0.ready()["shopUrl"].as_str().expect("shopUrl is told").to_owned()
    }

    /// As the machine does when it loses power.
    fn kill(mut self) {
        self.0.child.kill().expect("it is ours");
        self.0.child.wait().expect("it is ours to wait for");
    }
}

/// The command, free of what the machine of the test may have set.
fn merchant(folder: &Folder) -> Command {
    let mut command = svc(&["merchant", "--listen", "127.0.0.1:0", "--data"]);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("SVC_") {
            command.env_remove(name);
        }
    }
    command.arg(folder.path("shop"));
    command
}

fn event(id: &str, status: &str, amount: i64) -> Value {
    json!({ "event": "payment", "data": { "externalTransactionId": id, "paymentStatus": status,
        "referenceNumber": "R", "amount": amount } })
}

#[test]
fn an_order_is_bought_paid_and_sent() {
    let stage = Stage::set();
    let shop = stage.open_shop();
    let url = shop.url();
    let (paid, given_up) = (buy(&url), buy(&url));
    assert_eq!(stage.count("select free from stock where product = 'livro-receitas'"), 498);
    assert_eq!(pay(&stage.variables(), "confirm", &paid)["paymentStatus"], "CON");
    let (status, story) = until_told(&url, &paid, "fulfilled");
    assert_eq!(
        (status.as_str(), story.join(" ").as_str()),
        ("CON", "created reference webhook fulfilled")
    );
    assert_eq!(pay(&stage.variables(), "cancel", &given_up)["paymentStatus"], "CAN");
    assert_eq!(until_told(&url, &given_up, "webhook").0, "CAN");
    assert_eq!(stage.count("select free from stock where product = 'livro-receitas'"), 499);

    let status = ask(&url, &format!("GET /api/svc/order/{paid}/status"), "", "").json();
    assert_eq!((&status["status"], &status["amount"]), (&json!("CON"), &json!(15_000)));
    let ended = shop.0.stop();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    for (_, secret) in stage.variables().iter().filter(|(name, _)| name.ends_with("_SECRET")) {
        assert!(!ended.stderr.contains(secret.as_str()), "its log holds a secret: {ended:?}");
    }
}

#[test]
fn killed_between_its_answer_and_the_parcel_it_sends_the_parcel_in_its_next_life_and_once() {
    let stage = Stage::set();
    let shop = stage.open_shop();
    let id = buy(&shop.url());
    // From now on a parcel takes for ever. Nothing else does, so the webhook is still answered.
    stage
        .shop_database()
        .execute_batch(
            "create view for_ever as
                 with recursive n(x) as (select 1 union all select x + 1 from n) select x from n;
             create trigger slow before update of fulfilled_at_ms on orders
                 begin select count(*) from for_ever; end",
        )
        .expect("the database is ours too");
    pay(&stage.variables(), "confirm", &id);
    until("the webhook is answered", PATIENCE, || (stage.delivered() == 1).then_some(()));
    until("the shop is in the middle of sending", PATIENCE, || {
        let db = stage.shop_database();
        db.busy_timeout(std::time::Duration::ZERO).expect("it can be set");
        db.execute_batch("begin immediate; rollback").is_err().then_some(())
    });
    shop.kill();
    assert_eq!(stage.count("select count(*) from orders where status = 'CON'"), 1);
    assert_eq!(stage.count("select count(*) from to_fulfil"), 1);
    assert_eq!(stage.count("select count(*) from orders where fulfilled_at_ms is not null"), 0);

    stage.shop_database().execute_batch("drop trigger slow; drop view for_ever").expect("as above");
    let shop = stage.open_shop();
    let url = shop.url();
    until_told(&url, &id, "fulfilled");
    // Neither the same event again nor another life sends it again.
    assert_eq!(stage.webhook(&url, &event(&id, "CON", 15_000)), 200);
    assert_eq!(shop.0.stop().code, Some(0));
    let shop = stage.open_shop();
    let other = buy(&shop.url());
    pay(&stage.variables(), "confirm", &other);
    until_told(&shop.url(), &other, "fulfilled");
    let (_, story) = told(&shop.url(), &id);
    assert_eq!(story.iter().filter(|what| *what == "fulfilled").count(), 1, "{story:?}");
    assert_eq!(stage.count("select count(*) from to_fulfil"), 0);
}

#[test]
fn an_order_that_was_paid_while_the_shop_was_closed_is_found_when_asked_for() {
    let stage = Stage::set();
    let shop = stage.open_shop();
    let id = buy(&shop.url());
    shop.kill();
    pay(&stage.variables(), "confirm", &id);
    // It opens on another port: the webhook knocks at the old one.
    let shop = stage.open_shop();
    assert_eq!(told(&shop.url(), &id).0, "PEN");
    let status = ask(&shop.url(), &format!("GET /api/svc/order/{id}/status"), "", "").json();
    assert_eq!(status["status"], "CON");
    let (_, story) = until_told(&shop.url(), &id, "fulfilled");
    assert_eq!(story.join(" "), "created reference query fulfilled");
}

#[test]
fn what_a_person_must_look_at_is_in_the_log() {
    let stage = Stage::set();
    let shop = stage.open_shop();
    let (url, id) = (shop.url(), buy(&shop.url()));
    assert_eq!(stage.webhook(&url, &event(&id, "REF", 15_000)), 200);
    assert_eq!(stage.webhook(&url, &json!({ "event": "payout", "data": {} })), 200);
    assert_eq!(told(&url, &id).0, "PEN");
    assert_eq!(stage.webhook(&url, &event(&id, "CON", 14_999)), 200);
    assert_eq!(until_told(&url, &id, "held").0, "CON");
    let log = shop.0.stop().stderr;
    for part in ["event payout", "REF", "15000 Kz were asked for, 14999 are reported", &id] {
        assert!(log.contains(part), "{part} is missing in {log}");
    }
}

#[test]
fn without_real_secrets_it_does_not_start_and_leaves_nothing_behind() {
    let folder = Folder::new();
    let credentials = json!({
        "publishableKey": "pk_test_0b6f", "clientId": "svc_1", "clientSecret": "svcsec_1",
        "webhookSecret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=",
    });
    let all = variables("http://127.0.0.1:1", &credentials);
    let start = |name: &str, value: &str| {
        run(merchant(&folder).arg("--json").envs(all.clone()).env(name, value))
    };
    for (name, value, told) in [
        (
            "SVC_WEBHOOK_SECRET",
            "",
            "SVC_WEBHOOK_SECRET is empty; svc demo and svc partner create print it",
        ),
        ("SVC_WEBHOOK_SECRET", "  ", "SVC_WEBHOOK_SECRET is empty"),
        ("SVC_WEBHOOK_SECRET", "change-me", "SVC_WEBHOOK_SECRET is no webhook secret"),
        ("SVC_WEBHOOK_SECRET_PREVIOUS", "change-me", "SVC_WEBHOOK_SECRET_PREVIOUS is no"),
        ("SVC_PUBLISHABLE_KEY", "", "SVC_PUBLISHABLE_KEY is empty"),
        ("SVC_PUBLISHABLE_KEY", "pk_live_0b6f", "SVC_SHOP_URL"),
        ("SVC_CLIENT_ID", "", "SVC_CLIENT_ID is empty"),
        ("SVC_CLIENT_SECRET", "", "SVC_CLIENT_SECRET is empty"),
    ] {
        start(name, value).refused(told);
    }
    assert!(!std::path::Path::new(&folder.path("shop")).exists());
    start("SVC_PUBLISHABLE_KEY", "nonsense").refused("pk_test_ or pk_live_");
    start("SVC_BASE_URL", "nonsense").refused("not \"nonsense\"");
}

#[test]
fn what_it_does_not_know_is_refused() {
    let folder = Folder::new();
    for flag in [&["--nothing"][..], &["--webhook-secret", "x"], &["--listen", "nowhere"]] {
        let ran = run(merchant(&folder).args(flag));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains("--help"), "{ran:?}");
    }
}

#[test]
fn an_address_that_is_taken_is_named() {
    let stage = Stage::set();
    let taken = stage.service.base_url().replace("http://", "");
    let mut command = svc(&["merchant", "--data", &stage.place.folder.path("shop")]);
    let ran: Ran = run(command.args(["--listen", &taken]).envs(stage.variables()));
    ran.refused(&format!("the shop cannot listen on {taken}"));
}

/// As a newcomer copies it: the names are there, and what stays empty counts as not said.
#[test]
fn the_example_of_variables_is_complete_and_empty() {
    let stage = Stage::set();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.env.example");
    let text = std::fs::read_to_string(path).expect("it is there");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let empty: Vec<_> = lines.map(|line| line.split_once('=').expect("NAME=")).collect();
    assert!(empty.iter().all(|(_, value)| value.is_empty()), "{empty:?}");
    for (name, _) in stage.variables() {
        assert!(empty.iter().any(|(known, _)| *known == name), "{name} is missing");
    }
    run(merchant(&stage.place.folder).envs(empty.clone())).refused("SVC_PUBLISHABLE_KEY is empty");
    let mut command = merchant(&stage.place.folder);
    let shop = Shop(Service::start(command.arg("--json").envs(empty).envs(stage.variables())));
    let page = ask(&shop.url(), "GET /", "", "").body;
    let sdk = format!("src=\"{}/sdks/v1/svc.min.js\"", stage.service.base_url());
    assert!(page.contains(&sdk), "{page}");
}
