//! What a shop that opens asks the service, and what its log says if that fails.

use std::fmt::Write;
use std::sync::{Mutex, Once};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::service::FakeService;
use crate::support::TestShop;

/// What all shops of this process warned of.
static LOG: Mutex<String> = Mutex::new(String::new());

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        *LOG.lock().unwrap() += &format!("{}\n", line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Listener).unwrap());
}

/// What the shops of this service warned of, once there is something.
fn warned_of(shop: &TestShop, service: &str) -> String {
    let of_it = || {
        let log = LOG.lock().unwrap();
        log.lines().filter(|line| line.contains(service)).map(str::to_owned).collect::<String>()
    };
    shop.wait_until("the warning", |_| !of_it().is_empty());
    of_it()
}

#[test]
fn a_shop_with_wrong_credentials_says_so_when_it_opens_and_not_when_somebody_buys() {
    listen();
    let service = FakeService::start();
    *service.refusing.lock().unwrap() = true;
    let shop = TestShop::open_with(|settings| settings.base_url = service.url());
    let warning = warned_of(&shop, &service.url());
    for part in ["nobody can pay", "SVC_CLIENT_SECRET", "SVC_BASE_URL", "(422 invalid_body"] {
        assert!(warning.contains(part), "{part} is missing in {warning}");
    }
    assert_eq!(shop.call("GET /", &[], b"").status, 200, "it is open all the same");
    // In one language, whatever payers read.
    assert_eq!(*service.languages.lock().unwrap(), ["en".to_owned()].into());
}

#[test]
fn a_service_that_is_away_when_the_shop_opens_may_come_later() {
    listen();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let shop = TestShop::open_with(|settings| settings.base_url.clone_from(&nobody));
    assert!(warned_of(&shop, &nobody).contains("does not answer"));
    assert_eq!(shop.call("GET /", &[], b"").status, 200);
}

#[test]
fn a_shop_that_is_known_warns_of_nothing() {
    listen();
    let shop = TestShop::open();
    shop.order();
    let log = LOG.lock().unwrap();
    assert!(!log.contains(&shop.service.url()), "{log}");
    assert_eq!(*shop.service.greeted.lock().unwrap(), 1);
}
