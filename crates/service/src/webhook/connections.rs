//! Connections to merchants: how they are made, how many are kept, and for how long.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::Full;
use hyper::Uri;
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tower::Service;

use super::guard::Guard;
use super::limits::{ANSWER_BYTES_MAX, DESTINATION_MAX, EXCHANGE_TIMEOUT, IN_FLIGHT_MAX};
use crate::config::WebhookConfig;
use crate::tls;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// To one host. Many merchants may share it: none of their connections is closed only to be opened anew.
const IDLE_CONNECTIONS_MAX: usize = IN_FLIGHT_MAX;
const HEADERS_BYTES_MAX: usize = 16 * 1024;
/// Over HTTP/2 one connection carries all that goes to a destination: the answers of all of it that are not read yet.
const ANSWERS_BYTES_MAX: usize = DESTINATION_MAX as usize * ANSWER_BYTES_MAX;

/// A merchant that moves is found again within this and what its DNS says, or a minute.
const LIFE: Duration = Duration::from_secs(30);
/// Made with one client: each may be kept, and who sends us to ever new hosts must not use up what a process may open.
const OPENED_MAX: usize = 2_048;

#[derive(Debug, thiserror::Error)]
pub enum SenderError {
    #[error("the look-up of names cannot be set up ({0}); give name servers with --webhook-dns")]
    Dns(String),
    #[error("the certificates in {path} cannot be read: {fault}")]
    Certificates { path: PathBuf, fault: String },
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

type HttpClient = Client<HttpsConnector<Counted>, Full<Bytes>>;

pub(super) struct Connections {
    connector: HttpsConnector<Counted>,
    opened: Arc<AtomicUsize>,
    present: Mutex<Option<Present>>,
}

/// The client that keeps connections at present.
struct Present {
    client: HttpClient,
    since: Timestamp,
    /// How many were opened before it.
    opened: usize,
}

impl Connections {
    pub(super) fn new(config: &WebhookConfig, private_targets: bool) -> Result<Self, SenderError> {
        let guard = Guard::new(&config.name_servers, private_targets)
            .map_err(|fault| SenderError::Dns(fault.to_string()))?;
        let mut tcp = HttpConnector::new_with_resolver(guard);
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let opened: Arc<AtomicUsize> = Arc::default();
        // TLS 1.2 and 1.3, HTTP/2 where the merchant speaks it. Nothing here reads the
        // environment's proxies, follows a redirect, keeps a cookie or unpacks an answer.
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls::client(authorities(config.certificates.as_deref())?)?)
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(Counted { tcp, opened: Arc::clone(&opened) });
        Ok(Self { connector, opened, present: Mutex::default() })
    }

    /// Connections that are in use are kept for ever, and their names are not looked up again: all are
    /// made anew now and then.
    pub(super) fn client(&self, now: Timestamp) -> HttpClient {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.opened.load(Ordering::Relaxed);
        let is_over = |present: &Present| {
            opened.wrapping_sub(present.opened) >= OPENED_MAX
                || now.duration_since(present.since).unsigned_abs() >= LIFE
        };
        if present.as_ref().is_some_and(is_over) {
            *present = None;
        }
        let fresh = || Present { client: self.fresh(), since: now, opened };
        present.get_or_insert_with(fresh).client.clone()
    }

    fn fresh(&self) -> HttpClient {
        Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .http1_max_buf_size(HEADERS_BYTES_MAX)
            .http2_max_header_list_size(HEADERS_BYTES_MAX as u32)
            .http2_initial_stream_window_size(ANSWER_BYTES_MAX as u32)
            .http2_initial_connection_window_size(ANSWERS_BYTES_MAX as u32)
            // A host that is gone without a word is noticed, and the next request looks up its name anew.
            .http2_keep_alive_interval(EXCHANGE_TIMEOUT)
            .http2_keep_alive_timeout(EXCHANGE_TIMEOUT)
            .http2_keep_alive_while_idle(true)
            .build(self.connector.clone())
    }
}

/// Counts what it is asked to open.
#[derive(Clone)]
pub(super) struct Counted {
    tcp: HttpConnector<Guard>,
    opened: Arc<AtomicUsize>,
}

impl Service<Uri> for Counted {
    type Response = <HttpConnector<Guard> as Service<Uri>>::Response;
    type Error = <HttpConnector<Guard> as Service<Uri>>::Error;
    type Future = <HttpConnector<Guard> as Service<Uri>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.tcp.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.tcp.call(uri)
    }
}

/// The machine's trust store and, in a sandbox, a further file of authorities.
fn authorities(further: Option<&Path>) -> Result<rustls::RootCertStore, SenderError> {
    let mut roots = tls::trust_store();
    if let Some(path) = further {
        let unreadable = |fault: &dyn Display| SenderError::Certificates {
            path: path.to_owned(),
            fault: fault.to_string(),
        };
        let found = CertificateDer::pem_file_iter(path).map_err(|fault| unreadable(&fault))?;
        for certificate in found {
            roots.add(certificate.map_err(|fault| unreadable(&fault))?)?;
        }
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn after_so_many_connections_all_are_made_anew() {
        let merchant = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url: Uri = format!("http://{}/", merchant.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(async move {
            // It keeps no connection.
            while let Ok((mut stream, _)) = merchant.accept().await {
                let _ = stream.read(&mut [0; 1_024]).await;
                let _ =
                    stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
            }
        });
        let connections = Connections::new(&WebhookConfig::default(), true).unwrap();
        let before_present = || connections.present.lock().unwrap().as_ref().unwrap().opened;
        for made in 1..=3 {
            let request = Request::get(url.clone()).body(Full::default()).unwrap();
            connections.client(Timestamp::UNIX_EPOCH).request(request).await.unwrap();
            assert_eq!(connections.opened.load(Ordering::Relaxed), made);
            assert_eq!(before_present(), 0);
        }
        connections.opened.store(OPENED_MAX, Ordering::Relaxed);
        connections.client(Timestamp::UNIX_EPOCH);
        assert_eq!(before_present(), OPENED_MAX, "who keeps none of them begins anew");
    }
}
