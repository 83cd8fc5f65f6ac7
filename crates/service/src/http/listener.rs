//! The accept loop: bounded connections with timers, TLS if asked for, a calm end.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::answer::{answer, is_proxy};
use super::crowd::Crowd;
use super::{activity, connection};
use crate::app::App;
use crate::config::TlsFiles;

const TLS_TIMEOUT: Duration = Duration::from_secs(5);
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
        let crowd = Crowd::new(app.config.limits.connections_per_address);
        let graceful = GracefulShutdown::new();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = accept(&self.socket, &connections) => accepted,
            };
            if let Some(accepted) = accepted {
                self.spawn(&app, &router, &graceful, &crowd, accepted);
            }
        }
        // Whoever has connected already is not left hanging; whoever has not asked by now may hear nothing but an end.
        while let Ok(Some(accepted)) =
            tokio::time::timeout(Duration::ZERO, accept(&self.socket, &connections)).await
        {
            self.spawn(&app, &router, &graceful, &crowd, accepted);
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
        crowd: &Arc<Crowd>,
        (stream, peer, permit): Accepted,
    ) {
        let place = (!is_proxy(app, &peer)).then(|| crowd.enter(peer));
        if let Some(None) = place {
            app.metrics.connections_refused.increment(1);
            tell_crowded(peer);
            return;
        }
        // It waits on the thread that will serve it, and not here.
        let stream = match stream.into_std() {
            Ok(stream) => stream,
            Err(fault) => return tell_lost(&fault),
        };
        let (own, router, tls) = (app.clone(), router.clone(), self.tls.clone());
        let watcher = graceful.watcher();
        app.threads.spawn(async move {
            match TcpStream::from_std(stream) {
                Ok(stream) => serve_connection(own, router, tls, stream, peer, watcher).await,
                Err(fault) => tell_lost(&fault),
            }
            drop((permit, place));
        });
    }
}

/// Once: an operator whose proxy is not named finds out why some callers are cut off.
fn tell_crowded(peer: IpAddr) {
    static TOLD: std::sync::Once = std::sync::Once::new();
    TOLD.call_once(|| {
        tracing::warn!(
            %peer,
            "an address has as many connections as it may: is it a proxy that trusted_proxies should name?"
        );
    });
}

fn tell_lost(fault: &std::io::Error) {
    tracing::warn!(%fault, "a connection could not be handed to its thread");
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
    stop: Watcher,
) {
    let answer = move |request: Request<Incoming>| {
        answer(app.clone(), router.clone(), peer, request.map(Body::new))
    };
    match tls {
        None => connection::serve(stream, stop, activity::period, answer).await,
        Some(acceptor) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(TLS_TIMEOUT, acceptor.accept(stream)).await
            {
                connection::serve(stream, stop, activity::period, answer).await;
            }
        }
    }
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
