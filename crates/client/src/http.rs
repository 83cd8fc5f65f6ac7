//! One HTTP exchange, with limits.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::error::{Error, ErrorReply};

/// The service itself answers within ten seconds, if only to say that it cannot.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(12);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

pub(crate) struct Http {
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
    pub(crate) fn new() -> Result<Self, Error> {
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
        Ok(Self { client, timeout: EXCHANGE_TIMEOUT })
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
            let unreachable = |fault: &dyn std::error::Error| Error::Unreachable(chain(fault));
            let answer = self.client.request(request).await.map_err(|f| unreachable(&f))?;
            let status = answer.status();
            let retry_after = answer.headers().get("retry-after");
            let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
            let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
            let bytes = body.map_err(|fault| Error::Unreachable(fault.to_string()))?.to_bytes();
            match status.is_success() {
                true => Ok(bytes),
                false => {
                    let asked = retry_after.map(Duration::from_secs);
                    Err(ErrorReply::read(status.as_u16(), &bytes, asked))
                }
            }
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(answered) => answered,
            Err(_) => Err(Error::TimedOut),
        }
    }
}

/// The interesting part ("connection refused") is in the cause.
fn chain(fault: &dyn std::error::Error) -> String {
    let mut told = fault.to_string();
    let mut cause = fault.source();
    while let Some(inner) = cause {
        told = format!("{told}: {inner}");
        cause = inner.source();
    }
    told
}
