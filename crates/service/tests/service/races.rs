//! A payment, a cancellation and a deadline at the same moment, on two nodes: one of them wins, the
//! merchant hears of one, and money that lost is on record.

use std::sync::Arc;

use svc_service::app::App;
use svc_service::domain::*;
use svc_service::orders::{self};
use svc_service::store::{Created, EventState, ExceptionFilter, Received};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::support::{
    TestDatabase, TestPaying, events_of, new_order, on_both_engines, patiently, payment_of, push,
    two_nodes,
};

const RACES: usize = 2_000;
/// Races run side by side.
const AT_ONCE: usize = 40;

on_both_engines! {
    of_a_payment_a_cancellation_and_a_deadline_exactly_one_wins,
}

async fn of_a_payment_a_cancellation_and_a_deadline_exactly_one_wins(database: TestDatabase) {
    let (here, there) = two_nodes(&database).await;
    let mut confirmed = 0;
    for first in (0..RACES).step_by(AT_ONCE) {
        let mut races = JoinSet::new();
        for number in first..first + AT_ONCE {
            races.spawn(race(here.clone(), there.clone(), number));
        }
        while let Some(won) = races.join_next().await {
            confirmed += usize::from(won.unwrap() == Status::Confirmed);
        }
    }
    assert!((1..RACES).contains(&confirmed), "{confirmed} of {RACES}: nobody raced");
    let late = database.count("exceptions where kind = 'late'").await;
    assert_eq!(late as usize, RACES - confirmed, "every payment that lost is on record");
    assert_eq!(database.count("receipts").await as usize, RACES);
    assert_eq!(database.count("audit where action = 'order.settle'").await as usize, RACES);
}

/// The status that won.
async fn race(here: App, there: App, number: usize) -> Status {
    let new = new_order(1, &format!("order_{number}"));
    let Created::New(order) = here.store.create_order(new).await.unwrap() else {
        panic!("the id is new")
    };
    let reference = order.reference_number.clone();
    let gate = Arc::new(Barrier::new(3));
    let payment = {
        let (app, gate, notice) = (here.clone(), Arc::clone(&gate), payment_of(&order));
        tokio::spawn(async move {
            gate.wait().await;
            orders::settle(&app, notice, "").await.unwrap()
        })
    };
    let cancellation = {
        let (app, gate, reference) = (there.clone(), Arc::clone(&gate), reference.clone());
        tokio::spawn(async move {
            let request = Author { actor: Actor::Payer, request_id: String::new() };
            gate.wait().await;
            orders::cancel(&app, &reference, CancelReason::Payer, &request).await.unwrap()
        })
    };
    let deadline = {
        // Each of them is the last to come now and then.
        let (app, reference) =
            (if number.is_multiple_of(2) { here.clone() } else { there }, reference);
        tokio::spawn(async move {
            gate.wait().await;
            orders::expire_now(&app, &reference).await.unwrap();
        })
    };
    let received = payment.await.unwrap();
    cancellation.await.unwrap();
    deadline.await.unwrap();

    let status = here.store.order_by_reference(&order.reference_number).await.unwrap();
    let status = status.unwrap().status;
    let told: Vec<_> = events_of(&here.store, &order).await;
    assert_eq!(told.len(), 1, "one event: {told:?}");
    assert_eq!((told[0].status, told[0].state), (status, EventState::Queued));
    match status {
        Status::Confirmed => assert_eq!(received, Received::Confirmed),
        Status::Cancelled => {
            assert_eq!(received, Received::Exception(ExceptionKind::Late));
            let reference_number = Some(order.reference_number);
            let filter = ExceptionFilter { reference_number, ..ExceptionFilter::default() };
            assert_eq!(here.store.exceptions(filter, 10).await.unwrap().len(), 1);
        }
        Status::Pending => panic!("somebody must win"),
    }
    status
}

/// On a server that is set up to show a transaction one moment only: a cancellation that waited for the order must
/// see the payment that was begun meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_sees_a_payment_that_was_begun_beside_it_however_postgres_is_set_up() {
    let database = TestDatabase::postgres().await;
    let url = database.url();
    let (_, name) = url.rsplit_once('/').unwrap();
    let strict = "set default_transaction_isolation = 'repeatable read'";
    database.sql(&format!("alter database {name} {strict}")).await;
    let paying = Arc::new(TestPaying::start(database).await);
    let order = paying.order("order_1", 15_000).await;
    paying.pay(&order, &push("900000003")).await;
    let begun = |state: &str| format!("update payment_attempts set state = '{state}'");
    paying.database.sql(&begun("rejected")).await;
    let holder = paying.database.connection().await;
    holder.batch_execute("begin; select 1 from orders for update").await.unwrap();
    holder.batch_execute(&begun("awaiting_payer")).await.unwrap();
    let cancelled = {
        let (paying, order) = (Arc::clone(&paying), order.clone());
        tokio::spawn(async move { paying.cancel(&order).await })
    };
    let waiting = "select count(*) from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'";
    patiently(async {
        while paying.database.number(waiting).await == 0 {
            assert!(!cancelled.is_finished(), "it did not wait for the order");
        }
    })
    .await;
    holder.batch_execute("commit").await.unwrap();
    assert_eq!(cancelled.await.unwrap(), orders::Cancelling::Waits);
    assert_eq!(paying.stands(&order).await, ("awaiting_payer", "PEN"));
}
