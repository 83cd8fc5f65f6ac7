//! What every engine must do alike: one suite, run on SQLite and on PostgreSQL.

use std::sync::Arc;

use crate::support::{
    self, TestDatabase, at, cancel, confirm, events_of, new_order, on_both_engines, options, stamp,
};
use svc_service::domain::*;
use svc_service::store::*;

on_both_engines! {
    an_order_created_twice_keeps_its_reference,
    sixty_four_callers_with_one_id_make_one_order,
    the_same_id_in_two_applications_is_two_orders,
    a_taken_reference_is_told_and_harms_nobody_else,
    an_order_may_be_announced_as_it_is_stored,
    exactly_one_of_many_changes_wins,
    a_lost_change_leaves_no_trace,
    state_audit_and_event_stand_or_fall_together,
    one_bad_member_never_fails_its_batch,
    orders_survive_a_reopened_store,
    a_row_that_no_code_of_ours_writes_is_reported_not_believed,
    a_database_belongs_to_one_environment,
    a_payment_is_entered_once_among_the_exceptions,
    a_wrong_amount_for_an_order_that_ended_meanwhile_holds_nothing,
    many_callers_at_once_are_all_answered,
}

fn standing(order: &Order) -> Standing {
    Standing {
        reference_number: order.reference_number.clone(),
        status: order.status,
        amount: order.terms.amount,
    }
}

pub(crate) async fn created(store: &Store, new: NewOrder) -> Order {
    match store.create_order(new).await.unwrap() {
        Created::New(order) => order,
        other => panic!("expected a new order, got {other:?}"),
    }
}

async fn an_order_created_twice_keeps_its_reference(database: TestDatabase) {
    let store = database.store().await;
    let first = created(&store, new_order(1, "order_1")).await;
    let again = store.create_order(new_order(1, "order_1")).await.unwrap();
    assert_eq!(again, Created::Existing(first.clone()));
    let found = store.standing(ApplicationId(1), &first.external_transaction_id).await.unwrap();
    assert_eq!(found, Some(standing(&first)));
    let found = store.order_by_reference(&first.reference_number).await.unwrap();
    assert_eq!(found, Some(first));
    assert_eq!(database.count("orders").await, 1);
}

async fn sixty_four_callers_with_one_id_make_one_order(database: TestDatabase) {
    const CALLERS: usize = 64;
    const ROUNDS: usize = 20;
    let store = Arc::new(database.store().await);
    for round in 0..ROUNDS {
        let barrier = Arc::new(tokio::sync::Barrier::new(CALLERS));
        let calls: Vec<_> = (0..CALLERS)
            .map(|_| {
                let (store, barrier) = (Arc::clone(&store), Arc::clone(&barrier));
                let new = new_order(1, &format!("order_{round}"));
                tokio::spawn(async move {
                    barrier.wait().await;
                    store.create_order(new).await.unwrap()
                })
            })
            .collect();
        let (mut references, mut new) = (std::collections::HashSet::new(), 0);
        for call in calls {
            match call.await.unwrap() {
                Created::New(order) => {
                    new += 1;
                    references.insert(order.reference_number);
                }
                Created::Existing(order) => {
                    references.insert(order.reference_number);
                }
                Created::ReferenceTaken => panic!("references are distinct"),
            }
        }
        assert_eq!((new, references.len()), (1, 1), "round {round}");
    }
    assert_eq!(database.count("orders").await, ROUNDS as i64);
}

async fn the_same_id_in_two_applications_is_two_orders(database: TestDatabase) {
    let store = database.store().await;
    let ours = created(&store, new_order(1, "order_1")).await;
    let theirs = created(&store, new_order(2, "order_1")).await;
    assert_ne!(ours.reference_number, theirs.reference_number);
    let id = &ours.external_transaction_id;
    let found = store.standing(ApplicationId(2), id).await.unwrap();
    assert_eq!(found, Some(standing(&theirs)));
    assert_eq!(store.standing(ApplicationId(3), id).await.unwrap(), None);
}

async fn a_taken_reference_is_told_and_harms_nobody_else(database: TestDatabase) {
    let store = database.store().await;
    let first = created(&store, new_order(1, "order_1")).await;
    let mut twin = new_order(1, "order_2");
    twin.reference_number = first.reference_number.clone();
    let (twin, other) =
        tokio::join!(store.create_order(twin), store.create_order(new_order(1, "order_3")));
    assert_eq!(twin.unwrap(), Created::ReferenceTaken);
    assert!(matches!(other.unwrap(), Created::New(_)));

    let announced = |new: NewOrder| new.announced(EventId::assign(at(0), support::random()));
    let mut twin = new_order(1, "order_4");
    twin.reference_number = first.reference_number;
    let (twin, other) = tokio::join!(
        store.create_order(announced(twin)),
        store.create_order(announced(new_order(1, "order_5")))
    );
    assert_eq!(twin.unwrap(), Created::ReferenceTaken);
    assert!(matches!(other.unwrap(), Created::New(_)));
    assert_eq!(database.count("outbox").await, 1, "and nothing is told of it");
}

async fn an_order_may_be_announced_as_it_is_stored(database: TestDatabase) {
    let store = database.store().await;
    let announced = |id: &str| {
        let event = EventId::assign(at(0), support::random());
        new_order(1, id).announced(event)
    };
    let (loud, quiet) = tokio::join!(
        store.create_order(announced("order_1")),
        store.create_order(new_order(1, "order_2"))
    );
    let (Created::New(loud), Created::New(quiet)) = (loud.unwrap(), quiet.unwrap()) else {
        panic!("both are new")
    };
    let events = events_of(&store, &loud).await;
    let [event] = &events[..] else { panic!("{} events", events.len()) };
    assert_eq!((event.status, event.state), (Status::Pending, EventState::Queued));
    assert!(String::from_utf8_lossy(&event.body).contains(loud.reference_number.as_str()));
    assert!(events_of(&store, &quiet).await.is_empty());
    // A replay announces nothing.
    assert!(matches!(
        store.create_order(announced("order_1")).await.unwrap(),
        Created::Existing(_)
    ));
    assert_eq!(database.count("outbox").await, 1);
}

async fn exactly_one_of_many_changes_wins(database: TestDatabase) {
    const RACERS: usize = 32;
    let store = Arc::new(database.store().await);
    for round in 0..20 {
        let order = created(&store, new_order(1, &format!("order_{round}"))).await;
        let barrier = Arc::new(tokio::sync::Barrier::new(RACERS));
        let races: Vec<_> = (0..RACERS)
            .map(|racer| {
                let change = if racer % 2 == 0 { confirm(&order) } else { cancel(&order) };
                let (store, barrier) = (Arc::clone(&store), Arc::clone(&barrier));
                tokio::spawn(async move {
                    barrier.wait().await;
                    let to = change.to;
                    (to, store.commit(change).await.unwrap())
                })
            })
            .collect();
        let mut outcomes = Vec::new();
        for race in races {
            outcomes.push(race.await.unwrap());
        }
        let winners: Vec<_> = outcomes.iter().filter(|(_, c)| *c == Committed::Done).collect();
        let [(winner, _)] = winners[..] else { panic!("{} winners", winners.len()) };
        let losers = outcomes.iter().filter(|(_, c)| *c == Committed::Lost(*winner)).count();
        assert_eq!(losers, RACERS - 1);
        let settled = store.order_by_reference(&order.reference_number).await.unwrap().unwrap();
        assert_eq!(settled.status, *winner);
        let events = events_of(&store, &order).await;
        let [event] = &events[..] else { panic!("{} events", events.len()) };
        assert_eq!((event.status, event.state), (*winner, EventState::Queued));
        let audit = store.audit_of(order.reference_number.as_str()).await.unwrap();
        let [row] = &audit[..] else { panic!("{} audit rows", audit.len()) };
        assert_eq!(row.before.as_deref(), Some("PEN"));
        assert_eq!(row.after.as_deref(), Some(winner.code()));
        assert_eq!(row.request_id, "req-2");
    }
}

async fn a_lost_change_leaves_no_trace(database: TestDatabase) {
    let store = database.store().await;
    let order = created(&store, new_order(1, "order_1")).await;
    assert_eq!(store.commit(cancel(&order)).await.unwrap(), Committed::Done);
    let late = store.commit(confirm(&order)).await.unwrap();
    assert_eq!(late, Committed::Lost(Status::Cancelled));
    assert_eq!((database.count("outbox").await, database.count("audit").await), (1, 1));
}

async fn state_audit_and_event_stand_or_fall_together(database: TestDatabase) {
    let store = database.store().await;
    let order = created(&store, new_order(1, "order_1")).await;
    // With nowhere to put the event, nothing of the change may remain.
    database.sql("alter table outbox rename to outbox_gone").await;
    assert!(store.commit(confirm(&order)).await.is_err());
    let unchanged = store.order_by_reference(&order.reference_number).await.unwrap().unwrap();
    assert_eq!(unchanged.status, Status::Pending);
    assert_eq!(database.count("audit").await, 0);
    // And the store goes on once the fault is gone.
    database.sql("alter table outbox_gone rename to outbox").await;
    assert_eq!(store.commit(confirm(&order)).await.unwrap(), Committed::Done);
    assert_eq!((database.count("outbox").await, database.count("audit").await), (1, 1));
}

async fn one_bad_member_never_fails_its_batch(database: TestDatabase) {
    let store = Arc::new(database.store().await);
    let settled = created(&store, new_order(1, "settled")).await;
    store.commit(cancel(&settled)).await.unwrap();
    let mut good = Vec::new();
    for number in 0..40 {
        good.push(created(&store, new_order(1, &format!("order_{number}"))).await);
    }
    // A database-level fault in one member: this event id is taken by another order's event.
    let mut clashing = confirm(&good[39]);
    clashing.event.id = events_of(&store, &settled).await[0].id.clone();
    let mut unknown = confirm(&good[0]);
    unknown.reference_number = ReferenceNumber::assign(at(9), support::random());
    let calls: Vec<_> = good[..39]
        .iter()
        .map(confirm)
        .chain([unknown, confirm_settled(&settled), clashing])
        .map(|change| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.commit(change).await })
        })
        .collect();
    let mut outcomes = Vec::new();
    for call in calls {
        outcomes.push(call.await.unwrap());
    }
    let clashed = outcomes.pop().unwrap();
    assert!(clashed.is_err(), "{clashed:?}");
    let left = store.order_by_reference(&good[39].reference_number).await.unwrap().unwrap();
    assert_eq!(left.status, Status::Pending, "the clash settled its order without an event");
    assert_eq!(outcomes.pop().unwrap().unwrap(), Committed::Lost(Status::Cancelled));
    assert_eq!(outcomes.pop().unwrap().unwrap(), Committed::NoSuchOrder);
    assert!(outcomes.into_iter().all(|outcome| outcome.unwrap() == Committed::Done));
}

/// A node that stands still in the middle of a transaction holds its rows until the server frees them.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_somebody_holds_costs_only_who_wants_it() {
    const ORDERS: usize = 40;
    let database = TestDatabase::postgres().await;
    let store = Arc::new(database.store().await);
    let mut orders = Vec::new();
    for number in 0..ORDERS {
        orders.push(created(&store, new_order(1, &format!("order_{number}"))).await);
    }
    let held = &orders[ORDERS / 2];
    let holder = database.connection().await;
    let hold = format!(
        "begin; select 1 from orders where reference_number = '{}' for update",
        held.reference_number.as_str()
    );
    holder.batch_execute(&hold).await.unwrap();
    let calls: Vec<_> = orders
        .iter()
        .map(|order| {
            let (store, change) = (Arc::clone(&store), confirm(order));
            tokio::spawn(async move { store.commit(change).await })
        })
        .collect();
    for (order, call) in orders.iter().zip(calls) {
        let outcome = call.await.unwrap();
        match order.reference_number == held.reference_number {
            true => assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}"),
            false => assert_eq!(outcome.unwrap(), Committed::Done),
        }
    }
    holder.batch_execute("rollback").await.unwrap();
    assert_eq!(store.commit(confirm(held)).await.unwrap(), Committed::Done);
}

/// A confirmation of an order that its maker still takes for pending.
fn confirm_settled(order: &Order) -> Change {
    confirm(&Order { status: Status::Pending, ..order.clone() })
}

async fn orders_survive_a_reopened_store(database: TestDatabase) {
    let order = created(&database.store().await, new_order(1, "order_1")).await;
    let store = database.store().await;
    let found = store.order_by_reference(&order.reference_number).await.unwrap();
    assert_eq!(found, Some(order));
}

async fn a_row_that_no_code_of_ours_writes_is_reported_not_believed(database: TestDatabase) {
    let store = database.store().await;
    let bad = created(&store, new_order(1, "order_1")).await;
    let good = created(&store, new_order(1, "order_2")).await;
    let broken =
        "update orders set reference_number = 'x' where external_transaction_id = 'order_1'";
    database.sql(broken).await;
    let (bad, good) = tokio::join!(
        store.standing(ApplicationId(1), &bad.external_transaction_id),
        store.standing(ApplicationId(1), &good.external_transaction_id)
    );
    assert!(matches!(bad, Err(StoreError::Corrupt(_))), "{bad:?}");
    assert!(good.unwrap().is_some());
}

async fn a_database_belongs_to_one_environment(database: TestDatabase) {
    let opened = |environment| {
        let database = database.database();
        async move { Store::open(&database, options(environment)).await }
    };
    drop(opened(Some(Environment::Sandbox)).await.unwrap());
    let refused = opened(Some(Environment::Production)).await.err().unwrap();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused:?}");
    assert_eq!(opened(None).await.unwrap().environment(), Environment::Sandbox);
}

async fn a_payment_is_entered_once_among_the_exceptions(database: TestDatabase) {
    let store = database.store().await;
    let late = || Receipt {
        notice: Notice {
            rail: "simulator".into(),
            rail_payment_id: "p-1".into(),
            about: About::Attempt(AttemptId::assign([1; 15])),
            word: Word::Paid(Centimos::new(1_500_000)),
            raw: b"raw".to_vec(),
        },
        id_is_reused: false,
        application: None,
        reference_number: None,
        attempt: None,
        effect: Effect::Exception { kind: ExceptionKind::Unmatched, detail: "nobody's".into() },
        stamp: stamp(),
    };
    let first = store.receive(late()).await.unwrap();
    assert_eq!(first, Ok(Received::Exception(ExceptionKind::Unmatched)));
    assert_eq!(store.receive(late()).await.unwrap(), Ok(Received::Duplicate));
    assert_eq!(database.count("exceptions").await, 1);
    assert_eq!(database.count("receipts where duplicates = 1").await, 1);
    // Its reversal has the same id, and is of the same kind: nobody knows either.
    let mut taken_back = late();
    taken_back.notice.word = Word::Reversed(Centimos::new(1_500_000));
    let second = store.receive(taken_back).await.unwrap();
    assert_eq!(second, Ok(Received::Exception(ExceptionKind::Unmatched)));
    assert_eq!(database.count("exceptions").await, 2);
}

async fn a_wrong_amount_for_an_order_that_ended_meanwhile_holds_nothing(database: TestDatabase) {
    let store = database.store().await;
    for (id, change, kind) in [
        ("order_1", confirm as fn(&Order) -> Change, ExceptionKind::Excess),
        ("order_2", cancel as fn(&Order) -> Change, ExceptionKind::Late),
    ] {
        let order = created(&store, new_order(1, id)).await;
        store.commit(change(&order)).await.unwrap();
        let wrong = Receipt {
            notice: Notice {
                rail: "simulator".into(),
                rail_payment_id: id.into(),
                about: About::Order(order.reference_number.clone()),
                word: Word::Paid(Centimos::new(1)),
                raw: b"raw".to_vec(),
            },
            id_is_reused: false,
            application: Some(order.application),
            reference_number: Some(order.reference_number.clone()),
            attempt: None,
            effect: Effect::Exception {
                kind: ExceptionKind::Mismatch,
                detail: "weighed before".into(),
            },
            stamp: stamp(),
        };
        assert_eq!(store.receive(wrong).await.unwrap(), Ok(Received::Exception(kind)), "{id}");
    }
}

async fn many_callers_at_once_are_all_answered(database: TestDatabase) {
    const CALLERS: usize = 1_000;
    let store = Arc::new(database.store().await);
    let calls: Vec<_> = (0..CALLERS)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let order = created(&store, new_order(1, &format!("order_{number}"))).await;
                // Read your own write, through another connection.
                let id = &order.external_transaction_id;
                let found = store.standing(ApplicationId(1), id).await.unwrap();
                assert_eq!(found, Some(standing(&order)));
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(database.count("orders").await, CALLERS as i64);
}
