//! Reading bodies: the right type, at most so many bytes, within a time, and typed JSON.

use std::task::Poll;
use std::time::Duration;

use axum::body::{Body as RawBody, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::{DeserializeOwned, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use tokio::time::error::Elapsed;

use super::answer::Exchange;
use super::error::{ApiError, TokenFault};
use super::issues::{FieldFault, Issue};
use super::query::Pairs;
use super::redact::redacted;

pub(crate) const JSON_BYTES_MAX: usize = 64 * 1024;
pub(crate) const FORM_BYTES_MAX: usize = 8 * 1024;
/// What some editors put before UTF-8; JSON has no place for it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Shorter than the limit of the whole request, so that a slow body is told as what it is.
const BODY_TIMEOUT: Duration = Duration::from_secs(8);

/// A JSON body, parsed into a wire struct; whatever is wrong with it is told as 415, 413 or 422.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        expect_type(&parts.headers, "application/json")?;
        let bytes = read(&parts.headers, body, JSON_BYTES_MAX).await?;
        if let Some(trace) = Exchange::trace_of(&parts) {
            trace.body(redacted(&bytes));
        }
        // serde would also take a list of the values in the order of the fields.
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            let issue = match bytes.starts_with(BYTE_ORDER_MARK) {
                true => Issue::ByteOrderMark,
                false => Issue::NotAJsonObject,
            };
            return Err(ApiError::InvalidBody(vec![FieldFault::new("body", issue)]));
        }
        serde_json::from_slice(&bytes).map(Body).map_err(|_| explain::<T>(&bytes))
    }
}

/// A whole number of the wire. One beyond what we hold is told as too large or too small, not as no number, as
/// long as the parser can read it.
pub(crate) fn whole_number<'de, D: Deserializer<'de>>(source: D) -> Result<Option<i64>, D::Error> {
    Option::<WholeNumber>::deserialize(source).map(|given| given.map(|WholeNumber(value)| value))
}

struct WholeNumber(i64);

impl<'de> Deserialize<'de> for WholeNumber {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_i64(WholeNumberVisitor)
    }
}

struct WholeNumberVisitor;

impl Visitor<'_> for WholeNumberVisitor {
    type Value = WholeNumber;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("i64")
    }

    fn visit_i64<E>(self, value: i64) -> Result<WholeNumber, E> {
        Ok(WholeNumber(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<WholeNumber, E> {
        Ok(WholeNumber(i64::try_from(value).unwrap_or(i64::MAX)))
    }

    /// As the parser reads what fits neither.
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<WholeNumber, E> {
        const BEYOND: f64 = i64::MAX as f64;
        match value {
            BEYOND.. => Ok(WholeNumber(i64::MAX)),
            _ if value <= -BEYOND => Ok(WholeNumber(i64::MIN)),
            _ => Err(E::invalid_type(Unexpected::Float(value), &self)),
        }
    }
}

/// One field through its door; what is wrong is noted and the others go on.
pub(crate) fn field<Given, Value, Fault: Into<Issue>>(
    faults: &mut Vec<FieldFault>,
    name: &'static str,
    given: Option<Given>,
    parse: impl FnOnce(Given) -> Result<Value, Fault>,
) -> Option<Value> {
    let parsed = match given {
        Some(given) => parse(given).map_err(Into::into),
        None => Err(Issue::Required),
    };
    parsed.map_err(|issue| faults.push(FieldFault::new(name, issue))).ok()
}

/// The bytes of a JSON body, exactly as they came: a signature is over them.
pub(crate) async fn read_json_bytes(headers: &HeaderMap, body: RawBody) -> Result<Bytes, ApiError> {
    expect_type(headers, "application/json")?;
    read(headers, body, JSON_BYTES_MAX).await
}

/// What a browser tells of a page's policy.
pub(crate) async fn read_policy_report(
    headers: &HeaderMap,
    body: RawBody,
) -> Result<Bytes, ApiError> {
    expect_type(headers, "application/csp-report")?;
    read(headers, body, FORM_BYTES_MAX).await
}

/// The names and values of a form body.
pub(crate) async fn read_form(headers: &HeaderMap, body: RawBody) -> Result<Pairs, ApiError> {
    expect_type(headers, "application/x-www-form-urlencoded")?;
    let bytes = read(headers, body, FORM_BYTES_MAX).await?;
    let pairs = Pairs::of_form(&bytes);
    // Decoding would replace broken UTF-8 and hide what was sent.
    let broken = |text: &str| text.contains(['\0', '\u{FFFD}']);
    if pairs.iter().any(|(name, value)| broken(name) || broken(value)) {
        return Err(ApiError::InvalidRequest(TokenFault::Form));
    }
    Ok(pairs)
}

/// Exactly this type, in UTF-8, not compressed.
fn expect_type(headers: &HeaderMap, expected: &'static str) -> Result<(), ApiError> {
    let encoded = headers.get(header::CONTENT_ENCODING).is_some_and(|value| value != "identity");
    let mut given = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(only), None, false) = (given.next(), given.next(), encoded) else {
        return Err(ApiError::UnsupportedMediaType(expected));
    };
    let text = only.to_str().map_err(|_| ApiError::UnsupportedMediaType(expected))?;
    let mut parts = text.split(';').map(str::trim);
    let right_type = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(expected));
    let right_charset = parts.all(|parameter| match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
            value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    });
    if right_type && right_charset { Ok(()) } else { Err(ApiError::UnsupportedMediaType(expected)) }
}

async fn read(headers: &HeaderMap, body: RawBody, max: usize) -> Result<Bytes, ApiError> {
    // A length that is announced too large is refused before a byte of it is read.
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse::<u64>().ok());
    if announced.is_some_and(|length| length > max as u64) {
        return Err(ApiError::PayloadTooLarge);
    }
    match within(BODY_TIMEOUT, Limited::new(body, max).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(fault)) if fault.is::<LengthLimitError>() => Err(ApiError::PayloadTooLarge),
        // Broken chunks, or a sender that broke off.
        Ok(Err(_)) => Err(ApiError::MalformedRequest),
        Err(_) => Err(ApiError::RequestTimeout),
    }
}

/// A timer is set only for what is not there at once: most bodies come with their head.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut work = std::pin::pin!(work);
    let at_once = std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
    match at_once {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => tokio::time::timeout(limit, work).await,
    }
}

/// Parses once more, slowly, to name the field that is wrong.
fn explain<T: DeserializeOwned>(bytes: &[u8]) -> ApiError {
    let whole = |issue| ApiError::InvalidBody(vec![FieldFault::new("body", issue)]);
    if std::str::from_utf8(bytes).is_err() {
        return whole(Issue::NotUtf8);
    }
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let fault = match serde_path_to_error::deserialize::<_, T>(&mut parser) {
        Err(fault) => fault,
        // The document is fine, so something follows it.
        Ok(_) => return whole(Issue::NotJson),
    };
    let path = fault.path().to_string();
    let inner = fault.inner().to_string();
    let field = |fallback: &str| if path == "." { fallback.to_owned() } else { path.clone() };
    let fault = match fault.inner().classify() {
        serde_json::error::Category::Data if inner.starts_with("duplicate field") => {
            let name = inner.split('`').nth(1).unwrap_or("body");
            FieldFault::new(name, Issue::Duplicate)
        }
        serde_json::error::Category::Data if inner.contains("expected i64") => {
            FieldFault::new(field("body"), Issue::NotAnInteger)
        }
        serde_json::error::Category::Data if inner.contains("expected a string") => {
            let is_object = path == "additionalInfo" && inner.contains("invalid type: map");
            let issue = if is_object { Issue::NotStringified } else { Issue::NotAString };
            FieldFault::new(field("body"), issue)
        }
        serde_json::error::Category::Data => FieldFault::new(field("body"), Issue::NotAnObject),
        // A number too large for the parser is a number too large for us.
        _ if inner.starts_with("number out of range") => {
            FieldFault::new(field("body"), Issue::NotAnInteger)
        }
        _ => FieldFault::new("body", Issue::NotJson),
    };
    ApiError::InvalidBody(vec![fault])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::language::Language;
    use crate::http::messages::message;

    #[test]
    fn bytes_that_no_parser_takes_are_told_for_what_they_are() {
        for (bytes, told) in [
            (&b"{\"name\":\"A\xe7\xfacar\"}"[..], "UTF-8"),
            (b"{", "valid JSON"),
            (b"{} {}", "valid JSON"),
        ] {
            let said = message(&explain::<serde_json::Value>(bytes), Language::En);
            assert!(said.contains(told), "{said}");
        }
    }
}
