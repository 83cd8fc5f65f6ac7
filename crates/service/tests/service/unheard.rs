//! What PostgreSQL alone can do to us: ask for a transaction again, or commit it and not say so.

use svc_service::domain::*;
use svc_service::store::*;

use crate::store::created;
use crate::support::{self, TestDatabase, at, confirm, new_order};

/// What raises this the first `times` and lets the row in afterwards.
fn again(times: u32) -> String {
    format!(
        "create sequence tries;
         create function again() returns trigger language plpgsql as $$ begin
             if nextval('tries') <= {times} then
                 raise exception 'again' using errcode = '40001';
             end if;
             return new;
         end $$;
         create trigger again before insert on orders for each row execute function again();"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_postgres_asks_for_again_is_tried_again_and_not_for_ever() {
    for (times, tries, stored) in [(2, 3, true), (99, 5, false)] {
        let database = TestDatabase::postgres().await;
        let store = database.store().await;
        database.sql(&again(times)).await;
        let told = store.create_order(new_order(1, "order_1")).await;
        match &told {
            Ok(Created::New(_)) => assert!(stored),
            Err(StoreError::Unavailable(_)) => assert!(!stored),
            other => panic!("{other:?}"),
        }
        assert_eq!(database.number("select last_value from tries").await, tries);
        assert_eq!(database.count("orders").await, i64::from(stored));
    }
}

/// The connection died after the commit and before its answer: the truth is told all the same.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_unheard_is_told_as_done_and_done_once() {
    let database = TestDatabase::postgres().await;
    let (wire, at_its_end) = support::Wire::to(&database).await;
    let store = at_its_end.store().await;
    // The database is dropped past the wire.
    std::mem::forget(at_its_end);
    wire.lose_the_next_commit();
    let announced = new_order(1, "order_1").announced(EventId::assign(at(0), support::random()));
    let order = created(&store, announced).await;
    wire.lose_the_next_commit();
    assert_eq!(store.commit(confirm(&order)).await.unwrap(), Committed::Done);
    assert_eq!((database.count("orders").await, database.count("outbox").await), (1, 2));
    assert_eq!(database.count("audit").await, 1);
}
