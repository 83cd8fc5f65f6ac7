//! One POST to a merchant: five seconds for all of it, and no more of the answer than we keep.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Display;
use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode, Uri};
use jiff::Timestamp;
use rustls::InvalidMessage;

use super::connections::{Connections, SenderError};
use super::guard::GuardError;
use super::limits::{ANSWER_BYTES_MAX, EXCHANGE_TIMEOUT};
use crate::app::Clock;
use crate::config::WebhookConfig;
use crate::domain::{Failure, Steady, UrlRules};
use crate::faults;

/// Kept of an answer, for those who look.
const ANSWER_BYTES_KEPT: usize = 512;
const USER_AGENT_VALUE: &str = concat!("svc-webhooks/", env!("CARGO_PKG_VERSION"));
const DELIVERY_ATTEMPT: HeaderName = HeaderName::from_static("x-svc-delivery-attempt");

/// When a POST begins (now), and by when it ends at the latest, because its event may be somebody else's then.
pub(super) struct Times<'a> {
    pub clock: &'a Clock,
    pub at: Timestamp,
    pub until: Steady,
}

/// What came of a POST.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub failure: Option<Failure>,
    pub http_status: Option<u16>,
    /// For people: why it failed, when the status does not say it.
    pub error: Option<String>,
    pub answer_start: Vec<u8>,
    pub retry_after: Option<Duration>,
}

impl Outcome {
    /// Parts of the text may be the merchant's: what no terminal and no database takes is left out.
    pub(super) fn failed(failure: Failure, error: impl Into<String>) -> Self {
        let mut error = error.into();
        error.retain(|c| !c.is_control());
        Self { failure: Some(failure), error: Some(error), ..Self::default() }
    }
}

pub(super) struct Sender {
    connections: Connections,
    rules: UrlRules,
    /// URLs that passed the rules, which do not change while the service runs.
    passed: Mutex<HashMap<String, Uri>>,
}

const PASSED_MAX: usize = 1_024;
impl Sender {
    pub(super) fn new(config: &WebhookConfig, rules: UrlRules) -> Result<Self, SenderError> {
        let connections = Connections::new(config, rules.private_targets)?;
        Ok(Self { connections, rules, passed: Mutex::default() })
    }

    /// Sends these very bytes; the signature headers are the caller's.
    pub(super) async fn post(
        &self,
        url: &str,
        attempt: u32,
        signatures: HeaderMap,
        body: Vec<u8>,
        times: Times<'_>,
    ) -> Outcome {
        let Times { clock, at: now, until } = times;
        let uri = match self.checked(url) {
            Ok(uri) => uri,
            Err(why) => return Outcome::failed(Failure::Refused, why),
        };
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        *request.headers_mut() = signatures;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE));
        headers.insert(DELIVERY_ATTEMPT, attempt.into());
        let exchange = async {
            let answer = self
                .connections
                .client(now)
                .request(request)
                .await
                .map_err(|fault| failure(&fault))?;
            read(answer, now).await
        };
        if let Err(fault) = faults::pass("before a webhook is sent") {
            return Outcome::failed(Failure::Broken, fault.to_string());
        }
        let deadline = until.min(clock.steady().after(EXCHANGE_TIMEOUT));
        let exchanged = in_time(clock, deadline, exchange).await;
        if let Err(fault) = faults::pass("after a webhook was sent") {
            return Outcome::failed(Failure::Broken, fault.to_string());
        }
        match exchanged {
            Ok(Ok(outcome) | Err(outcome)) => outcome,
            Err(Late) => Outcome::failed(Failure::Timeout, "no complete answer within 5 seconds"),
        }
    }

    /// The rules at creation may have been others, and an IP literal meets no look-up.
    fn checked(&self, url: &str) -> Result<Uri, String> {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(uri) = passed.get(url) {
            return Ok(uri.clone());
        }
        self.rules.webhook(url).map_err(|issue| format!("the URL {issue}"))?;
        let uri = Uri::try_from(url).map_err(|_| "the URL cannot be requested")?;
        if passed.len() >= PASSED_MAX {
            passed.clear();
        }
        passed.insert(url.to_owned(), uri.clone());
        Ok(uri)
    }
}

struct Late;

/// A node that stood still (a machine that slept, say) must not go on with what another may have taken over
/// meanwhile: the time is looked at before the work, which `timeout` does afterwards, and by a clock that does not
/// sleep.
async fn in_time<T>(
    clock: &Clock,
    deadline: Steady,
    work: impl Future<Output = T>,
) -> Result<T, Late> {
    let mut work = std::pin::pin!(work);
    let looking = std::future::poll_fn(|context| match clock.steady() >= deadline {
        true => Poll::Ready(Err(Late)),
        false => work.as_mut().poll(context).map(Ok),
    });
    let left = deadline.duration_since(clock.steady());
    tokio::time::timeout(left, looking).await.unwrap_or(Err(Late))
}

/// Judges by the status, once the answer has ended or is longer than we read.
async fn read<B>(answer: Response<B>, now: Timestamp) -> Result<Outcome, Outcome>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    let (head, mut body) = answer.into_parts();
    let status = head.status;
    let mut start = Vec::new();
    let mut bytes_read = 0;
    while bytes_read < ANSWER_BYTES_MAX && !body.is_end_stream() {
        let frame = match body.frame().await {
            None => break,
            Some(Ok(frame)) => frame,
            Some(Err(fault)) => {
                let broken = Outcome::failed(Failure::Broken, format!("the answer broke: {fault}"));
                return Err(Outcome { http_status: Some(status.as_u16()), ..broken });
            }
        };
        let data = frame.into_data().unwrap_or_default();
        bytes_read += data.len();
        let kept = data.len().min(ANSWER_BYTES_KEPT - start.len());
        start.extend_from_slice(&data[..kept]);
    }
    Ok(Outcome {
        failure: match status {
            StatusCode::GONE => Some(Failure::Gone),
            _ => (!status.is_success()).then_some(Failure::Status),
        },
        http_status: Some(status.as_u16()),
        error: explained(status).map(str::to_owned),
        answer_start: start,
        retry_after: retry_after(&head.headers, now),
    })
}

/// What the number alone does not tell a merchant.
fn explained(status: StatusCode) -> Option<&'static str> {
    match status {
        _ if status.is_redirection() => Some("redirects are not followed: give the final URL"),
        StatusCode::GONE => {
            Some("410 does not end the delivery of a payment: it is tried every few hours")
        }
        _ => None,
    }
}

/// Seconds, or the date of HTTP.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Duration::try_from(date.duration_since(now)).ok()
}

/// Finds the real reason among the causes.
fn failure(fault: &hyper_util::client::legacy::Error) -> Outcome {
    let mut cause: Option<&(dyn Error + 'static)> = Some(fault);
    let mut deepest = fault.to_string();
    while let Some(current) = cause {
        deepest = current.to_string();
        if let Some(guard) = current.downcast_ref::<GuardError>() {
            let failure = match guard {
                GuardError::NoSuchHost(_) | GuardError::NotFound(_) => Failure::Dns,
                GuardError::NotPublic => Failure::Refused,
            };
            return Outcome::failed(failure, deepest);
        }
        let io = current.downcast_ref::<std::io::Error>();
        // `io::Error` keeps what it wraps out of the chain of causes, and the connector wraps what
        // TLS wrapped once more.
        let wrapped = io.and_then(|io| io.get_ref());
        let wrapped = wrapped.and_then(|inner| match inner.downcast_ref::<std::io::Error>() {
            Some(io) => io.get_ref(),
            None => Some(inner),
        });
        if let Some(tls) = wrapped.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Outcome::failed(Failure::Tls, explained_tls(tls));
        }
        match io.map(std::io::Error::kind) {
            Some(ErrorKind::TimedOut) => {
                return Outcome::failed(Failure::Timeout, "no connection within 3 seconds");
            }
            Some(ErrorKind::ConnectionRefused) => {
                return Outcome::failed(Failure::Connect, "connection refused");
            }
            _ => {}
        }
        cause = current.source();
    }
    let failure = if fault.is_connect() { Failure::Connect } else { Failure::Broken };
    Outcome::failed(failure, deepest)
}

fn explained_tls(fault: &rustls::Error) -> String {
    match fault {
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server at this port does not speak TLS: is it http?".to_owned()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::Context;

    use hyper::body::Frame;

    use super::*;

    /// An answer that goes on and on, and how many frames of it were read.
    struct Endless(usize);

    impl Endless {
        const FRAME: usize = 1_000;
    }

    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0 += 1;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; Self::FRAME])))))
        }
    }

    #[tokio::test]
    async fn what_stood_still_too_long_is_not_gone_on_with() {
        let clock = Clock::system();
        let (deadline, mut steps) = (clock.steady().after(Duration::from_millis(500)), 0);
        let work = async {
            steps += 1;
            // The whole thread stands still, as a stopped process does; then all is ready at once.
            while clock.steady() < deadline {
                std::hint::spin_loop();
            }
            tokio::task::yield_now().await;
            steps += 1;
        };
        assert!(in_time(&clock, deadline, work).await.is_err());
        assert_eq!(steps, 1);
        let begun = std::cell::Cell::new(false);
        assert!(in_time(&clock, deadline, async { begun.set(true) }).await.is_err());
        assert!(!begun.get(), "what is late from the start is not begun");
    }

    #[tokio::test]
    async fn of_an_endless_answer_no_more_is_read_than_we_say() {
        let mut endless = Endless(0);
        let outcome = read(Response::new(&mut endless), Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!((outcome.http_status, outcome.answer_start), (Some(200), vec![b'x'; 512]));
        assert_eq!(endless.0, ANSWER_BYTES_MAX.div_ceil(Endless::FRAME));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Timestamp::from_second(784_111_777 - 90).unwrap();
        let asked = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            retry_after(&headers, now)
        };
        assert_eq!(asked("120"), Some(Duration::from_secs(120)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(90)));
        for senseless in ["", "soon", "-5", "1.5", "Sun, 06 Nov 1984 08:49:37 GMT"] {
            assert_eq!(asked(senseless), None, "{senseless}");
        }
    }
}
