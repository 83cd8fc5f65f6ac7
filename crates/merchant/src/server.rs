//! The shop's socket: one router, its workers, one stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::reply::refuse;
use crate::{
    Shop, create_order, fulfil, greeting, nowhere, order_events, order_page, order_status, pages,
    reconcile, webhook,
};

const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Further callers wait in the system's queue.
const CONNECTIONS_MAX: usize = 500;
/// When the process has no file left for a caller: it gets one back when another leaves.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A shop that listens.
pub struct Server {
    shop: Shop,
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    pub async fn bind(shop: Shop, address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { shop, listener, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` resolves; requests under way are finished.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let workers = [
            tokio::spawn(fulfil::run(self.shop.clone())),
            tokio::spawn(reconcile::run(self.shop.clone())),
            tokio::spawn(greeting::run(self.shop.clone())),
        ];
        let service = TowerToHyperService::new(router(self.shop.clone()));
        // Of one protocol: while it is found out which is spoken, no time runs.
        let mut builder = Builder::new(TokioExecutor::new()).http1_only();
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        let graceful = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut stop = std::pin::pin!(stop);
        loop {
            let (stream, place) = tokio::select! {
                () = &mut stop => break,
                accepted = accept(&self.listener, &places) => accepted,
            };
            let connection =
                builder.serve_connection(TokioIo::new(stream), service.clone()).into_owned();
            let watched = graceful.watch(connection);
            tokio::spawn(async move {
                // A browser that goes away is no news.
                let _ = watched.await;
                drop(place);
            });
        }
        self.shop.closing.send_replace(true);
        let _ = tokio::time::timeout(STOP_TIMEOUT, graceful.shutdown()).await;
        workers.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, OwnedSemaphorePermit) {
    let place = Arc::clone(places).acquire_owned().await.expect("nobody closes it");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

fn router(shop: Shop) -> Router {
    Router::new()
        .route("/api/svc/create-order", post(create_order::create_order))
        .route("/api/svc/webhook", post(webhook::webhook))
        .route("/api/svc/order/{id}/status", get(order_status::order_status))
        .route("/api/svc/order/{id}/events", get(order_events::order_events))
        .merge(order_page::routes())
        .merge(pages::routes())
        .fallback(nowhere::nowhere)
        .method_not_allowed_fallback(async || {
            refuse(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "Not with this method.")
        })
        .with_state(shop)
}
