//! One HTTP exchange, with limits.

use std::io::ErrorKind;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use url::Url;

use crate::error::{Error, ErrorReply};

/// The service itself answers within ten seconds, if only to say that it cannot.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(12);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

pub(crate) struct Http {
    /// For messages: without what may be secret in a URL.
    address: String,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    timeout: Duration,
}

pub(crate) struct Call<'a> {
    pub method: Method,
    pub url: String,
    pub authorization: &'a str,
    pub content_type: &'static str,
    pub language: &'static str,
    pub body: String,
}

impl Http {
    pub(crate) fn new(service: &Url) -> Result<Self, Error> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::aws_lc_rs::default_provider())
            .map_err(|fault| Error::Settings(format!("no certificate authorities: {fault}")))?
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .build(connector);
        let address = service.origin().ascii_serialization();
        Ok(Self { address, client, timeout: EXCHANGE_TIMEOUT })
    }

    pub(crate) fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// The body of a 2xx; everything else is an error.
    pub(crate) async fn send(&self, call: Call<'_>) -> Result<Bytes, Error> {
        let request = Request::builder()
            .method(call.method)
            .uri(call.url)
            .header("authorization", call.authorization)
            .header("content-type", call.content_type)
            .header("accept-language", call.language)
            .header("user-agent", concat!("svc-client/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::from(call.body)))
            .map_err(|fault| Error::Settings(fault.to_string()))?;
        let exchange = async {
            let answer = self.client.request(request).await.map_err(|f| self.unreachable(&f))?;
            let status = answer.status();
            let retry_after = answer.headers().get("retry-after");
            let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
            let bytes = body.map_err(|fault| self.unreachable(fault.as_ref()))?.to_bytes();
            match status.is_success() {
                true => Ok(bytes),
                false => {
                    let asked = retry_after.map(Duration::from_secs);
                    let told = ErrorReply::read(status.as_u16(), &bytes, asked);
                    Err(told.unwrap_or_else(|| self.foreign(status.as_u16(), asked)))
                }
            }
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(answered) => answered,
            Err(_) => Err(Error::TimedOut),
        }
    }

    pub(crate) fn foreign(&self, status: u16, retry_after: Option<Duration>) -> Error {
        Error::Foreign { address: self.address.clone(), status, retry_after }
    }

    /// A success that is not what was asked for.
    pub(crate) fn malformed(&self, why: impl std::fmt::Display) -> Error {
        let address = &self.address;
        Error::Malformed(format!(
            "{address} does not answer like this service: {why}; is SVC_BASE_URL right?"
        ))
    }

    fn unreachable(&self, fault: &(dyn std::error::Error + 'static)) -> Error {
        let why = innermost(fault);
        let question = match &*why {
            REFUSED => "Is the service running?",
            _ if why.contains("InvalidContentType") => "That port does not speak TLS: is it http?",
            _ => "Is SVC_BASE_URL right?",
        };
        Error::Unreachable(format!("{} cannot be reached: {why}. {question}", self.address))
    }
}

const REFUSED: &str = "connection refused";

/// The interesting part is in the last cause.
fn innermost(fault: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = fault;
    while let Some(cause) = inner.source() {
        inner = cause;
    }
    let kind = inner.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    match kind {
        Some(ErrorKind::ConnectionRefused) => REFUSED.to_owned(),
        _ => inner.to_string(),
    }
}
