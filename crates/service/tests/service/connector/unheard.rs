//! A commit that the database did and nobody heard of.

use svc_service::orders::PayError;

use super::production;
use crate::support::*;

/// Nobody has told the rail: the payer is not kept waiting for it, and may try again.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_was_stored_unheard_did_not_begin() {
    let database = TestDatabase::postgres().await;
    let (wire, at_its_end) = Wire::to(&database).await;
    let (mut paying, connector) = production(at_its_end).await;
    // The database is dropped past the wire.
    std::mem::forget(std::mem::replace(&mut paying.database, database));
    let order = paying.order("order_1", 15_000).await;
    wire.lose_the_next_commit();
    let told = paying.try_pay(&order, &push("923456789")).await.unwrap_err();
    assert!(matches!(told, PayError::Store(_)), "{told:?}");
    assert_eq!(paying.database.count("payment_attempts").await, 1, "it was stored");
    patiently(async { while paying.stands(&order).await != ("rejected", "PEN") {} }).await;
    assert_eq!(connector.calls("start-push").len(), 0);
    paying.pay(&order, &push("923456789")).await;
    assert_eq!(connector.calls("start-push").len(), 1);
    assert_eq!(paying.stands(&order).await, ("awaiting_payer", "PEN"));
}
