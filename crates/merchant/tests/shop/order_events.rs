//! GET /api/svc/order/:externalTransactionId/events: an open page hears of everything, within limits.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{PATIENCE, TestShop, event};

/// An open page's connection.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(shop: &TestShop, id: &str) -> Self {
        let mut stream = TcpStream::connect(shop.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET /api/svc/order/{id}/events HTTP/1.1\r\nhost: shop\r\n\r\n").unwrap();
        let mut stream = Self(BufReader::new(stream));
        let status = stream.line().unwrap();
        assert_eq!(status, "HTTP/1.1 200 OK");
        let head: Vec<_> =
            std::iter::from_fn(|| stream.line()).take_while(|l| !l.is_empty()).collect();
        assert!(head.iter().any(|line| line == "content-type: text/event-stream"), "{head:?}");
        assert!(head.iter().any(|line| line == "cache-control: no-store"), "{head:?}");
        stream
    }

    /// The next line without its end; nothing once the connection is closed.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.0.read_line(&mut line).unwrap();
        (count > 0).then(|| line.trim_end().to_owned())
    }

    /// Skips to the next line that begins so; nothing if the stream ends before.
    fn next(&mut self, beginning: &str) -> Option<String> {
        let start = now();
        loop {
            assert!(start.elapsed() < PATIENCE, "{beginning} does not come");
            let line = self.line()?;
            // What a chunk of nothing looks like: the end.
            if line == "0" {
                return None;
            }
            if let Some(rest) = line.strip_prefix(beginning) {
                return Some(rest.to_owned());
            }
        }
    }

    fn event(&mut self) -> Value {
        serde_json::from_str(&self.next("data: ").expect("an event comes")).unwrap()
    }

    fn ended(&mut self) {
        assert_eq!(self.next("data: "), None);
    }
}

#[test]
fn a_page_hears_of_its_order_at_once_and_until_it_is_over() {
    // Nothing but the change itself makes the stream look.
    let hour = Duration::from_secs(3600);
    let shop = TestShop::open_with(|settings| settings.limits.stream_heartbeat = hour);
    let (id, other) = (shop.order(), shop.order());
    let mut stream = Stream::open(&shop, &id);
    let told = |status: &str, happenings: i64, over: bool| json!({ "status": status, "happenings": happenings, "over": over });
    // What it missed between being made and listening.
    assert_eq!(stream.event(), told("PEN", 2, false));
    assert_eq!(shop.webhook(&event(&other, "CAN")).status, 200);
    assert_eq!(shop.webhook(&event(&id, "PEN")).status, 200);
    assert_eq!(stream.event(), told("PEN", 3, false), "nothing of other orders");
    assert_eq!(shop.webhook(&event(&id, "CON")).status, 200);
    let mut last = stream.event();
    if last["over"] == false {
        assert_eq!(last, told("CON", 4, false));
        last = stream.event();
    }
    assert_eq!(last, told("CON", 5, true));
    stream.ended();
    // A page that comes back is told not to.
    let again = shop.call(&format!("GET /api/svc/order/{id}/events"), &[], b"");
    assert_eq!((again.status, again.text.as_str()), (204, ""));
}

#[test]
fn an_order_nobody_made_has_no_stream() {
    let shop = TestShop::open();
    let answer = shop.call("GET /api/svc/order/order_nothing/events", &[], b"");
    assert_eq!((answer.status, &answer.json()["error"]), (404, &"order_not_found".into()));
}

#[test]
fn there_are_so_many_streams_and_a_page_that_leaves_makes_room() {
    let shop = TestShop::open_with(|settings| settings.limits.streams_max = 2);
    let id = shop.order();
    let (mut first, second) = (Stream::open(&shop, &id), Stream::open(&shop, &id));
    first.event();
    assert_eq!(status_line(&shop, &id), "HTTP/1.1 503 Service Unavailable");
    drop(second);
    shop.wait_until("the room", |shop| status_line(shop, &id) == "HTTP/1.1 200 OK");
}

/// How one more page would be answered.
fn status_line(shop: &TestShop, id: &str) -> String {
    let mut stream = TcpStream::connect(shop.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /api/svc/order/{id}/events HTTP/1.1\r\nhost: shop\r\n\r\n").unwrap();
    Stream(BufReader::new(stream)).line().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test may look at its watch")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn a_silent_stream_shows_that_it_lives() {
    let soon = Duration::from_millis(20);
    let shop = TestShop::open_with(|settings| settings.limits.stream_heartbeat = soon);
    let id = shop.order();
    let mut stream = Stream::open(&shop, &id);
    stream.event();
    assert!(stream.next(": still here").is_some(), "a sign of life comes");
}

#[test]
fn a_stream_ends_when_its_time_is_up() {
    let shop = TestShop::open_with(|settings| {
        settings.limits.stream_heartbeat = Duration::from_secs(3600);
        settings.limits.stream_lifetime = Duration::from_millis(20);
    });
    let id = shop.order();
    let mut stream = Stream::open(&shop, &id);
    // On a busy machine its time may be up before the first event is written.
    while stream.next("data: ").is_some() {}
}

#[test]
fn a_shop_that_closes_ends_its_streams() {
    let mut shop = TestShop::open();
    let id = shop.order();
    let mut stream = Stream::open(&shop, &id);
    stream.event();
    let start = now();
    shop.close();
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "it waited for a page: {:?}",
        start.elapsed()
    );
    stream.ended();
}
