//! What a connector sends us: authenticated first, then stored with its effect (H23, H24).

use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use svc_service::config::RailConfig;
use svc_service::domain::PaymentAttempt;

use super::Checkout;
use crate::support::*;

on_both_engines! {
    h23_a_notice_without_or_with_a_wrong_signature_is_refused,
    while_a_secret_takes_over_either_signs,
    h24_a_notice_sent_again_is_a_duplicate,
    h24_a_notice_of_another_amount_is_held,
    a_signed_notice_that_makes_no_sense_is_named_so,
}

/// A service with a connector, and an attempt that waits for its payer there.
async fn waiting(database: TestDatabase) -> (Checkout, TestConnector, PaymentAttempt) {
    waiting_for(database, TestConnector::config).await
}

async fn waiting_for(
    database: TestDatabase,
    configured: fn(&TestConnector) -> RailConfig,
) -> (Checkout, TestConnector, PaymentAttempt) {
    let connector = TestConnector::start().await;
    let rail = configured(&connector);
    let checkout = Checkout::start_with(database, |config| config.rails = vec![rail]).await;
    TestConnector::asked_by(&checkout.service.app).await.unwrap();
    let session = checkout.session().await;
    let answer = checkout.pay(&session, "FPMCXEXPRSS", "&phone=923456789").await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    let attempt = checkout.dossier().await.attempts.remove(0);
    assert_eq!(attempt.rail, TestConnector::NAME);
    (checkout, connector, attempt)
}

fn paid(id: &str, attempt: &PaymentAttempt, amount: &Value) -> String {
    json!({
        "railPaymentId": id, "attemptId": attempt.id.as_str(), "kind": "payment", "amount": amount,
    })
    .to_string()
}

async fn notify(
    checkout: &Checkout,
    name: &str,
    headers: &[(&'static str, String)],
    body: &str,
) -> Answer {
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let target = format!("/rails/{name}/notify");
    checkout.service.call(Method::POST, &target, &headers, body.to_owned()).await
}

async fn h23_a_notice_without_or_with_a_wrong_signature_is_refused(database: TestDatabase) {
    let (checkout, connector, attempt) = waiting(database).await;
    let body = paid("p1", &attempt, &json!("15000.00"));
    let before = checkout.snapshot().await;
    let right = connector.signed(&body);
    let without = |gone: &str| -> Vec<_> {
        right.iter().filter(|(name, _)| *name != gone).cloned().collect()
    };
    let with = |changed: &'static str, value: &str| -> Vec<_> {
        let rest = without(changed).into_iter();
        rest.chain([(changed, value.to_owned())]).collect()
    };
    for (name, headers) in [
        ("no headers", vec![("content-type", "application/json".to_owned())]),
        ("no id", without("webhook-id")),
        ("no timestamp", without("webhook-timestamp")),
        ("no signature", without("webhook-signature")),
        ("another id", with("webhook-id", "msg_2")),
        ("another time", with("webhook-timestamp", "1800000000")),
        ("no time", with("webhook-timestamp", "soon")),
        ("empty signature", with("webhook-signature", "")),
        ("another signature", with("webhook-signature", "v1,AAAA")),
        ("another secret", connector.signed_wrongly(&body)),
        ("another body", connector.signed(&body.replace("15000", "15001"))),
    ] {
        let answer = notify(&checkout, TestConnector::NAME, &headers, &body).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{name}");
        assert_eq!(answer.json()["error"], "invalid_signature", "{name}");
    }
    // A rail that does not exist looks like one whose signature is wrong.
    for name in ["nobody", "simulator"] {
        let answer = notify(&checkout, name, &right, &body).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{name}");
    }
    assert_eq!(checkout.snapshot().await, before);
    let answer = notify(&checkout, TestConnector::NAME, &right, &body).await;
    assert_eq!((answer.status, checkout.order().await.status.code()), (StatusCode::OK, "CON"));
}

/// The connector has one of them, then the other.
async fn while_a_secret_takes_over_either_signs(database: TestDatabase) {
    let (checkout, connector, attempt) =
        waiting_for(database, TestConnector::config_taking_over).await;
    assert_eq!(connector.refused(), 0);
    let body = paid("p1", &attempt, &json!(15_000));
    for (headers, outcome) in
        [(connector.signed(&body), "applied"), (connector.signed_wrongly(&body), "duplicate")]
    {
        let answer = notify(&checkout, TestConnector::NAME, &headers, &body).await;
        assert_eq!(answer.json()["data"]["outcome"], outcome, "{}", answer.text);
    }
}

async fn h24_a_notice_sent_again_is_a_duplicate(database: TestDatabase) {
    let (checkout, connector, attempt) = waiting(database).await;
    let body = paid("p1", &attempt, &json!(15_000));
    let headers = connector.signed(&body);
    let first = notify(&checkout, TestConnector::NAME, &headers, &body).await;
    assert_eq!(
        (first.status, &first.json()["data"]["outcome"]),
        (StatusCode::OK, &"applied".into())
    );
    let before = checkout.snapshot().await;
    for _ in 0..3 {
        let again = notify(&checkout, TestConnector::NAME, &headers, &body).await;
        assert_eq!(again.status, StatusCode::OK);
        assert_eq!(again.json()["data"]["outcome"], "duplicate");
    }
    assert_eq!(checkout.snapshot().await, before);
    // Another payment of the same attempt is not: the money is there twice.
    let second = paid("p2", &attempt, &json!(15_000));
    let answer = notify(&checkout, TestConnector::NAME, &connector.signed(&second), &second).await;
    assert_eq!(answer.json()["data"]["outcome"], "exception");
    let excess = checkout.service.count("exceptions where kind = 'excess'").await;
    assert_eq!((excess, checkout.order().await.status.code()), (1, "CON"));
    assert_eq!(checkout.service.count("outbox where status = 'CON'").await, 1);
}

async fn h24_a_notice_of_another_amount_is_held(database: TestDatabase) {
    let (checkout, connector, attempt) = waiting(database).await;
    let body = paid("p1", &attempt, &json!("14999.99"));
    let headers = connector.signed(&body);
    let answer = notify(&checkout, TestConnector::NAME, &headers, &body).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.json()["data"]["outcome"], "exception");
    let dossier = checkout.dossier().await;
    assert_eq!(dossier.order.status.code(), "PEN");
    assert_eq!(dossier.attempts[0].state.as_str(), "held");
    let held = "exceptions where kind = 'mismatch' and amount_centimos = 1499999";
    assert_eq!(checkout.service.count(held).await, 1);
    let again = notify(&checkout, TestConnector::NAME, &headers, &body).await;
    assert_eq!(again.json()["data"]["outcome"], "duplicate");
    let page = checkout.page("").await.text;
    assert!(
        page.contains("data-screen=\"confirming\"") && page.contains("Pagamento em verificação"),
        "{page}"
    );
    // Of the last attempt, and of the order: an earlier one may be held beside another that is not.
    assert!(page.contains("data-version=\"confirming-1-held-held\""), "{page}");
}

async fn a_signed_notice_that_makes_no_sense_is_named_so(database: TestDatabase) {
    let (checkout, connector, attempt) = waiting(database).await;
    let before = checkout.snapshot().await;
    let right = paid("p1", &attempt, &json!(15_000));
    for body in [
        "{}",
        "[]",
        "not json",
        &right.replace("payment\"", "gift\""),
        &right.replace("15000", "\"1,5\""),
        &right.replace("15000", "-15000"),
        &right.replace("p1", ""),
        &right.replace("p1", "p\\u0000"),
        &right.replace("p1", &"p".repeat(129)),
    ] {
        let headers = connector.signed(body);
        let answer = notify(&checkout, TestConnector::NAME, &headers, body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {}", answer.text);
    }
    assert_eq!(checkout.snapshot().await, before);
}
