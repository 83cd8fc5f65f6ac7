//! What a webhook handler must refuse, row by row.

use aws_lc_rs::hmac;
use svc_client::{PaymentStatus, WebhookError, verify_webhook, verify_webhook_with};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";
const OLD: &str = "whsec_Z8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYoMfKQ9=";
const BODY: &[u8] = br#"{"event":"payment","data":{"externalTransactionId":"order_1","paymentStatus":"CON","referenceNumber":"R1","amount":15000}}"#;

fn sign(secret: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    hex::encode(hmac::sign(&key, body))
}

#[test]
fn a_right_signature_is_read() {
    let event = verify_webhook(BODY, Some(&sign(SECRET, BODY)), SECRET).unwrap();
    assert_eq!(event.external_transaction_id, "order_1");
    assert_eq!(event.status, PaymentStatus::Confirmed);
    assert_eq!((event.reference_number.as_deref(), event.amount), (Some("R1"), Some(15_000)));
}

#[test]
fn a_secret_that_is_missing_verifies_nothing() {
    for empty in ["", "whsec_"] {
        let forged = sign(empty, BODY);
        let told = verify_webhook(BODY, Some(&forged), empty);
        assert_eq!(told, Err(WebhookError::Signature), "{empty:?}");
        let told = verify_webhook_with(BODY, Some(&forged), &[SECRET, empty]);
        assert_eq!(told, Err(WebhookError::Signature), "{empty:?}");
    }
}

#[test]
fn every_other_form_of_signature_is_refused() {
    let right = sign(SECRET, BODY);
    let forms = [
        String::new(),
        right[..63].to_owned(),
        format!("{right}0"),
        "z".repeat(64),
        right.to_uppercase(),
        format!("sha256={right}"),
        sign("whsec_other", BODY),
        format!(" {right}"),
    ];
    for form in forms {
        assert_eq!(
            verify_webhook(BODY, Some(&form), SECRET),
            Err(WebhookError::Signature),
            "{form}"
        );
    }
    assert_eq!(verify_webhook(BODY, None, SECRET), Err(WebhookError::Signature));
}

#[test]
fn a_changed_body_is_refused_unread() {
    let right = sign(SECRET, BODY);
    let longer = [BODY, b"\n"].concat();
    for body in [&longer[..], b"not json", b""] {
        assert_eq!(verify_webhook(body, Some(&right), SECRET), Err(WebhookError::Signature));
    }
}

#[test]
fn a_signed_body_that_is_no_event_is_told_apart_from_one_to_ignore() {
    let verdict =
        |body: &str| verify_webhook(body.as_bytes(), Some(&sign(SECRET, body.as_bytes())), SECRET);
    for body in ["", "not json", "{}", r#"{"event":"payment"}"#, r#"{"event":"payment","data":{}}"#]
    {
        assert!(matches!(verdict(body), Err(WebhookError::Body(_))), "{body}");
    }
    let status = |code: &str| {
        format!(
            r#"{{"event":"payment","data":{{"externalTransactionId":"a","paymentStatus":{code},"referenceNumber":"r","amount":1}}}}"#
        )
    };
    for body in [
        status("\"REF\""),
        status("\"con\""),
        status("null"),
        r#"{"event":"payout","data":{}}"#.into(),
    ] {
        assert!(matches!(verdict(&body), Err(WebhookError::Ignored(_))), "{body}");
    }
}

#[test]
fn the_previous_secret_counts_only_where_it_is_given() {
    let old = sign(OLD, BODY);
    assert!(verify_webhook_with(BODY, Some(&old), &[SECRET, OLD]).is_ok());
    assert_eq!(verify_webhook_with(BODY, Some(&old), &[SECRET]), Err(WebhookError::Signature));
    assert_eq!(verify_webhook_with(BODY, Some(&old), &[]), Err(WebhookError::Signature));
}
