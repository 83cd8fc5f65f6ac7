//! The accept loop: bounded connections with timers, TLS if asked for, a calm end.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::activity::{Activity, Busy, Counted, until_idle, watched};
use super::answer::answer;
use crate::app::App;
use crate::config::TlsFiles;

/// An HTTP/2 peer is asked whether it is there, and must answer.
const PING_PERIOD: Duration = Duration::from_secs(10);
const TLS_TIMEOUT: Duration = Duration::from_secs(5);
const HEADERS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 16 * 1024;
const STREAMS_MAX: u32 = 100;
/// Time for requests in progress once we stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that may wait to be accepted, if the system allows as many: to those beyond it the system
/// answers nothing, and they come again seconds later.
const UNACCEPTED_MAX: u32 = 16_384;
/// After a failed accept (no file descriptors left) wait a little instead of spinning.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Listener {
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
}

#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    #[error("cannot listen on {address}: {fault}; choose another --listen address")]
    Bind { address: SocketAddr, fault: std::io::Error },
    #[error("cannot use the TLS files: {0}")]
    Tls(String),
}

impl Listener {
    pub(crate) fn bind(address: SocketAddr, tls: Option<&TlsFiles>) -> Result<Self, ListenerError> {
        let tls = tls.map(|files| acceptor(&files.certificate, &files.key)).transpose()?;
        let socket = listen(address).map_err(|fault| ListenerError::Bind { address, fault })?;
        Ok(Self { socket, tls })
    }

    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `stop` resolves, then lets what was accepted finish.
    pub(crate) async fn serve(self, app: App, router: Router, stop: impl Future<Output = ()>) {
        let connections = Arc::new(Semaphore::new(app.config.limits.connections));
        let graceful = GracefulShutdown::new();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = accept(&self.socket, &connections) => accepted,
            };
            if let Some(accepted) = accepted {
                self.spawn(&app, &router, &graceful, accepted);
            }
        }
        // Whoever has connected already is served; nobody else is.
        while let Ok(Some(accepted)) =
            tokio::time::timeout(Duration::ZERO, accept(&self.socket, &connections)).await
        {
            self.spawn(&app, &router, &graceful, accepted);
        }
        drop(self.socket);
        if tokio::time::timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
            tracing::warn!("some connections did not finish in time and were closed");
        }
    }

    fn spawn(
        &self,
        app: &App,
        router: &Router,
        graceful: &GracefulShutdown,
        (stream, peer, permit): Accepted,
    ) {
        let (app, router, tls) = (app.clone(), router.clone(), self.tls.clone());
        let watcher = graceful.watcher();
        tokio::spawn(async move {
            serve_connection(app, router, tls, stream, peer, watcher).await;
            drop(permit);
        });
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(UNACCEPTED_MAX)
}

type Accepted = (TcpStream, IpAddr, tokio::sync::OwnedSemaphorePermit);

/// The next connection, once there is room for it.
async fn accept(socket: &TcpListener, connections: &Arc<Semaphore>) -> Option<Accepted> {
    let permit = Arc::clone(connections).acquire_owned().await.ok()?;
    match socket.accept().await {
        Ok((stream, peer)) => {
            let _ = stream.set_nodelay(true);
            Some((stream, peer.ip().to_canonical(), permit))
        }
        Err(fault) => {
            tracing::warn!(%fault, "could not accept a connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn serve_connection(
    app: App,
    router: Router,
    tls: Option<TlsAcceptor>,
    stream: TcpStream,
    peer: IpAddr,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let activity = Arc::new(Activity::default());
    let service = service_fn({
        let activity = Arc::clone(&activity);
        move |request: hyper::Request<Incoming>| {
            let (app, router, activity) = (app.clone(), router.clone(), Arc::clone(&activity));
            async move {
                let busy = Busy::begin(&activity);
                let answer = answer(app, router, peer, request.map(Body::new)).await;
                drop(busy);
                Ok::<_, std::convert::Infallible>(watched(&activity, answer))
            }
        }
    });
    let builder = connection_builder();
    // Errors here are the client's: a cut connection, a head that never came.
    let outcome = match tls {
        None => {
            let stream = TokioIo::new(Counted::new(stream, &activity));
            let connection = builder.serve_connection(stream, service);
            until_idle(&activity, watcher.watch(connection.into_owned())).await
        }
        Some(acceptor) => match tokio::time::timeout(TLS_TIMEOUT, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => {
                let stream = TokioIo::new(Counted::new(stream, &activity));
                let connection = builder.serve_connection(stream, service);
                until_idle(&activity, watcher.watch(connection.into_owned())).await
            }
            Ok(Err(_)) | Err(_) => return,
        },
    };
    if let Err(fault) = outcome {
        tracing::trace!(fault, "a connection ended badly");
    }
}

fn connection_builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().max_headers(HEADERS_MAX).max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .keep_alive_interval(PING_PERIOD)
        .keep_alive_timeout(PING_PERIOD);
    builder
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, ListenerError> {
    let fault = |what: &Path, fault: &dyn std::fmt::Display| {
        ListenerError::Tls(format!("{}: {fault}", what.display()))
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|reason| fault(certificate, &reason))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|reason| fault(key, &reason))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|reason| fault(certificate, &reason))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|reason| fault(certificate, &reason))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
