//! POST /api/svc/webhook: every row of what a handler must do, and of the orders' table.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, PREVIOUS, SECRET, TestShop, event, event_of, sign};

#[test]
fn a_confirmed_order_is_fulfilled_once_and_answered_as_the_contract_says() {
    let shop = TestShop::open();
    let id = shop.order();
    let answer = shop.webhook(&event(&id, "CON"));
    assert_eq!((answer.status, answer.text.as_str()), (200, r#"{"received":true}"#));
    assert_eq!(shop.status(&id), "CON");
    shop.wait_until("the parcel", |shop| shop.happened(&id, "fulfilled") == 1);
    assert_eq!(shop.stock(), 499);
}

/// Five hundred of them would keep the webhooks out.
#[test]
fn who_connects_and_says_nothing_is_left() {
    let shop = TestShop::open();
    let silent = ["", "PRI * HTTP/2.0\r\n"].map(|said| {
        let mut stream = TcpStream::connect(shop.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        (said, stream)
    });
    for (said, mut stream) in silent {
        let heard = stream.read_to_end(&mut Vec::new());
        // Cut off or hung up: it is over either way, within our patience.
        let over = heard.is_ok() || heard.is_err_and(|fault| fault.kind() != ErrorKind::WouldBlock);
        assert!(over, "{said:?} is still listened to");
    }
}

#[test]
fn a_cancelled_order_gives_its_stock_back() {
    let shop = TestShop::open();
    let id = shop.order();
    assert_eq!(shop.stock(), 499);
    assert_eq!(shop.webhook(&event(&id, "CAN")).status, 200);
    assert_eq!((shop.status(&id).as_str(), shop.stock()), ("CAN", 500));
}

#[test]
fn a_pending_order_stays_pending() {
    let shop = TestShop::open();
    let id = shop.order();
    assert_eq!(shop.webhook(&event(&id, "PEN")).status, 200);
    assert_eq!((shop.status(&id).as_str(), shop.stock()), ("PEN", 499));
    assert!(!shop.waits_to_be_sent(&id));
    assert_eq!(shop.happened(&id, "fulfilled"), 0);
}

#[test]
fn nothing_moves_an_order_that_has_ended() {
    for (end, stock) in [("CON", 499), ("CAN", 500)] {
        let shop = TestShop::open();
        let id = shop.order();
        shop.webhook(&event(&id, end));
        let sent = i64::from(end == "CON");
        shop.wait_until("the parcel", |shop| shop.happened(&id, "fulfilled") == sent);
        for status in ["PEN", "CON", "CAN"] {
            assert_eq!(shop.webhook(&event(&id, status)).status, 200);
            assert_eq!((shop.status(&id).as_str(), shop.stock()), (end, stock), "{status}");
            assert!(!shop.waits_to_be_sent(&id), "{status} after {end}");
        }
        assert_eq!(shop.happened(&id, "fulfilled"), sent);
    }
}

#[test]
fn a_hundred_confirmations_at_once_fulfil_once() {
    const CALLS: usize = 100;
    let shop = TestShop::open();
    let id = shop.order();
    let (body, gate) = (event(&id, "CON"), Barrier::new(CALLS));
    std::thread::scope(|scope| {
        for _ in 0..CALLS {
            scope.spawn(|| {
                gate.wait();
                assert_eq!(shop.webhook(&body).status, 200);
            });
        }
    });
    shop.wait_until("the parcel", |shop| shop.happened(&id, "fulfilled") > 0);
    // Nothing is left that could send a second one.
    assert!(!shop.waits_to_be_sent(&id));
    assert_eq!((shop.happened(&id, "fulfilled"), shop.stock()), (1, 499));
    assert_eq!(shop.happened(&id, "webhook"), 100, "each was taken");
}

#[test]
fn every_other_signature_is_401_and_changes_nothing() {
    let shop = TestShop::open();
    let id = shop.order();
    let body = event(&id, "CON");
    let right = sign(SECRET, body.as_bytes());
    let wrong = [
        String::new(),
        right[..63].to_owned(),
        format!("{right}0"),
        "g".repeat(64),
        right.to_uppercase(),
        format!("sha256={right}"),
        base64(&right),
        sign("whsec_of_another_application_altogether", body.as_bytes()),
    ];
    for signature in &wrong {
        assert_eq!(shop.webhook_signed(body.as_bytes(), signature).status, 401, "{signature}");
    }
    assert_eq!(shop.call("POST /api/svc/webhook", &[], body.as_bytes()).status, 401);
    let cheaper = body.replace("15000", "15001");
    for changed in [&cheaper, &format!("{body}\n"), "not json", ""] {
        assert_eq!(shop.webhook_signed(changed.as_bytes(), &right).status, 401, "{changed}");
    }
    assert_eq!(shop.status(&id), "PEN");
    assert_eq!(shop.happened(&id, "webhook"), 0);
}

#[test]
fn what_is_signed_but_no_event_is_422_and_what_is_of_later_days_200() {
    let shop = TestShop::open();
    let id = shop.order();
    for body in ["", "not json", "{}", r#"{"event":"payment"}"#] {
        assert_eq!(shop.webhook(body).status, 422, "{body}");
    }
    assert_eq!((shop.status(&id).as_str(), shop.happened(&id, "webhook")), ("PEN", 0));
    let odd = [
        event(&id, "REF"),
        event(&id, "con"),
        event(&id, "CON").replace("\"CON\"", "null"),
        event(&id, "CON").replace("payment\"", "payout\""),
    ];
    for body in odd {
        assert_eq!(shop.webhook(&body).status, 200, "{body}");
    }
    assert_eq!(shop.status(&id), "PEN");
}

#[test]
fn an_order_of_somebody_else_is_answered_and_nothing_happens() {
    let shop = TestShop::open();
    for status in ["PEN", "CON", "CAN"] {
        let answer = shop.webhook(&event("order_unknown", status));
        assert_eq!((answer.status, answer.text.as_str()), (200, r#"{"received":true}"#));
    }
    let rows = "select (select count(*) from orders) + (select count(*) from story)
                + (select count(*) from to_fulfil)";
    let rows: i64 = shop.database().query_row(rows, [], |row| row.get(0)).unwrap();
    assert_eq!((rows, shop.stock()), (0, 500));
}

#[test]
fn what_does_not_say_what_was_paid_is_confirmed_and_held() {
    let shop = TestShop::open();
    for more in ["", r#","amount":15000.5,"referenceNumber":"REF1""#, r#","amount":15000"#] {
        let id = shop.order();
        let data = format!(r#"{{"externalTransactionId":"{id}","paymentStatus":"CON"{more}}}"#);
        let body = format!(r#"{{"event":"payment","data":{data}}}"#);
        assert_eq!(shop.webhook(&body).status, 200, "{body}");
        assert_eq!((shop.status(&id).as_str(), shop.happened(&id, "held")), ("CON", 1), "{body}");
        assert_eq!(shop.webhook(&body.replace(&id, "order_unknown")).status, 200, "{body}");
    }
}

#[test]
fn another_amount_or_reference_is_confirmed_and_held() {
    let shop = TestShop::open();
    for (reference, amount) in [("REF1", 14_999), ("REF2", 15_000)] {
        let id = shop.order();
        assert_eq!(shop.webhook(&event_of(&id, "CON", reference, amount)).status, 200);
        assert_eq!(shop.status(&id), "CON");
        assert_eq!(shop.happened(&id, "held"), 1);
        assert!(!shop.waits_to_be_sent(&id));
        assert_eq!(shop.happened(&id, "fulfilled"), 0);
        // The right event after it does not set it free.
        assert_eq!(shop.webhook(&event(&id, "CON")).status, 200);
        assert!(!shop.waits_to_be_sent(&id));
        let page = shop.call(&format!("GET /success?lang=en&orderId={id}"), &[], b"");
        assert!(
            page.text.contains("We received your payment, but have to check it"),
            "the payer is told: {}",
            page.text
        );
    }
}

#[test]
fn the_previous_secret_is_good_while_it_is_given_and_no_longer() {
    let given = TestShop::open();
    let taken_away = TestShop::open_with(|settings| settings.webhook_secret_previous = None);
    for (shop, answer, status) in [(&given, 200, "CON"), (&taken_away, 401, "PEN")] {
        let id = shop.order();
        let body = event(&id, "CON");
        let by_previous = sign(PREVIOUS, body.as_bytes());
        assert_eq!(shop.webhook_signed(body.as_bytes(), &by_previous).status, answer);
        assert_eq!(shop.status(&id), status);
    }
}

#[test]
fn a_megabyte_is_refused_before_it_is_read() {
    let shop = TestShop::open();
    // Announced and never sent: whoever waited for it would not answer.
    let mut start = [0; 12];
    for (token, status) in [(&*"0".repeat(64), b"HTTP/1.1 413"), ("", b"HTTP/1.1 401")] {
        let mut stream = TcpStream::connect(shop.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "POST /api/svc/webhook HTTP/1.1\r\nhost: shop\r\nx-svc-content-token: {token}\r\n\
             content-length: 1048576\r\n\r\n"
        )
        .unwrap();
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, status, "{token}");
    }
    // Rightly signed and without a length: counted, and never verified.
    let large = vec![b' '; 64 * 1024 + 1];
    let mut stream = TcpStream::connect(shop.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let signature = sign(SECRET, &large);
    write!(
        stream,
        "POST /api/svc/webhook HTTP/1.1\r\nhost: shop\r\nx-svc-content-token: {signature}\r\n\
         transfer-encoding: chunked\r\n\r\n{:x}\r\n",
        large.len()
    )
    .unwrap();
    stream.write_all(&large).unwrap();
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 413");
    // As much as is allowed is read: 422, because it is no event.
    assert_eq!(shop.webhook(&" ".repeat(64 * 1024)).status, 422);
}

#[test]
fn other_methods_are_none() {
    let shop = TestShop::open();
    for method in ["GET", "PUT", "DELETE", "PATCH"] {
        assert_eq!(shop.call(&format!("{method} /api/svc/webhook"), &[], b"").status, 405);
    }
}

#[test]
fn a_database_that_is_away_is_503_so_that_the_event_comes_again() {
    let shop = TestShop::open();
    let id = shop.order();
    shop.database().execute_batch("alter table orders rename to gone").unwrap();
    assert_eq!(shop.webhook(&event(&id, "CON")).status, 503);
    shop.database().execute_batch("alter table gone rename to orders").unwrap();
    assert_eq!(shop.webhook(&event(&id, "CON")).status, 200);
}

#[test]
fn a_database_that_somebody_holds_is_503_well_within_the_five_seconds_for_everybody() {
    let shop = TestShop::open();
    let id = shop.order();
    let holder = shop.database();
    holder.execute_batch("begin immediate").unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test may look at its watch")]
    let start = Instant::now();
    std::thread::scope(|scope| {
        let deliver = || shop.webhook(&event(&id, "CON")).status;
        let deliveries: Vec<_> = (0..8).map(|_| scope.spawn(deliver)).collect();
        for delivery in deliveries {
            assert_eq!(delivery.join().unwrap(), 503);
        }
    });
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    holder.execute_batch("rollback").unwrap();
    assert_eq!(shop.status(&id), "PEN");
    assert_eq!(shop.webhook(&event(&id, "CON")).status, 200);
    shop.wait_until("the parcel", |shop| shop.happened(&id, "fulfilled") == 1);
}

#[test]
fn one_parcel_that_cannot_be_sent_does_not_hold_up_the_others() {
    let shop = TestShop::open();
    let (stuck, other) = (shop.order(), shop.order());
    let trigger = format!(
        "create trigger stuck before update of fulfilled_at_ms on orders
         when new.external_transaction_id = '{stuck}'
         begin select raise(abort, 'the van is broken'); end"
    );
    shop.database().execute_batch(&trigger).unwrap();
    for id in [&stuck, &other] {
        assert_eq!(shop.webhook(&event(id, "CON")).status, 200);
    }
    shop.wait_until("the other parcel", |shop| shop.happened(&other, "fulfilled") == 1);
    assert_eq!((shop.happened(&stuck, "fulfilled"), shop.waits_to_be_sent(&stuck)), (0, true));
    shop.database().execute_batch("drop trigger stuck").unwrap();
    shop.wait_until("the parcel", |shop| shop.happened(&stuck, "fulfilled") == 1);
}

#[test]
fn what_was_answered_but_not_sent_is_sent_by_the_next_life() {
    let mut shop = TestShop::open();
    let id = shop.order();
    // As if the process had ended between the answer and the parcel.
    let db = shop.database();
    db.execute("update orders set status = 'CON' where external_transaction_id = ?1", [&id])
        .unwrap();
    db.execute("insert into to_fulfil (external_transaction_id) values (?1)", [&id]).unwrap();
    drop(db);
    shop.reopen();
    shop.wait_until("the parcel", |shop| shop.happened(&id, "fulfilled") == 1);
}

fn base64(digest: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes = hex::decode(digest).unwrap();
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let letter = |six: &[u8]| {
        let bits = format!("{:0<6}", String::from_utf8_lossy(six));
        char::from(LETTERS[usize::from_str_radix(&bits, 2).unwrap()])
    };
    bits.as_bytes().chunks(6).map(letter).chain(['=']).collect()
}
