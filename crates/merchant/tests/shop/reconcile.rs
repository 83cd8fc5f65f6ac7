//! The safety net below the webhooks: which pending orders are asked about, and what becomes of them.

use std::time::Duration;

use crate::support::{TestShop, event};

const AGE: Duration = Duration::from_secs(3 * 60);

/// Looks all the time, by a clock that stands still.
fn restless() -> TestShop {
    TestShop::open_with(|settings| {
        assert_eq!(settings.limits.reconcile_age, AGE, "what real shops wait for");
        settings.limits.reconcile_period = Duration::from_millis(1);
    })
}

/// So many whole rounds went by: this old order is asked about once in each.
fn rounds(shop: &TestShop, old: &str, count: usize) {
    let goal = shop.service.times_queried(old) + count;
    shop.wait_until("the next round", |shop| shop.service.times_queried(old) >= goal);
}

#[test]
fn an_order_is_asked_about_once_it_is_old_enough_and_not_before() {
    let shop = restless();
    let old = shop.order();
    shop.advance(Duration::from_millis(1));
    let young = shop.order();
    shop.advance(AGE);
    rounds(&shop, &old, 3);
    assert_eq!(shop.service.times_queried(&young), 0, "exactly as old as the limit is not older");
    shop.advance(Duration::from_millis(1));
    rounds(&shop, &old, 3);
    assert!(shop.service.times_queried(&young) > 0);
    assert_eq!((shop.status(&old), shop.status(&young)), ("PEN".into(), "PEN".into()));
}

#[test]
fn what_the_service_says_is_done_as_by_a_webhook() {
    let shop = restless();
    let (paid, cancelled) = (shop.order(), shop.order());
    assert_eq!(shop.stock(), 498);
    {
        let mut states = shop.service.states.lock().unwrap();
        states.extend([(paid.clone(), "CON"), (cancelled.clone(), "CAN")]);
    }
    shop.advance(AGE * 2);
    shop.wait_until("the parcel", |shop| shop.happened(&paid, "fulfilled") == 1);
    shop.wait_until("the stock", |shop| shop.stock() == 499);
    assert_eq!((shop.status(&paid), shop.status(&cancelled)), ("CON".into(), "CAN".into()));
    // The webhooks that come after all change nothing.
    for (id, status) in [(&paid, "CON"), (&cancelled, "CAN"), (&cancelled, "CON")] {
        assert_eq!(shop.webhook(&event(id, status)).status, 200);
    }
    assert_eq!((shop.happened(&paid, "fulfilled"), shop.stock()), (1, 499));
}

#[test]
fn an_order_that_ended_is_not_asked_about_any_more() {
    let shop = restless();
    let (old, ended) = (shop.order(), shop.order());
    assert_eq!(shop.webhook(&event(&ended, "CON")).status, 200);
    shop.advance(AGE * 2);
    rounds(&shop, &old, 2);
    assert_eq!(shop.service.times_queried(&ended), 0);
}

/// The process ended between its own row and the call: nobody can ever pay this.
#[test]
fn an_order_the_service_never_heard_of_gives_its_stock_back() {
    let shop = restless();
    let (lost, known) = (shop.order(), shop.order());
    let sql = "update orders set reference_number = null where external_transaction_id = ?1";
    shop.database().execute(sql, [&lost]).unwrap();
    shop.service.unknown.lock().unwrap().extend([lost.clone(), known.clone()]);
    shop.advance(AGE * 2);
    shop.wait_until("the stock", |shop| shop.stock() == 499);
    assert_eq!(shop.status(&lost), "CAN");
    rounds(&shop, &known, 2);
    assert_eq!(shop.status(&known), "PEN", "one that had a reference is for a person");
}

/// Bank references live for days: those that wait in front must not hide what was paid behind them.
#[test]
fn every_old_order_gets_its_turn() {
    let shop = restless();
    let sql = "insert into orders (external_transaction_id, status, reference_number, amount, created_at_ms)
               values (?1, 'PEN', 'REF1', 0, 1)";
    let db = shop.database();
    db.execute_batch("begin immediate").unwrap();
    for number in 0..230 {
        db.execute(sql, [format!("order_of_the_past_{number}")]).unwrap();
    }
    db.execute_batch("commit").unwrap();
    let last = shop.order();
    shop.service.states.lock().unwrap().insert(last.clone(), "CON");
    shop.advance(AGE * 2);
    shop.wait_until("the parcel", |shop| shop.happened(&last, "fulfilled") == 1);
}
