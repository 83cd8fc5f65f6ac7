//! `svc listen`: events of a real service reach a handler it knows nothing of, each once, none skipped.

use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::support::merchant::Merchant;
use crate::support::receiver::{Receiver, content_token, order, pay};
use crate::support::{PATIENCE, Place, Service, run, svc, until};

/// A service with one merchant, whose own endpoint hears everything too.
struct Stage {
    place: Place,
    _service: Service,
    merchant: Merchant,
    credentials: Value,
    endpoint: Receiver,
}

impl Stage {
    fn set() -> Self {
        let place = Place::sqlite();
        let service = place.serve_locally();
        let credentials = place.partner();
        let merchant = Merchant::new(service.base_url(), &credentials);
        let endpoint = Receiver::start(|_| (200, String::new()));
        Self { place, _service: service, merchant, credentials, endpoint }
    }

    fn text(&self, key: &str) -> &str {
        self.credentials[key].as_str().expect("it is text")
    }

    fn paid(&self, id: &str) {
        order(&self.merchant, id, &self.endpoint.url());
        pay(&self.merchant, id);
    }

    fn command(&self, forward_to: &str, more: &[&str]) -> Command {
        let cursor = self.place.folder.path("cursor.json");
        let mut command = svc(&["listen", "--json", "--forward-to", forward_to]);
        command
            .args(["--cursor", &cursor, "--server", &self.merchant.base_url])
            .args(more)
            .env("SVC_PUBLISHABLE_KEY", self.text("publishableKey"))
            .env("SVC_CLIENT_ID", self.text("clientId"))
            .env("SVC_CLIENT_SECRET", self.text("clientSecret"))
            .env("SVC_WEBHOOK_SECRET", self.text("webhookSecret"));
        command
    }

    /// It is ready when it has remembered where it begins.
    fn listen(&self, forward_to: &str, more: &[&str]) -> Service {
        Service::spawn(&mut self.command(forward_to, more))
    }
}

fn line(listening: &Service) -> Value {
    let line = listening.lines.recv_timeout(PATIENCE).expect("a line comes");
    serde_json::from_str(&line).unwrap_or_else(|fault| panic!("{fault}: {line}"))
}

#[test]
fn an_event_is_forwarded_as_the_service_would_have_sent_it() {
    let stage = Stage::set();
    let handler = Receiver::start(|_| (200, String::new()));
    let listening = stage.listen(&handler.url(), &["--from-start"]);
    stage.paid("order_1");
    let (real, ours) = (stage.endpoint.wait_for(1), handler.wait_for(1));
    assert_eq!(real[0].body, ours[0].body, "byte for byte");
    for name in ["x-svc-content-token", "webhook-id", "content-type", "user-agent"] {
        assert_eq!(real[0].header(name), ours[0].header(name), "{name}");
    }
    let token = content_token(stage.text("webhookSecret"), &ours[0].body);
    assert_eq!(ours[0].header("x-svc-content-token"), token);
    assert!(ours[0].header("webhook-signature").starts_with("v1,"));
    let told = line(&listening);
    assert_eq!(
        (&told["externalTransactionId"], &told["paymentStatus"]),
        (&"order_1".into(), &"CON".into())
    );
    assert_eq!((&told["httpStatus"], &told["attempt"]), (&200.into(), &1.into()), "{told}");
    let ended = listening.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains(&stage.text("webhookSecret")[6..]), "the secret is told");
}

#[test]
fn after_a_break_what_was_missed_is_forwarded_and_nothing_twice() {
    let stage = Stage::set();
    let handler = Receiver::start(|_| (200, String::new()));
    stage.paid("order_before");
    let first = stage.listen(&handler.url(), &[]);
    // The first time, what is past is left out: the bookmark is made before the next one is paid.
    let cursor = stage.place.folder.path("cursor.json");
    until("the past is marked as read", PATIENCE, || {
        std::fs::read_to_string(&cursor).ok().filter(|text| text.contains("evt_"))
    });
    stage.paid("order_1");
    assert_eq!(line(&first)["externalTransactionId"], "order_1");
    assert_eq!(first.stop().code, Some(0));

    stage.paid("order_2");
    stage.paid("order_3");
    let second = stage.listen(&handler.url(), &[]);
    assert_eq!(line(&second)["externalTransactionId"], "order_2");
    assert_eq!(line(&second)["externalTransactionId"], "order_3");
    assert_eq!(second.stop().code, Some(0));
    let ids: Vec<_> =
        handler.received().iter().map(|one| one.header("webhook-id").to_owned()).collect();
    assert_eq!(ids.len(), 3, "each once: {ids:?}");

    let again = stage.listen(&handler.url(), &["--from-start"]);
    for id in ["order_before", "order_1", "order_2", "order_3"] {
        assert_eq!(line(&again)["externalTransactionId"], id);
    }
}

#[test]
fn a_handler_that_is_down_is_waited_for() {
    let stage = Stage::set();
    // An address that no other test uses: nobody else takes the port meanwhile.
    let socket = TcpListener::bind("127.0.0.7:0").expect("a free port can be had");
    let address = socket.local_addr().expect("it has an address");
    drop(socket);
    let listening = stage.listen(&format!("http://{address}/api/svc/webhook"), &["--from-start"]);
    stage.paid("order_1");
    let down = line(&listening);
    assert_eq!((&down["httpStatus"], &down["attempt"]), (&Value::Null, &1.into()), "{down}");
    let socket = TcpListener::bind(address).expect("nobody took it");
    let handler = Receiver::on(socket, |_| (200, String::new()));
    assert_eq!(handler.wait_for(1)[0].json()["data"]["externalTransactionId"], "order_1");
}

#[test]
fn an_event_that_is_refused_is_sent_again_unless_it_is_to_be_skipped() {
    let stage = Stage::set();
    let count = AtomicUsize::new(0);
    let handler = Receiver::start(move |_| {
        (if count.fetch_add(1, Ordering::SeqCst) < 2 { 500 } else { 200 }, String::new())
    });
    let listening = stage.listen(&handler.url(), &["--from-start"]);
    stage.paid("order_1");
    let told: Vec<_> = (0..3).map(|_| line(&listening)["httpStatus"].clone()).collect();
    assert_eq!(told, [500, 500, 200]);
    let attempts: Vec<_> = handler
        .received()
        .iter()
        .map(|one| one.header("x-svc-delivery-attempt").to_owned())
        .collect();
    assert_eq!(attempts, ["1", "2", "3"]);
    drop(listening);

    stage.paid("order_2");
    let wrong = Receiver::start(|_| (401, String::new()));
    let skipping = stage.listen(&wrong.url(), &["--from-start", "--skip-refused"]);
    for id in ["order_1", "order_2"] {
        let told = line(&skipping);
        assert_eq!(
            (&told["externalTransactionId"], &told["httpStatus"]),
            (&id.into(), &401.into())
        );
    }
    let told = skipping.stop().stderr;
    assert!(told.contains("does it have the same SVC_WEBHOOK_SECRET?"), "{told}");
    assert!(!told.contains("stopping"), "nothing for machines to read: {told}");
}

#[test]
fn what_cannot_work_is_told_at_once() {
    let stage = Stage::set();
    let mut wrong = stage.command("http://127.0.0.1:1/", &[]);
    run(wrong.env("SVC_CLIENT_SECRET", "svcsec_wrong")).refused("401");
    let mut live = stage.command("http://127.0.0.1:1/", &[]);
    run(live.env("SVC_PUBLISHABLE_KEY", "pk_live_0b6f")).refused("for sandboxes");
    let mut alone = stage.command("http://127.0.0.1:1/", &[]);
    run(alone.env_remove("SVC_WEBHOOK_SECRET")).refused("SVC_WEBHOOK_SECRET is not set");
    std::fs::write(stage.place.folder.path("cursor.json"), "nonsense").expect("it can be written");
    run(&mut stage.command("http://127.0.0.1:1/", &[])).refused("is damaged");
}

#[test]
fn a_cursor_is_kept_once_the_service_answered_and_only_where_there_is_a_folder() {
    let stage = Stage::set();
    let listen = |server: &str, cursor: Option<&str>| {
        let mut command = svc(&["listen", "--forward-to", "http://127.0.0.1:1/"]);
        command.args(["--server", server]).env("XDG_STATE_HOME", stage.place.folder.path("state"));
        command.args(cursor.map(|path| ["--cursor", path]).into_iter().flatten());
        for (name, key) in [
            ("SVC_PUBLISHABLE_KEY", "publishableKey"),
            ("SVC_CLIENT_ID", "clientId"),
            ("SVC_CLIENT_SECRET", "clientSecret"),
            ("SVC_WEBHOOK_SECRET", "webhookSecret"),
        ] {
            command.env(name, stage.text(key));
        }
        command
    };
    let is_there = |path: &str| std::fs::exists(stage.place.folder.path(path)).unwrap();
    run(&mut listen("http://127.0.0.1:1", None)).refused("connection refused");
    assert!(!is_there("state"), "nobody was listened to");
    let base_url = &stage.merchant.base_url;
    let missing = stage.place.folder.path("nowhere/cursor.json");
    run(&mut listen(base_url, Some(&missing))).refused("name another --cursor");
    assert!(!is_there("nowhere"));
    let folder = stage.place.folder.path("");
    run(&mut listen(base_url, Some(&folder))).refused("name another --cursor");
    let _listening = Service::spawn(&mut listen(base_url, None));
    until("the default place is made", PATIENCE, || is_there("state/svc").then_some(()));
}
