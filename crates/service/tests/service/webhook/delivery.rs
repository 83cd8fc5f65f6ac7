//! The good day: what is sent, how it is signed, and what is kept of it.

use crate::support::{Receiver, TestDatabase, TestDelivery, on_both_engines};
use svc_service::domain::sign;
use svc_service::store::EventState;

on_both_engines! {
    an_event_is_delivered_once_with_the_bytes_of_its_commit,
    the_published_verifier_of_standard_webhooks_agrees,
    every_attempt_carries_the_same_bytes_and_its_own_number,
    many_events_share_few_connections,
    one_after_another_they_share_a_connection_and_nothing_else,
}

async fn an_event_is_delivered_once_with_the_bytes_of_its_commit(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    let order = delivery.paid_order(&shop, "order_1").await;
    delivery.drain().await;
    delivery.drain().await;
    let requests = receiver.requests();
    let [request] = &requests[..] else { panic!("{} requests", requests.len()) };
    let expected = format!(
        r#"{{"event":"payment","data":{{"externalTransactionId":"order_1","paymentStatus":"CON","referenceNumber":"{}","amount":15000}}}}"#,
        order.reference_number.as_str()
    );
    assert_eq!(request.body, expected);
    assert_eq!(request.path, "/hook");
    assert_eq!(request.header("x-svc-content-token"), sign(shop.webhook_secret(), &request.body));
    assert_eq!(request.header("content-type"), "application/json");
    assert_eq!(request.header("x-svc-delivery-attempt"), "1");
    assert!(request.header("user-agent").starts_with("svc-webhooks/"));
    for absent in ["cookie", "authorization", "accept-encoding", "referer"] {
        assert_eq!(request.header(absent), "", "{absent}");
    }
    let event = delivery.event(&order).await;
    assert_eq!(request.header("webhook-id"), event.id.as_str());
    assert_eq!((event.state, event.attempts), (EventState::Delivered, 1));
    let attempts = delivery.app.store.deliveries_of(&event.id).await.unwrap();
    let [attempt] = &attempts[..] else { panic!("{} attempts", attempts.len()) };
    assert_eq!((attempt.number, attempt.http_status), (1, Some(200)));
    assert_eq!(attempt.error, None);
}

async fn the_published_verifier_of_standard_webhooks_agrees(database: TestDatabase) {
    let receiver = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start_on_time(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    delivery.paid_order(&shop, "order_1").await;
    delivery.drain().await;
    let request = receiver.requests().remove(0);
    let verifier = standardwebhooks::Webhook::new(shop.webhook_secret()).unwrap();
    verifier.verify(&request.body, &request.headers).unwrap();
    let mut changed = request.body.to_vec();
    changed[20] ^= 1;
    assert!(verifier.verify(&changed, &request.headers).is_err());
}

async fn every_attempt_carries_the_same_bytes_and_its_own_number(database: TestDatabase) {
    let receiver = Receiver::start(|request| {
        let status = if request.header("x-svc-delivery-attempt") == "3" { 204 } else { 500 };
        hyper::Response::builder().status(status).body("sorry".into()).unwrap()
    })
    .await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    let order = delivery.paid_order(&shop, "order_1").await;
    delivery.drain().await;
    while delivery.step().await {}
    let requests = receiver.requests();
    let numbers: Vec<_> = requests.iter().map(|r| r.header("x-svc-delivery-attempt")).collect();
    assert_eq!(numbers, ["1", "2", "3"]);
    for request in &requests {
        assert_eq!(request.body, requests[0].body);
        assert_eq!(request.header("webhook-id"), requests[0].header("webhook-id"));
    }
    let event = delivery.event(&order).await;
    assert_eq!((event.state, event.attempts), (EventState::Delivered, 3));
    let attempts = delivery.app.store.deliveries_of(&event.id).await.unwrap();
    let statuses: Vec<_> = attempts.iter().map(|a| a.http_status).collect();
    assert_eq!(statuses, [Some(500), Some(500), Some(204)]);
    assert_eq!(attempts[0].answer_start, b"sorry");
}

async fn many_events_share_few_connections(database: TestDatabase) {
    const ORDERS: usize = 300;
    let receiver = Receiver::answering(200).await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    for number in 0..ORDERS {
        delivery.paid_order(&shop, &format!("order_{number}")).await;
    }
    delivery.drain().await;
    let mut orders: Vec<_> = receiver.requests().iter().map(|r| r.order()).collect();
    orders.sort();
    orders.dedup();
    assert_eq!(orders.len(), ORDERS);
    assert_eq!(receiver.requests().len(), ORDERS, "nothing is sent twice");
    // The client may open one more while another is about to be free.
    assert!(receiver.connections() <= ORDERS / 2, "{} connections", receiver.connections());
}

async fn one_after_another_they_share_a_connection_and_nothing_else(database: TestDatabase) {
    const ORDERS: usize = 20;
    let receiver = Receiver::start(|_| {
        let answer = hyper::Response::builder().header("set-cookie", "seen=1; Path=/");
        answer.body("".into()).unwrap()
    })
    .await;
    let mut delivery = TestDelivery::start(database).await;
    let shop = delivery.shop(&receiver.url()).await;
    for number in 0..ORDERS {
        delivery.paid_order(&shop, &format!("order_{number}")).await;
        delivery.drain().await;
    }
    let requests = receiver.requests();
    assert_eq!((requests.len(), receiver.connections()), (ORDERS, 1));
    assert!(requests.iter().all(|request| request.header("cookie").is_empty()));
}
