//! One HTTP exchange of a tool: a connection of its own, a time limit, no redirects.

use std::io::ErrorKind;
use std::time::Duration;

use anyhow::Context;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::HeaderMap;
use hyper::{Method, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use url::Url;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Nothing a tool asks for is longer.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// An address that a tool calls.
pub(crate) fn address(text: &str) -> Result<Url, String> {
    let read = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    read.ok_or_else(|| "write it like http://127.0.0.1:3000/api/svc/webhook".to_owned())
}

/// Cheap to clone; nothing is kept between two calls, so that each is as a stranger's.
#[derive(Clone)]
pub(crate) struct Http(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// What came, and how long it took.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub answer: Result<Answer, Silence>,
    pub took: Duration,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Silence {
    #[error("{0}")]
    Unreachable(String),
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
}

impl Http {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::aws_lc_rs::default_provider())
            .context("this machine has no certificate authorities; install ca-certificates")?
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let mut client = Client::builder(TokioExecutor::new());
        Ok(Self(client.pool_max_idle_per_host(0).build(connector)))
    }

    pub(crate) async fn get(&self, url: &str, timeout: Duration) -> Exchange {
        self.send(Method::GET, url, HeaderMap::new(), Vec::new(), timeout).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        timeout: Duration,
    ) -> Exchange {
        let started = tokio::time::Instant::now();
        let exchange = self.exchange(method, url, headers, body);
        let answer = match tokio::time::timeout(timeout, exchange).await {
            Ok(answered) => answered,
            Err(_) => Err(Silence::TimedOut(timeout)),
        };
        Exchange { answer, took: started.elapsed() }
    }

    async fn exchange(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, Silence> {
        let broken =
            |fault: &(dyn std::error::Error + 'static)| Silence::Unreachable(innermost(fault));
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = method;
        *request.uri_mut() = url.parse().map_err(|fault| broken(&fault))?;
        *request.headers_mut() = headers;
        let answer = self.0.request(request).await.map_err(|fault| broken(&fault))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|fault| broken(fault.as_ref()))?.to_bytes();
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
    }
}

/// The interesting part ("connection refused") is in the last cause.
fn innermost(fault: &(dyn std::error::Error + 'static)) -> String {
    let mut inner = fault;
    while let Some(cause) = inner.source() {
        inner = cause;
    }
    match inner.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
        Some(kind @ ErrorKind::ConnectionRefused) => kind.to_string(),
        _ => inner.to_string(),
    }
}
