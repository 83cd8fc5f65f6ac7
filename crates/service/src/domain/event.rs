//! The webhook: its bytes, serialised once, and its signature (spec 5.3, 6).

use aws_lc_rs::hmac;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde::Serialize;
use ulid::Ulid;

use super::ids::ulid;
use super::{ApplicationId, ExternalTransactionId, Kwanza, ReferenceNumber, Status, Terms};

/// Identifies one event across every attempt to deliver it (`webhook-id`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(String);

impl EventId {
    pub fn assign(at: Timestamp, random: [u8; 10]) -> Self {
        Self(format!("evt_{}", ulid(at, random)))
    }

    /// Not after any event of this moment or later: a range of times is a range of ids.
    pub fn lowest_at(at: Timestamp) -> Self {
        Self::assign(at, [0; 10])
    }

    /// What the store kept.
    pub fn restore(stored: String) -> Self {
        Self(stored)
    }

    /// What a person or a partner gives us back.
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.strip_prefix("evt_")?.parse::<Ulid>().ok()?;
        // One spelling only: ids are compared as texts.
        Some(Self(format!("evt_{id}"))).filter(|parsed| parsed.0 == text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<EventId> for String {
    fn from(id: EventId) -> Self {
        id.0
    }
}

/// Where events of an application go: events of one lane share connections, and the fate of the
/// host at their end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    pub application: ApplicationId,
    /// `scheme://host:port`.
    pub origin: String,
}

impl Lane {
    /// The URL is in its normal form, so the host ends at the third slash.
    pub fn of(application: ApplicationId, webhook_url: &str) -> Self {
        let host = webhook_url.find("://").map_or(0, |scheme| scheme + 3);
        let end = webhook_url[host..].find('/').map_or(webhook_url.len(), |path| host + path);
        Self { application, origin: webhook_url[..end].to_owned() }
    }
}

/// One report of an order's state, as it waits in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub id: EventId,
    pub lane: Lane,
    pub status: Status,
    /// The very bytes every attempt sends.
    pub body: Vec<u8>,
    pub webhook_url: String,
    pub at: Timestamp,
}

/// The only type of the domain that serde writes: these bytes are the contract.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WebhookBody<'a> {
    event: &'static str,
    data: WebhookData<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WebhookData<'a> {
    external_transaction_id: &'a str,
    payment_status: &'static str,
    reference_number: &'a str,
    amount: i64,
}

/// The order an event tells of.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub application: ApplicationId,
    pub external_transaction_id: &'a ExternalTransactionId,
    pub reference_number: &'a ReferenceNumber,
    pub terms: &'a Terms,
}

impl Event {
    pub(super) fn new(id: EventId, status: Status, of: Subject<'_>, at: Timestamp) -> Self {
        let Terms { amount, additional_info, .. } = of.terms;
        let body = body(of.external_transaction_id, status, of.reference_number, *amount);
        let webhook_url = additional_info.webhook_url();
        Self { id, lane: Lane::of(of.application, &webhook_url), status, body, webhook_url, at }
    }
}

fn body(
    external_transaction_id: &ExternalTransactionId,
    status: Status,
    reference_number: &ReferenceNumber,
    amount: Kwanza,
) -> Vec<u8> {
    let body = WebhookBody {
        event: "payment",
        data: WebhookData {
            external_transaction_id: external_transaction_id.as_str(),
            payment_status: status.code(),
            reference_number: reference_number.as_str(),
            amount: amount.get(),
        },
    };
    serde_json::to_vec(&body).expect("strings and integers always serialise")
}

/// A webhook secret, ready to sign: its two keys are made once.
pub struct Signer {
    /// Of the secret exactly as the merchant holds it, `whsec_` included.
    content: hmac::Key,
    /// Of what `whsec_` wraps, decoded; `None` when the secret is not of that form.
    standard: Option<hmac::Key>,
}

impl Signer {
    pub fn new(webhook_secret: &str) -> Self {
        let key = |bytes: &[u8]| hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let wrapped = webhook_secret.strip_prefix("whsec_");
        let wrapped = wrapped.and_then(|text| STANDARD.decode(text).ok());
        Self { content: key(webhook_secret.as_bytes()), standard: wrapped.map(|bytes| key(&bytes)) }
    }

    /// `x-svc-content-token`: 64 lower-case hex digits of HMAC-SHA256 over the raw body (spec 5.3).
    pub fn sign(&self, body: &[u8]) -> String {
        hex::encode(hmac::sign(&self.content, body))
    }

    /// One entry of the Standard Webhooks `webhook-signature` header.
    pub fn sign_standard(&self, id: &str, at: Timestamp, body: &[u8]) -> Option<String> {
        let mut signer = hmac::Context::with_key(self.standard.as_ref()?);
        signer.update(format!("{id}.{}.", at.as_second()).as_bytes());
        signer.update(body);
        Some(format!("v1,{}", STANDARD.encode(signer.sign())))
    }
}

/// As [`Signer::sign`], for one signature.
pub fn sign(webhook_secret: &str, body: &[u8]) -> String {
    Signer::new(webhook_secret).sign(body)
}

/// As [`Signer::sign_standard`], for one signature.
pub fn sign_standard(webhook_secret: &str, id: &str, at: Timestamp, body: &[u8]) -> Option<String> {
    Signer::new(webhook_secret).sign_standard(id, at, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn confirmed() -> Vec<u8> {
        body(
            &ExternalTransactionId::parse("order_1").unwrap(),
            Status::Confirmed,
            &ReferenceNumber::parse("01JC4E9V0000000000000000AB").unwrap(),
            Kwanza::parse(15_000).unwrap(),
        )
    }

    #[test]
    fn the_body_is_exactly_the_specs() {
        let expected = concat!(
            r#"{"event":"payment","data":{"externalTransactionId":"order_1","paymentStatus":"CON","#,
            r#""referenceNumber":"01JC4E9V0000000000000000AB","amount":15000}}"#
        );
        assert_eq!(String::from_utf8(confirmed()).unwrap(), expected);
    }

    #[test]
    fn a_lane_is_the_scheme_host_and_port() {
        for (url, origin) in [
            ("https://a.ao/hook", "https://a.ao"),
            ("https://a.ao:8443/", "https://a.ao:8443"),
            ("http://[::1]:3000/a/b?c=/d", "http://[::1]:3000"),
        ] {
            assert_eq!(Lane::of(ApplicationId(1), url).origin, origin);
        }
    }

    #[test]
    fn signatures_match_published_vectors() {
        // RFC 4231, test case 2: key "Jefe".
        assert_eq!(
            sign("Jefe", b"what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        // The example of the Standard Webhooks specification.
        let signature = sign_standard(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            Timestamp::from_second(1_614_265_330).unwrap(),
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(signature.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    proptest! {
        #[test]
        fn a_signature_is_64_lower_case_hex_digits_and_depends_on_every_byte(
            secret in "[ -~]{1,64}", at in any::<prop::sample::Index>()
        ) {
            let body = confirmed();
            let signature = sign(&secret, &body);
            prop_assert_eq!(signature.len(), 64);
            prop_assert!(signature.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')));
            let mut changed = body.clone();
            changed[at.index(body.len())] ^= 1;
            prop_assert_ne!(sign(&secret, &changed), signature);
        }
    }
}
