//! GET /console/live: tells open pages that there is something new, and nothing else.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use http_body_util::channel::Channel;
use hyper::body::Bytes;

use super::access::Viewer;
use super::frame::Refusal;
use crate::app::App;
use crate::http::Streaming;

/// How often this node's news are looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(500);
/// What other nodes did shows after this many looks at the latest.
const LOOKS_SILENT_MAX: u32 = 10;
/// Then the browser comes again, and proves again who it is.
const LOOKS_MAX: u32 = 1_200;
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn live(State(app): State<App>, viewer: Viewer) -> Result<Response, Refusal> {
    let seat = app.listening.take(viewer.house()).ok_or(Refusal::TooMany)?;
    let shown = viewer.asked("seen").parse().ok();
    let (mut sender, body) = Channel::<Bytes>::new(4);
    tokio::spawn(async move {
        let _seat = seat;
        // What happened between a page and its stream is news as well.
        let mut seen = shown.or(app.news.count());
        let mut silent = 0;
        for _ in 0..LOOKS_MAX {
            tokio::time::sleep(LOOK_PERIOD).await;
            // Nothing is sent by it; it fails where the page is gone, and its place is free again.
            if !sent(sender.send_data(Bytes::new())).await {
                return;
            }
            let now = app.news.count();
            if now.is_none() {
                return;
            }
            silent += 1;
            if now != seen || silent == LOOKS_SILENT_MAX {
                (seen, silent) = (now, 0);
                let news = Bytes::from_static(b"event: news\ndata: -\n\n");
                if !sent(sender.send_data(news)).await {
                    return;
                }
            }
        }
    });
    let mut response = Response::new(Body::new(body));
    response.extensions_mut().insert(Streaming);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Who does not read any more gives up the place.
async fn sent<E>(sending: impl Future<Output = Result<(), E>>) -> bool {
    matches!(tokio::time::timeout(SEND_TIMEOUT, sending).await, Ok(Ok(())))
}
