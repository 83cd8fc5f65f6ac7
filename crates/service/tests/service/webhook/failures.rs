//! Merchants that answer badly, late, without end or not at all.

use std::time::Duration;

use hyper::Response;
use jiff::Timestamp;
use svc_service::domain::Order;
use svc_service::store::{EventFilter, EventState, LEASE_MS};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;
use tokio::sync::mpsc;

use crate::support::*;

on_both_engines! {
    a_merchant_that_hangs_is_left_after_seconds_wherever_it_hangs,
    an_answer_that_breaks_is_a_failure_that_says_so,
    only_a_2xx_is_a_delivery,
    endless_answers_are_judged_by_their_status_and_cut_off,
    an_answer_is_kept_as_it_came_and_no_more_than_its_start,
    a_redirect_is_never_followed,
    a_410_is_tried_on_by_the_hour,
    retry_after_is_honoured_between_once_and_twice_the_delay,
    retry_after_follows_the_schedule_from_attempt_to_attempt,
    a_merchant_that_hangs_delays_nobody_else,
}

/// A merchant of its own for each receiver, with one event that is due.
async fn order_to(delivery: &TestDelivery, url: &str) -> Order {
    let shop = delivery.shop(url).await;
    delivery.paid_order(&shop, "order_1").await
}

async fn a_merchant_that_hangs_is_left_after_seconds_wherever_it_hangs(database: TestDatabase) {
    const NO_ANSWER: &str = "no complete answer within 5 seconds";
    const NO_CONNECTION: &str = "no connection within 3 seconds";
    // Five seconds and what a busy machine adds. Its lease is longer: nobody else has begun to send the event.
    const LEFT_AFTER_MS: i64 = 7_000;
    const { assert!(LEFT_AFTER_MS < LEASE_MS) };
    let full_queue = FullQueue::start().await;
    let silent = Receiver::raw(|stream| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let before_headers = says("").await;
    let in_headers = says("HTTP/1.1 200 OK\r\nX-Half: ").await;
    let between_answers = says("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Wait\r\n\r\n").await;
    let before_body = says("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
    let in_body = says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n").await;
    let dripping = Receiver::raw(|mut stream| async move {
        read_request(&mut stream).await;
        let mut drop_by_drop = tokio::time::interval(Duration::from_millis(50));
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n";
        for byte in head.iter().chain(std::iter::repeat_n(&b'.', 10_000)) {
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
            drop_by_drop.tick().await;
        }
    })
    .await;
    let secured = silent.url().replace("http:", "https:");
    let cases = [
        ("connecting", full_queue.url(), NO_CONNECTION),
        ("in the TLS handshake", secured, NO_ANSWER),
        ("before it reads", silent.url(), NO_ANSWER),
        ("before the headers", before_headers.url(), NO_ANSWER),
        ("in the headers", in_headers.url(), NO_ANSWER),
        ("after a preliminary answer", between_answers.url(), NO_ANSWER),
        ("before the body", before_body.url(), NO_ANSWER),
        ("in the body", in_body.url(), NO_ANSWER),
        ("drop by drop", dripping.url(), NO_ANSWER),
    ];
    let mut delivery = TestDelivery::start(database).await;
    let mut orders = Vec::new();
    for (_, url, _) in &cases {
        orders.push(order_to(&delivery, url).await);
    }
    delivery.drain().await;
    for ((what, _, error), order) in cases.iter().zip(&orders) {
        let attempt = delivery.failed_once(order, what).await;
        assert_eq!((attempt.http_status, attempt.error.as_deref()), (None, Some(*error)), "{what}");
        assert!(attempt.latency_ms < LEFT_AFTER_MS, "{what}: {} ms", attempt.latency_ms);
    }
    assert_eq!(delivery.ended("timeout"), cases.len());
}

async fn an_answer_that_breaks_is_a_failure_that_says_so(database: TestDatabase) {
    let deaf = TcpSocket::new_v4().unwrap();
    deaf.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let nobody = format!("http://{}/hook", deaf.local_addr().unwrap());
    let resetting = resets().await;
    let closing = says_and_closes("").await;
    let garbage = says("\u{1}\u{2} this is not HTTP\r\n\r\n").await;
    let another_protocol = says("SSH-2.0-OpenSSH_9.2\r\n").await;
    let many_headers = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-More: 1\r\n".repeat(150));
    let many_headers = says(many_headers).await;
    let large_header = format!("HTTP/1.1 200 OK\r\nX-Large: {}\r\n\r\n", "x".repeat(40_000));
    let large_header = says(large_header).await;
    let no_length =
        says("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n").await;
    let two_lengths =
        says("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n").await;
    let short = says_and_closes("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").await;
    let bad_chunk =
        says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nlarge\r\nok\r\n").await;
    let cases = [
        ("nobody listens", nobody, "refused", None),
        ("a reset", resetting.url(), "reset", None),
        ("no answer", closing.url(), "connection", None),
        ("garbage", garbage.url(), "invalid HTTP", None),
        ("another protocol", another_protocol.url(), "invalid HTTP", None),
        ("too many headers", many_headers.url(), "too large", None),
        ("a header too large", large_header.url(), "too large", None),
        ("a length beyond numbers", no_length.url(), "invalid content-length", None),
        ("two lengths", two_lengths.url(), "invalid content-length", None),
        ("half a body", short.url(), "the answer broke", Some(200)),
        ("a bad chunk", bad_chunk.url(), "the answer broke", Some(200)),
    ];
    let mut delivery = TestDelivery::start(database).await;
    let mut orders = Vec::new();
    for (_, url, _, _) in &cases {
        orders.push(order_to(&delivery, url).await);
    }
    delivery.drain().await;
    for ((what, _, error, status), order) in cases.iter().zip(&orders) {
        let attempt = delivery.failed_once(order, what).await;
        assert_eq!(attempt.http_status, *status, "{what}");
        let said = attempt.error.unwrap_or_default();
        assert!(said.contains(error), "{what}: {said}");
    }
    assert_eq!((delivery.ended("connect"), delivery.ended("broken")), (1, cases.len() - 1));
}

async fn only_a_2xx_is_a_delivery(database: TestDatabase) {
    let mut cases = Vec::new();
    for good in [200, 201, 202, 203, 205, 206, 207, 226, 299] {
        cases.push((good, true, format!("HTTP/1.1 {good} Fine\r\nContent-Length: 0\r\n\r\n")));
    }
    cases.push((204, true, "HTTP/1.1 204 No Content\r\n\r\n".to_owned()));
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    cases.push((200, true, format!("{early}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")));
    cases.push((101, false, "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned()));
    cases.push((304, false, "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned()));
    for bad in [300, 400, 401, 403, 404, 409, 413, 422, 429, 500, 501, 502, 503, 504, 599, 999] {
        cases.push((bad, false, format!("HTTP/1.1 {bad} No\r\nContent-Length: 2\r\n\r\nno")));
    }
    let mut delivery = TestDelivery::start(database).await;
    let mut sent = Vec::new();
    for (status, good, answer) in cases {
        let receiver = says(answer).await;
        let order = order_to(&delivery, &receiver.url()).await;
        sent.push((status, good, receiver, order));
    }
    delivery.drain().await;
    for (status, good, receiver, order) in sent {
        let what = status.to_string();
        let attempt = match good {
            true => delivery.delivered_at_once(&order, &what).await,
            false => delivery.failed_once(&order, &what).await,
        };
        assert_eq!(attempt.http_status, Some(status));
        assert_eq!(receiver.connections(), 1, "{what}");
    }
}

async fn endless_answers_are_judged_by_their_status_and_cut_off(database: TestDatabase) {
    const AT_ONCE: usize = 100;
    // What the kernel holds between two sockets may have been written, but was not read.
    const WRITTEN_MAX: usize = 16 * 1_024 * 1_024;
    let (told, mut written) = mpsc::unbounded_channel();
    let heads = [
        "HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000\r\n",
        "HTTP/1.1 500 Oh\r\nContent-Length: 1099511627776\r\n\r\n",
    ];
    let mut delivery = TestDelivery::start(database).await;
    let mut sent = Vec::new();
    for head in heads.into_iter().cycle().take(AT_ONCE) {
        let told = told.clone();
        let receiver = Receiver::raw(move |mut stream| {
            let told = told.clone();
            async move {
                read_request(&mut stream).await;
                stream.write_all(head.as_bytes()).await.unwrap();
                let mut bytes = 0;
                while stream.write_all(&[b'x'; 8_192]).await.is_ok() {
                    bytes += 8_192;
                }
                told.send(bytes).unwrap();
            }
        })
        .await;
        let order = order_to(&delivery, &receiver.url()).await;
        sent.push((head, receiver, order));
    }
    delivery.drain().await;
    for (head, _, order) in &sent {
        let attempt = match head.contains("200") {
            true => delivery.delivered_at_once(order, head).await,
            false => delivery.failed_once(order, head).await,
        };
        assert_eq!(attempt.answer_start, [b'x'; 512]);
        assert!(attempt.latency_ms < 10_000, "{head}: {} ms", attempt.latency_ms);
    }
    for _ in sent {
        // Comes when the connection was closed at our end.
        let written = written.recv().await.unwrap();
        assert!(written < WRITTEN_MAX, "{written} bytes were taken");
    }
}

async fn an_answer_is_kept_as_it_came_and_no_more_than_its_start(database: TestDatabase) {
    let packed: Vec<_> = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3].into_iter().chain(0..=255).collect();
    let long: Vec<_> = (0..2_000u32).map(|number| (number % 251) as u8).collect();
    let cases = [("gzip", packed), ("identity", long), ("br", b"short".to_vec()), ("", vec![])];
    let mut delivery = TestDelivery::start(database).await;
    for (number, (encoding, body)) in (1..).zip(cases) {
        let kept = body[..body.len().min(512)].to_vec();
        let receiver = Receiver::start(move |_| {
            let answer = Response::builder().status(200).header("content-encoding", encoding);
            answer.body(body.clone().into()).unwrap()
        })
        .await;
        let order = order_to(&delivery, &receiver.url()).await;
        delivery.drain().await;
        let attempt = delivery.delivered_at_once(&order, encoding).await;
        assert_eq!(attempt.answer_start, kept, "{encoding}");
        assert_eq!(delivery.ended("delivered"), number);
    }
}

async fn a_redirect_is_never_followed(database: TestDatabase) {
    let elsewhere = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start(database).await;
    let mut sent = Vec::new();
    for status in [301, 302, 303, 307, 308] {
        for target in [elsewhere.url(), "http://169.254.169.254/latest/meta-data".to_owned()] {
            let receiver = Receiver::start(move |_| {
                let answer = Response::builder().status(status).header("location", &target);
                answer.body("moved".into()).unwrap()
            })
            .await;
            let order = order_to(&delivery, &receiver.url()).await;
            sent.push((status, receiver, order));
        }
    }
    // In a circle.
    let itself = Receiver::start(|request| {
        let answer = Response::builder().status(302).header("location", request.path.as_str());
        answer.body("moved".into()).unwrap()
    })
    .await;
    let order = order_to(&delivery, &itself.url()).await;
    sent.push((302, itself, order));
    delivery.drain().await;
    for (status, receiver, order) in &sent {
        let attempt = delivery.failed_once(order, "a redirect").await;
        assert_eq!(attempt.http_status, Some(*status));
        let error = attempt.error.unwrap();
        assert_eq!(error, "redirects are not followed: give the final URL");
        assert_eq!(attempt.answer_start, b"moved");
        assert_eq!(receiver.requests().len(), 1);
    }
    assert_eq!(elsewhere.connections(), 0);
    assert_eq!(delivery.ended("status"), sent.len());
}

async fn a_410_is_tried_on_by_the_hour(database: TestDatabase) {
    let receiver = Receiver::start(|request| {
        let status = if request.header("x-svc-delivery-attempt") == "9" { 200 } else { 410 };
        Response::builder().status(status).body("gone".into()).unwrap()
    })
    .await;
    let mut delivery = TestDelivery::start(database).await;
    let order = order_to(&delivery, &receiver.url()).await;
    delivery.drain().await;
    let undelivered = EventFilter { state: Some(EventState::Queued), ..EventFilter::default() };
    assert_eq!(delivery.app.store.events(undelivered, 10).await.unwrap().len(), 1);
    while delivery.step().await {}
    let event = delivery.event(&order).await;
    assert_eq!((event.state, event.attempts), (EventState::Delivered, 9));
    let attempts = delivery.attempts(&order).await;
    for gone in &attempts[..8] {
        assert_eq!(gone.http_status, Some(410));
        let error = gone.error.as_deref().unwrap();
        assert_eq!(
            error,
            "410 does not end the delivery of a payment: it is tried every few hours"
        );
    }
    let waits = attempts.windows(2).map(|pair| pair[1].at.duration_since(pair[0].at).as_secs());
    assert!(waits.into_iter().all(|seconds| seconds >= 3_600 * 8 / 10), "{attempts:?}");
    assert_eq!(delivery.ended("gone"), 8);
}

/// As HTTP writes a time.
fn http_date(at: Timestamp) -> String {
    jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&at).unwrap()
}

async fn retry_after_is_honoured_between_once_and_twice_the_delay(database: TestDatabase) {
    // What is asked for, and the wait in milliseconds that comes of it: from, to.
    let cases = [
        (None, 4_000, 6_000),
        (Some("7".to_owned()), 7_000, 7_000),
        (Some("9".to_owned()), 9_000, 9_000),
        (Some("0".to_owned()), 5_000, 6_000),
        (Some("1".to_owned()), 5_000, 6_000),
        (Some("3600".to_owned()), 10_000, 10_000),
        (Some("18446744073709551615".to_owned()), 10_000, 10_000),
        (Some(http_date(at(8_000))), 8_000, 8_000),
        (Some(http_date(at(2_000))), 5_000, 6_000),
        (Some(http_date(at(86_400_000))), 10_000, 10_000),
        (Some(http_date(at(-86_400_000))), 4_000, 6_000),
        (Some("in a while".to_owned()), 4_000, 6_000),
        (Some("-1".to_owned()), 4_000, 6_000),
    ];
    let mut delivery = TestDelivery::start(database).await;
    let mut sent = Vec::new();
    for status in [500, 429, 503] {
        for (asked, from, to) in cases.clone() {
            let header = asked.clone();
            let receiver = Receiver::start(move |_| {
                let mut answer = Response::builder().status(status);
                if let Some(header) = &header {
                    answer = answer.header("retry-after", header);
                }
                answer.body("later".into()).unwrap()
            })
            .await;
            let order = order_to(&delivery, &receiver.url()).await;
            sent.push((status, asked, from..=to, receiver, order));
        }
    }
    delivery.drain().await;
    for (status, asked, expected, _receiver, order) in &sent {
        let event = delivery.event(order).await;
        assert_eq!((event.state, event.attempts), (EventState::Queued, 1));
        let attempts = delivery.attempts(order).await;
        assert_eq!(attempts[0].http_status, Some(*status));
        assert_eq!(attempts[0].answer_start, b"later");
        let wait_ms = event.next_attempt_at.as_millisecond() - at(0).as_millisecond();
        assert!(expected.contains(&wait_ms), "{status} {asked:?}: {wait_ms} ms");
    }
    assert_eq!(delivery.ended("status"), sent.len());
}

async fn retry_after_follows_the_schedule_from_attempt_to_attempt(database: TestDatabase) {
    let receiver = Receiver::start(|_| {
        let answer = Response::builder().status(503).header("retry-after", "45");
        answer.body("busy".into()).unwrap()
    })
    .await;
    let mut delivery = TestDelivery::start(database).await;
    let order = order_to(&delivery, &receiver.url()).await;
    // The delays of the schedule are 5, 30 and 120 seconds; before 120 the jitter may have a say.
    for expected_ms in [10_000..=10_000, 45_000..=45_000, 120_000..=144_000] {
        delivery.step().await;
        let due = delivery.event(&order).await.next_attempt_at;
        let wait_ms = due.duration_since(delivery.app.clock.now()).as_millis();
        assert!(expected_ms.contains(&wait_ms), "{wait_ms} ms, not {expected_ms:?}");
    }
}

async fn a_merchant_that_hangs_delays_nobody_else(database: TestDatabase) {
    const ORDERS: usize = 40;
    // What a destination nobody knows may hold.
    const HELD: usize = 4;
    let mut hanging = Gate::start().await;
    let quick = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start(database).await;
    let (slow_shop, quick_shop) =
        (delivery.shop(&hanging.receiver.url()).await, delivery.shop(&quick.url()).await);
    for number in 0..ORDERS {
        delivery.paid_order(&slow_shop, &format!("slow_{number}")).await;
        delivery.paid_order(&quick_shop, &format!("quick_{number}")).await;
    }
    let app = delivery.app.clone();
    let draining = tokio::spawn(async move {
        delivery.drain().await;
        delivery
    });
    hanging.wait_for(HELD).await;
    quick.wait_for(ORDERS).await;
    let delivered = EventFilter { state: Some(EventState::Delivered), ..EventFilter::default() };
    let told = async || app.store.events(delivered.clone(), 2 * ORDERS).await.unwrap().len();
    patiently(async { while told().await < ORDERS {} }).await;
    // Not one of the first was answered, and no more than its share is held by it.
    assert_eq!(hanging.came(), HELD);
    assert!(!draining.is_finished());
    hanging.answer(ORDERS, 200);
    let delivery = draining.await.unwrap();
    assert_eq!(hanging.came(), ORDERS);
    assert_eq!((quick.requests().len(), delivery.ended("delivered")), (ORDERS, 2 * ORDERS));
}
