//! GET /api/svc/order/:externalTransactionId/events: tells an open page that its order changed.
//!
//! Server-Sent Events. An event says how far the order is, no more: the page then fetches itself, so
//! that what is shown is written in one place, with JavaScript and without.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast, mpsc};

use crate::nowhere::Path;
use crate::reply::{refuse, unavailable};
use crate::{Shop, StoreError};

/// What proxies must know: the answer is never complete, and none of it may wait for more.
const HEADERS: [(&str, &str); 3] = [
    ("content-type", "text/event-stream"),
    ("cache-control", "no-store"),
    ("x-accel-buffering", "no"),
];
/// What keeps a silent connection open.
const HEARTBEAT: &str = ": still here\n\n";

pub(crate) async fn order_events(State(shop): State<Shop>, Path(id): Path) -> Response {
    // Before the first look, so that nothing falls between the two.
    let changes = shop.store.changes();
    match progress(&shop, &id) {
        Ok(Some(progress)) if !progress.over => {}
        // How a browser is told not to come back.
        Ok(Some(_)) => return StatusCode::NO_CONTENT.into_response(),
        Ok(None) => {
            return refuse(StatusCode::NOT_FOUND, "order_not_found", "There is no such order.");
        }
        Err(fault) => return unavailable(&fault),
    }
    let Ok(place) = Arc::clone(&shop.streams).try_acquire_owned() else {
        let text = "Too many pages are open; ask for the status instead.";
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", text);
    };
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let lifetime = shop.settings.limits.stream_lifetime;
        let _ = tokio::time::timeout(lifetime, tell(shop, id, changes, sender, place)).await;
    });
    (HEADERS, Body::new(Events(receiver))).into_response()
}

/// How far an order is.
#[derive(PartialEq)]
struct Progress {
    status: &'static str,
    happenings: usize,
    over: bool,
}

fn progress(shop: &Shop, id: &str) -> Result<Option<Progress>, StoreError> {
    Ok(shop.store.story(id)?.map(|(order, story)| Progress {
        status: order.status.code(),
        happenings: story.len(),
        over: order.is_over(),
    }))
}

/// Until the order is over, the page is gone, the shop closes or the time is up.
async fn tell(
    shop: Shop,
    id: String,
    mut changes: broadcast::Receiver<Arc<str>>,
    sender: mpsc::Sender<Bytes>,
    _place: OwnedSemaphorePermit,
) {
    let mut closing = shop.closing.subscribe();
    let mut told = None;
    loop {
        // A page that is cut off asks for the rest itself.
        let Ok(Some(now)) = progress(&shop, &id) else { return };
        let text = if told.as_ref() == Some(&now) { HEARTBEAT.to_owned() } else { event(&now) };
        if sender.send(text.into()).await.is_err() || now.over {
            return;
        }
        told = Some(now);
        tokio::select! {
            () = changed(&mut changes, &id) => {}
            () = tokio::time::sleep(shop.settings.limits.stream_heartbeat) => {}
            () = sender.closed() => return,
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
}

fn event(Progress { status, happenings, over }: &Progress) -> String {
    let data = json!({ "status": status, "happenings": happenings, "over": over });
    format!("event: order\ndata: {data}\n\n")
}

async fn changed(changes: &mut broadcast::Receiver<Arc<str>>, id: &str) {
    loop {
        match changes.recv().await {
            Ok(changed) if *changed == *id => return,
            Ok(_) => {}
            // More than is kept went by; ours may have been among them.
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// A body that ends when nobody writes it any more.
struct Events(mpsc::Receiver<Bytes>);

impl HttpBody for Events {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|text| text.map(|text| Ok(Frame::data(text))))
    }
}
