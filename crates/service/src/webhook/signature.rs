//! The headers that let a merchant trust an event, while its secret may be changing (spec 5.3).

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;

use crate::app::App;
use crate::domain::EventId;
use crate::keys::KeyError;
use crate::store::Application;

const CONTENT_TOKEN: HeaderName = HeaderName::from_static("x-svc-content-token");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Signed at every attempt with the secrets of that moment: a retry never carries a retired one.
pub(crate) fn signature_headers(
    app: &App,
    application: &Application,
    id: &EventId,
    body: &[u8],
    now: Timestamp,
) -> Result<HeaderMap, KeyError> {
    let signer = |sealed: &[u8]| app.signers.signer(&app.keys, sealed);
    let current = signer(&application.webhook_secret)?;
    let previous = application.previous_webhook_secret.as_ref().filter(|old| now < old.until);
    let mut signatures = current.sign_standard(id.as_str(), now, body).unwrap_or_default();
    // The spec's header has room for one signature only: a second would break its length.
    let mut content_token = None;
    if let Some(old) = previous {
        let previous = signer(&old.sealed)?;
        if let Some(signature) = previous.sign_standard(id.as_str(), now, body) {
            signatures = format!("{signatures} {signature}");
        }
        if now < old.switch_at {
            content_token = Some(previous.sign(body));
        }
    }
    let content_token = content_token.unwrap_or_else(|| current.sign(body));
    let value = |text: String| HeaderValue::try_from(text).expect("signatures and ids are ASCII");
    Ok(HeaderMap::from_iter([
        (CONTENT_TOKEN, value(content_token)),
        (WEBHOOK_ID, value(id.as_str().to_owned())),
        (WEBHOOK_TIMESTAMP, now.as_second().into()),
        (WEBHOOK_SIGNATURE, value(signatures)),
    ]))
}
