//! Webhooks: verified first, over the raw bytes and in constant time, parsed second (spec 5.3, 6).

use aws_lc_rs::hmac;
use serde::Deserialize;
use serde_json::Value;

use crate::api::PaymentStatus;

/// What a webhook tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentEvent {
    pub external_transaction_id: String,
    pub status: PaymentStatus,
    /// `None` if the webhook does not say it, or not as a text.
    pub reference_number: Option<String>,
    /// Whole kwanza; `None` if the webhook does not say it, or not as a whole number.
    pub amount: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// Answer 401 and change nothing.
    #[error("the signature is missing or wrong")]
    Signature,
    /// Signed, but not an event this crate can read. Answer 422.
    #[error("the body is not a payment event: {0}")]
    Body(String),
    /// An event of another kind, or with a status of later days: answer 200 and do nothing.
    #[error("not an event to act on: {0}")]
    Ignored(String),
}

/// Verifies and reads a webhook.
///
/// `header` is `x-svc-content-token`; absent counts as empty. `secret` is the webhook secret exactly
/// as you hold it, `whsec_` included.
///
/// ```
/// use svc_client::{PaymentStatus, verify_webhook};
///
/// let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";
/// let body = br#"{"event":"payment","data":{"externalTransactionId":"order_1","paymentStatus":"CON","referenceNumber":"01JC4E9V7Q3M8Y5T2K6R1N0WXZ","amount":15000}}"#;
/// let header = "818358aea5aed12fb8499296c1e37ef4c095628fee94a3be0ef1b5b5112b233c";
///
/// let event = verify_webhook(body, Some(header), secret).unwrap();
/// assert_eq!((event.status, event.amount), (PaymentStatus::Confirmed, Some(15_000)));
///
/// // One byte more, and nothing is read.
/// assert!(verify_webhook(&[body, &b"\n"[..]].concat(), Some(header), secret).is_err());
/// ```
pub fn verify_webhook(
    raw_body: &[u8],
    header: Option<&str>,
    secret: &str,
) -> Result<PaymentEvent, WebhookError> {
    verify_webhook_with(raw_body, header, &[secret])
}

/// Anybody can sign with a secret that is empty. Ours are longer than this.
const SECRET_BYTES_MIN: usize = 24;

/// The same while a secret is replaced: any of these secrets will do. One that is too short to be ours, such as
/// a setting that is empty, verifies nothing.
pub fn verify_webhook_with(
    raw_body: &[u8],
    header: Option<&str>,
    secrets: &[&str],
) -> Result<PaymentEvent, WebhookError> {
    let given = header.unwrap_or_default();
    // One form only: 64 lower-case hex digits. Others are refused before a digit is compared.
    let hex_digits = given.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if given.len() != 64 || !hex_digits {
        return Err(WebhookError::Signature);
    }
    let given = hex::decode(given).map_err(|_| WebhookError::Signature)?;
    let long_enough = |secret: &&&str| secret.len() >= SECRET_BYTES_MIN;
    let signed = secrets.iter().filter(long_enough).any(|secret| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        hmac::verify(&key, raw_body, &given).is_ok()
    });
    if !signed {
        return Err(WebhookError::Signature);
    }
    read(raw_body)
}

#[derive(Deserialize)]
struct Body {
    event: String,
    data: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    external_transaction_id: String,
    payment_status: Value,
    #[serde(default)]
    reference_number: Value,
    #[serde(default)]
    amount: Value,
}

fn read(raw_body: &[u8]) -> Result<PaymentEvent, WebhookError> {
    let wrong = |fault: &dyn std::fmt::Display| WebhookError::Body(fault.to_string());
    let body: Body = serde_json::from_slice(raw_body).map_err(|fault| wrong(&fault))?;
    if body.event != "payment" {
        return Err(WebhookError::Ignored(format!("event {}", body.event)));
    }
    let data = body.data.ok_or_else(|| wrong(&"data is missing"))?;
    let data: Data = serde_json::from_value(data).map_err(|fault| wrong(&fault))?;
    let status = data.payment_status.as_str().and_then(PaymentStatus::from_code);
    let status =
        status.ok_or_else(|| WebhookError::Ignored(format!("status {}", data.payment_status)))?;
    Ok(PaymentEvent {
        external_transaction_id: data.external_transaction_id,
        status,
        reference_number: data.reference_number.as_str().map(str::to_owned),
        amount: data.amount.as_i64(),
    })
}
