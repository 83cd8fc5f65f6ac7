//! What a connection is used for, and when it is used no more.

use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that begins no request and reads no answer for one to two of these periods is closed: an
/// idle one, one whose head does not come to an end, one that never says a word.
const IDLE_PERIOD: Duration = Duration::from_millis(7_500);
/// Less than this in a period is not reading: what the protocol itself says is a few bytes.
const READ_BYTES_MIN: u64 = 1_024;
/// An answer larger than this costs memory while nobody reads it.
const LARGE_BYTES: u64 = 16 * 1024;

/// What a connection has been used for.
///
/// hyper's own head timer costs every request a timer, starts only once the protocol is known and
/// does not watch HTTP/2; this one costs a connection some counters and covers all three.
#[derive(Default)]
pub(super) struct Activity {
    begun: AtomicU64,
    ended: AtomicU64,
    /// Bytes the peer has taken from us.
    written: AtomicU64,
    /// Answers, large ones and such as go on for long, whose body has not ended.
    sending: AtomicU64,
    /// Parts of them that were sent.
    parts: AtomicU64,
}

/// The counters at one moment.
#[derive(Clone, Copy, Default)]
struct Reading {
    begun: u64,
    ended: u64,
    written: u64,
    sending: u64,
    parts: u64,
}

impl Activity {
    fn read(&self) -> Reading {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Reading {
            begun: of(&self.begun),
            ended: of(&self.ended),
            written: of(&self.written),
            sending: of(&self.sending),
            parts: of(&self.parts),
        }
    }
}

impl Reading {
    /// Nothing was asked since then and nothing read, or a large answer waits that nobody reads: new
    /// requests on the same connection are no excuse for that.
    fn is_over(self, before: Self) -> bool {
        let reads = self.written >= before.written + READ_BYTES_MIN || self.parts != before.parts;
        let asks = self.begun != before.begun || self.ended != self.begun;
        !reads && (self.sending > 0 || !asks)
    }
}

/// Marks an answer whose body goes on for long: its connection is in use until that ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streaming;

/// Small answers are not worth a look.
pub(super) fn watched(
    activity: &Arc<Activity>,
    answer: hyper::Response<Body>,
) -> hyper::Response<Body> {
    let is_large = answer.body().size_hint().lower() > LARGE_BYTES;
    if !is_large && answer.extensions().get::<Streaming>().is_none() {
        return answer;
    }
    let sending = Sending::begin(activity);
    answer.map(|body| {
        Body::new(body.map_frame(move |frame| {
            sending.0.parts.fetch_add(1, Ordering::Relaxed);
            frame
        }))
    })
}

struct Sending(Arc<Activity>);

impl Sending {
    fn begin(activity: &Arc<Activity>) -> Self {
        activity.sending.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.sending.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) struct Busy(Arc<Activity>);

impl Busy {
    pub(super) fn begin(activity: &Arc<Activity>) -> Self {
        activity.begun.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(activity))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// A stream that counts what its peer takes.
pub(super) struct Counted<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl<S> Counted<S> {
    pub(super) fn new(stream: S, activity: &Arc<Activity>) -> Self {
        Self { stream, activity: Arc::clone(activity) }
    }

    fn count(&self, written: Poll<std::io::Result<usize>>) -> Poll<std::io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = written {
            self.activity.written.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.count(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.count(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Serves a connection until it ends, or has gone a whole period without a sign of its peer.
pub(super) async fn until_idle<E>(
    activity: &Activity,
    connection: impl Future<Output = Result<(), E>>,
) -> Result<(), E> {
    let mut connection = std::pin::pin!(connection);
    let mut before = Reading::default();
    loop {
        tokio::select! {
            outcome = &mut connection => return outcome,
            () = tokio::time::sleep(IDLE_PERIOD) => {}
        }
        let now = activity.read();
        if now.is_over(before) {
            return Ok(());
        }
        before = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_lasts_while_its_peer_asks_or_reads() {
        let before = Reading { begun: 3, ended: 3, written: 5_000, sending: 0, parts: 0 };
        let cases = [
            ("silent", before, true),
            ("only pings", Reading { written: 5_034, ..before }, true),
            ("asks", Reading { begun: 4, ended: 4, ..before }, false),
            ("is being answered", Reading { begun: 4, ended: 3, ..before }, false),
            ("reads slowly", Reading { written: 10_000, ..before }, false),
        ];
        for (name, now, over) in cases {
            assert_eq!(now.is_over(before), over, "{name}");
        }
        let before = Reading { sending: 1, ..before };
        let cases = [
            ("does not read", before, true),
            ("asks and does not read", Reading { begun: 9, ended: 9, ..before }, true),
            ("reads", Reading { written: 9_000, ..before }, false),
            ("is told now and then", Reading { parts: 2, ..before }, false),
        ];
        for (name, now, over) in cases {
            assert_eq!(now.is_over(before), over, "{name}");
        }
    }
}
