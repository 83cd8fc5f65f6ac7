//! The headers of a delivery, as the service sets them.

use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use jiff::Timestamp;
use svc_service::domain::{EventId, sign, sign_standard};

const AGENT: &str = concat!("svc-webhooks/", env!("CARGO_PKG_VERSION"));

pub(crate) fn signed_headers(
    secret: &str,
    id: &EventId,
    body: &[u8],
    attempt: u32,
    now: Timestamp,
) -> HeaderMap {
    let value = |text: String| HeaderValue::try_from(text).expect("signatures and ids are ASCII");
    let mut headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (USER_AGENT, HeaderValue::from_static(AGENT)),
        (HeaderName::from_static("x-svc-delivery-attempt"), attempt.into()),
        (HeaderName::from_static("x-svc-content-token"), value(sign(secret, body))),
        (HeaderName::from_static("webhook-id"), value(id.as_str().to_owned())),
        (HeaderName::from_static("webhook-timestamp"), now.as_second().into()),
    ]);
    // A secret that is not of the form whsec_… has no signature of this kind.
    if let Some(signature) = sign_standard(secret, id.as_str(), now, body) {
        headers.insert(HeaderName::from_static("webhook-signature"), value(signature));
    }
    headers
}
