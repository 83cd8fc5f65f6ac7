//! POST /api/svc/webhook: every row of what a handler must do.

use std::sync::Barrier;

use crate::support::{PREVIOUS, SECRET, TestShop, event, event_of, sign};

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
}

#[test]
fn nothing_moves_an_order_that_has_ended() {
    for (end, stock) in [("CON", 499), ("CAN", 500)] {
        let shop = TestShop::open();
        let id = shop.order();
        shop.webhook(&event(&id, end));
        for status in ["PEN", "CON", "CAN"] {
            assert_eq!(shop.webhook(&event(&id, status)).status, 200);
            assert_eq!((shop.status(&id).as_str(), shop.stock()), (end, stock), "{status}");
        }
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
    assert_eq!(shop.happened(&id, "fulfilled"), 1);
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
        sign("whsec_of_another_application_altogether", body.as_bytes()),
    ];
    for signature in &wrong {
        assert_eq!(shop.webhook_signed(body.as_bytes(), signature).status, 401, "{signature}");
    }
    assert_eq!(shop.call("POST /api/svc/webhook", &[], body.as_bytes()).status, 401);
    assert_eq!(shop.webhook_signed(format!("{body}\n").as_bytes(), &right).status, 401);
    assert_eq!(shop.webhook_signed(b"not json", &right).status, 401);
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
    let odd =
        [event(&id, "REF"), event(&id, "con"), event(&id, "CON").replace("payment\"", "payout\"")];
    for body in odd {
        assert_eq!(shop.webhook(&body).status, 200, "{body}");
    }
    assert_eq!(shop.status(&id), "PEN");
}

#[test]
fn an_order_of_somebody_else_is_answered_and_nothing_happens() {
    let shop = TestShop::open();
    assert_eq!(shop.webhook(&event("order_unknown", "CON")).status, 200);
    assert_eq!(shop.stock(), 500);
}

#[test]
fn another_amount_or_reference_is_confirmed_and_held() {
    let shop = TestShop::open();
    for (reference, amount) in [("REF1", 14_999), ("REF2", 15_000)] {
        let id = shop.order();
        assert_eq!(shop.webhook(&event_of(&id, "CON", reference, amount)).status, 200);
        assert_eq!(shop.status(&id), "CON");
        assert_eq!(shop.happened(&id, "held"), 1);
        let waiting = "select count(*) from to_fulfil where external_transaction_id = ?1";
        let waits: i64 = shop.database().query_row(waiting, [&id], |row| row.get(0)).unwrap();
        assert_eq!((waits, shop.happened(&id, "fulfilled")), (0, 0));
    }
}

#[test]
fn the_previous_secret_is_good_while_it_is_given() {
    let shop = TestShop::open();
    let id = shop.order();
    let body = event(&id, "CON");
    assert_eq!(shop.webhook_signed(body.as_bytes(), &sign(PREVIOUS, body.as_bytes())).status, 200);
    assert_eq!(shop.status(&id), "CON");
}

#[test]
fn a_recording_is_not_played_back_later() {
    let shop = TestShop::open();
    let id = shop.order();
    let body = event(&id, "CON");
    let signature = sign(SECRET, body.as_bytes());
    let headers =
        [("x-svc-content-token", signature.as_str()), ("webhook-timestamp", "1700000000")];
    assert_eq!(shop.call("POST /api/svc/webhook", &headers, body.as_bytes()).status, 401);
    assert_eq!(shop.status(&id), "PEN");
}

#[test]
fn a_megabyte_is_too_much_and_other_methods_are_none() {
    let shop = TestShop::open();
    let large = vec![b'x'; 1024 * 1024];
    assert!(matches!(shop.webhook_signed(&large, &"0".repeat(64)).status, 413 | 0));
    for method in ["GET", "PUT"] {
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
