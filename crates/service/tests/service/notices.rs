//! A long stream of rails' notices at two nodes: again, too late, too little, too often, about nobody.
//! Each of them is accounted for, and no order is paid twice.

use std::collections::BTreeMap;

use svc_service::app::App;
use svc_service::domain::*;
use svc_service::orders;
use svc_service::store::{Created, Received};
use tokio::task::JoinSet;

use crate::support::{Dice, TestDatabase, new_order, on_both_engines, payment_of, two_nodes};

/// Notices by default; `SVC_NOTICES` sets another number.
const NOTICES: usize = 3_000;
/// Notices that arrive side by side.
const AT_ONCE: usize = 50;

on_both_engines! {
    every_notice_of_a_long_stream_is_accounted_for,
    a_notice_about_nobody_that_comes_often_at_once_is_new_once,
    one_id_for_two_orders_at_once_confirms_one_of_them,
}

async fn every_notice_of_a_long_stream_is_accounted_for(database: TestDatabase) {
    let (here, there) = two_nodes(&database).await;
    let mut stream = Stream { dice: Dice::of_this_run(&here), sent: Vec::new(), paid: Vec::new() };
    let mut foreseen = BTreeMap::new();
    let mut seen = BTreeMap::new();
    let count = std::env::var("SVC_NOTICES").map_or(NOTICES, |count| count.parse().unwrap());
    for first in (0..count).step_by(AT_ONCE) {
        let mut arriving = JoinSet::new();
        for number in first..(first + AT_ONCE).min(count) {
            let (notice, outcome) = stream.next(&here, number).await;
            *foreseen.entry(outcome).or_default() += 1;
            let node = if stream.dice.chance(50) { here.clone() } else { there.clone() };
            arriving.spawn(async move { orders::settle(&node, notice, "").await.unwrap() });
        }
        while let Some(received) = arriving.join_next().await {
            *seen.entry(name(received.unwrap())).or_default() += 1;
        }
    }
    assert_eq!(seen, foreseen, "what became of them");

    let of = |outcome: &str| foreseen.get(outcome).copied().unwrap_or(0);
    let kept = [
        (
            "duplicate",
            database.number("select cast(sum(duplicates) as bigint) from receipts").await,
        ),
        ("confirmed", database.count("orders where status = 'CON'").await),
        ("confirmed", database.count("outbox where status = 'CON'").await),
        (
            "confirmed",
            database.count("audit where action = 'order.settle' and after = 'CON'").await,
        ),
        ("late", database.count("exceptions where kind = 'late'").await),
        ("mismatch", database.count("exceptions where kind = 'mismatch'").await),
        ("excess", database.count("exceptions where kind = 'excess'").await),
        ("unmatched", database.count("exceptions where kind = 'unmatched'").await),
    ];
    for (outcome, rows) in kept {
        assert!(rows > 0, "no {outcome}: the stream was too short");
        assert_eq!(rows, of(outcome), "{outcome}");
    }
    let receipts = database.count("receipts").await;
    assert_eq!(receipts + of("duplicate"), count as i64, "all that arrived is on record");
}

/// No order's row keeps two nodes apart here.
async fn a_notice_about_nobody_that_comes_often_at_once_is_new_once(database: TestDatabase) {
    const ROUNDS: usize = 50;
    const TIMES: usize = 8;
    let (here, there) = two_nodes(&database).await;
    let order = create(&here, 0).await;
    for round in 0..ROUNDS {
        let about = About::Order(new_order(1, "nobody's").reference_number);
        let notice = another(Notice { about, ..payment_of(&order) }, round);
        let mut arriving = JoinSet::new();
        for time in 0..TIMES {
            let (node, notice) = (if time % 2 == 0 { &here } else { &there }, notice.clone());
            let node = node.clone();
            arriving.spawn(async move { orders::settle(&node, notice, "").await.unwrap() });
        }
        let received = arriving.join_all().await;
        let new = received.iter().filter(|received| name(**received) == "unmatched").count();
        assert_eq!(new, 1, "{received:?}");
    }
    let again = database.number("select cast(sum(duplicates) as bigint) from receipts").await;
    assert_eq!(again as usize, ROUNDS * (TIMES - 1));
}

/// Nor here.
async fn one_id_for_two_orders_at_once_confirms_one_of_them(database: TestDatabase) {
    const ROUNDS: usize = 50;
    let (here, there) = two_nodes(&database).await;
    for round in 0..ROUNDS {
        let mut arriving = JoinSet::new();
        for (side, node) in [&here, &there].into_iter().enumerate() {
            let order = create(node, 2 * round + side).await;
            let (node, notice) = (node.clone(), another(payment_of(&order), round));
            arriving.spawn(async move { orders::settle(&node, notice, "").await.unwrap() });
        }
        let mut received: Vec<_> = arriving.join_all().await.into_iter().map(name).collect();
        received.sort_unstable();
        assert_eq!(received, ["confirmed", "reused"], "round {round}");
    }
    assert_eq!(database.count("receipts").await, 2 * ROUNDS as i64);
    assert_eq!(database.count("exceptions").await, ROUNDS as i64);
    assert_eq!(database.count("orders where status = 'CON'").await, ROUNDS as i64);
}

struct Stream {
    dice: Dice,
    sent: Vec<Notice>,
    /// Orders somebody has paid in full.
    paid: Vec<Order>,
}

impl Stream {
    /// The next notice, and what must become of it.
    async fn next(&mut self, app: &App, number: usize) -> (Notice, &'static str) {
        let throw = self.dice.below(100);
        if throw < 30 && !self.sent.is_empty() {
            let again = self.dice.below(self.sent.len() as u64) as usize;
            return (self.sent[again].clone(), "duplicate");
        }
        if throw < 40 && !self.paid.is_empty() {
            let twice = self.dice.below(self.paid.len() as u64) as usize;
            let notice = another(payment_of(&self.paid[twice]), number);
            return self.first(notice, "excess");
        }
        let order = create(app, number).await;
        let notice = payment_of(&order);
        match throw {
            40..50 => {
                let author = Author { actor: Actor::Payer, request_id: String::new() };
                let reference = &order.reference_number;
                orders::cancel(app, reference, CancelReason::Payer, &author).await.unwrap();
                self.first(notice, "late")
            }
            50..55 => {
                let word = Word::Paid(Centimos::new(1 + self.dice.below(1_400_000) as i64));
                self.first(Notice { word, ..notice }, "mismatch")
            }
            55..60 => {
                let stranger = new_order(1, "nobody's").reference_number;
                self.first(Notice { about: About::Order(stranger), ..notice }, "unmatched")
            }
            _ => {
                self.paid.push(order);
                self.first(notice, "confirmed")
            }
        }
    }

    fn first(&mut self, notice: Notice, outcome: &'static str) -> (Notice, &'static str) {
        self.sent.push(notice.clone());
        (notice, outcome)
    }
}

/// A payment of its own for the same order.
fn another(notice: Notice, number: usize) -> Notice {
    Notice { rail_payment_id: format!("rail-again-{number}"), ..notice }
}

async fn create(app: &App, number: usize) -> Order {
    let new = new_order(1, &format!("order_{number}"));
    let Created::New(order) = app.store.create_order(new).await.unwrap() else {
        panic!("the id is new")
    };
    order
}

fn name(received: Received) -> &'static str {
    match received {
        Received::Confirmed => "confirmed",
        Received::Duplicate => "duplicate",
        Received::Exception(kind) => kind.as_str(),
        Received::Noted => "neither money nor an exception",
    }
}
