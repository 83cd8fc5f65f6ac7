//! What a connection is used for, and when it is used no more.

use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that begins no request and reads no answer for one to two of these periods is closed: an
/// idle one, one whose head does not come to an end, one that never says a word.
const IDLE_PERIOD: Duration = Duration::from_millis(7_500);
/// Less than this in a period is not reading: what the protocol itself says is a few bytes.
const READ_BYTES_MIN: u64 = 1_024;
/// An answer larger than this costs memory while nobody reads it. It is handed out in parts of this size: what
/// the protocol has taken over is not ours to count.
const LARGE_BYTES: usize = 16 * 1024;
/// Periods without a byte after which nobody waits for the reader of a large answer: half a minute and more,
/// because a system wakes who writes only when much of its buffer is free.
pub(super) const UNREAD_PERIODS_MAX: u32 = 6;

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
    fn reads(self, before: Self) -> bool {
        self.written >= before.written + READ_BYTES_MIN || self.parts != before.parts
    }

    fn asks(self, before: Self) -> bool {
        self.begun != before.begun || self.ended != self.begun
    }
}

/// How a connection has been used, period by period.
#[derive(Default)]
struct Watch {
    before: Reading,
    /// Periods in which nothing was read.
    unread: u32,
}

impl Watch {
    /// Nothing was asked in this period and nothing read, or a large answer waits that nobody reads: new
    /// requests on the same connection are no excuse for that.
    fn is_over(&mut self, now: Reading) -> bool {
        let before = std::mem::replace(&mut self.before, now);
        self.unread = if now.reads(before) { 0 } else { self.unread + 1 };
        match now.sending {
            0 => self.unread > 0 && !now.asks(before),
            _ => self.unread >= UNREAD_PERIODS_MAX,
        }
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
    let is_large = answer.body().size_hint().lower() > LARGE_BYTES as u64;
    if !is_large && answer.extensions().get::<Streaming>().is_none() {
        return answer;
    }
    let sending = Sending::begin(activity);
    answer.map(|body| Body::new(Parted { body, rest: Bytes::new(), sending }))
}

/// A body handed out in parts, each of which counts.
struct Parted {
    body: Body,
    rest: Bytes,
    sending: Sending,
}

impl HttpBody for Parted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                ended => return Poll::Ready(ended),
            }
        }
        self.sending.0.parts.fetch_add(1, Ordering::Relaxed);
        let size = self.rest.len().min(LARGE_BYTES);
        let part = self.rest.split_to(size);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, mut hint) = (self.rest.len() as u64, self.body.size_hint());
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
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

pub(super) fn period() -> impl Future<Output = ()> {
    tokio::time::sleep(IDLE_PERIOD)
}

/// Serves a connection until it ends, or has gone a whole period without a sign of its peer.
pub(super) async fn until_idle<E, P: Future<Output = ()>>(
    activity: &Activity,
    mut period: impl FnMut() -> P,
    connection: impl Future<Output = Result<(), E>>,
) -> Result<(), E> {
    let mut connection = std::pin::pin!(connection);
    let mut watch = Watch::default();
    loop {
        tokio::select! {
            outcome = &mut connection => return outcome,
            () = period() => {}
        }
        if watch.is_over(activity.read()) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    const BEFORE: Reading = Reading { begun: 3, ended: 3, written: 5_000, sending: 0, parts: 0 };

    /// Whether it is over after as many periods like this.
    fn over_after(periods: u32, before: Reading, now: Reading) -> bool {
        let mut watch = Watch { before, unread: 0 };
        (0..periods).map(|_| watch.is_over(now)).last() == Some(true)
    }

    #[test]
    fn a_connection_lasts_while_its_peer_asks_or_reads() {
        for (name, now, over) in [
            ("silent", BEFORE, true),
            ("only pings", Reading { written: 5_034, ..BEFORE }, true),
            ("asks", Reading { begun: 4, ended: 4, ..BEFORE }, false),
            ("is being answered", Reading { begun: 4, ended: 3, ..BEFORE }, false),
            ("reads slowly", Reading { written: 10_000, ..BEFORE }, false),
        ] {
            assert_eq!(over_after(1, BEFORE, now), over, "{name}");
        }
    }

    #[test]
    fn who_does_not_read_a_large_answer_is_given_less_than_a_minute() {
        let before = Reading { sending: 1, ..BEFORE };
        for (name, now) in [
            ("does not read", before),
            ("asks and does not read", Reading { begun: 9, ended: 9, ..before }),
        ] {
            assert!(!over_after(UNREAD_PERIODS_MAX - 1, before, now), "{name}");
            assert!(over_after(UNREAD_PERIODS_MAX, before, now), "{name}");
        }
        let mut watch = Watch { before, unread: UNREAD_PERIODS_MAX - 1 };
        assert!(!watch.is_over(Reading { parts: 1, ..before }), "it was told something");
        assert!(!watch.is_over(Reading { parts: 1, ..before }), "and has as long as before");
    }

    #[tokio::test]
    async fn a_large_answer_is_whole_and_counted_until_its_last_part() {
        let activity = Arc::new(Activity::default());
        let bytes: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        let answer = watched(&activity, hyper::Response::new(Body::from(bytes.clone())));
        assert_eq!(answer.body().size_hint().exact(), Some(100_000));
        let mut body = answer.into_body();
        let mut read = Vec::new();
        while let Some(frame) = body.frame().await {
            assert_eq!(activity.read().sending, 1);
            read.extend_from_slice(frame.unwrap().data_ref().unwrap());
            assert_eq!(body.size_hint().exact(), Some(100_000 - read.len() as u64));
        }
        drop(body);
        assert_eq!((read == bytes, activity.read().sending), (true, 0));
        assert_eq!(activity.read().parts, 7);
    }
}
