//! What a connection is used for, and when it is used no more.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::Version;
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that begins no request and reads no answer for one to two of these periods is closed: an
/// idle one, one whose head does not come to an end, one that never says a word.
const IDLE_PERIOD: Duration = Duration::from_millis(7_500);
/// Less than this in a period is not reading: what the protocol itself says is a few bytes.
const READ_BYTES_MIN: u64 = 1_024;
/// An answer larger than this costs memory while nobody reads it; over HTTP/2 many small ones do, too.
const LARGE_BYTES: usize = 16 * 1024;
/// An answer is handed out in parts: what the protocol has taken over is not ours to count.
const PART_BYTES: usize = 2 * 1024;
/// Periods without a part after which nobody waits for the reader of an answer: half a minute and more,
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
    answers: Mutex<Answers>,
}

/// Answers whose body has not ended and that are watched.
#[derive(Default)]
struct Answers {
    next: u64,
    on_their_way: BTreeMap<u64, Progress>,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    /// Parts of it that were handed out.
    parts: u64,
    /// No other is on its way with it: what its peer reads is of this one.
    alone: bool,
}

/// The counters at one moment.
#[derive(Clone, Default)]
struct Reading {
    begun: u64,
    ended: u64,
    written: u64,
    answers: BTreeMap<u64, Progress>,
}

impl Activity {
    fn read(&self) -> Reading {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Reading {
            begun: of(&self.begun),
            ended: of(&self.ended),
            written: of(&self.written),
            answers: self.answers().on_their_way.clone(),
        }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    fn reads(&self, before: &Self) -> bool {
        self.written >= before.written + READ_BYTES_MIN
    }

    fn asks(&self, before: &Self) -> bool {
        self.begun != before.begun || self.ended != self.begun
    }
}

/// How a connection has been used, period by period.
#[derive(Default)]
struct Watch {
    before: Reading,
    /// Of each answer on its way, for how many periods nothing of it was taken.
    unread: BTreeMap<u64, u32>,
}

impl Watch {
    /// Nothing was asked in this period and nothing read, or an answer waits that nobody reads: what is asked and
    /// read beside it on the same connection is no excuse for that.
    fn is_over(&mut self, now: Reading) -> bool {
        let before = std::mem::replace(&mut self.before, now);
        let now = &self.before;
        let reads = now.reads(&before);
        let unread = |(id, progress): (&u64, &Progress)| {
            let goes_on = before.answers.get(id) != Some(progress) || (progress.alone && reads);
            let periods = self.unread.get(id).map_or(0, |periods| *periods);
            (*id, if goes_on { 0 } else { periods + 1 })
        };
        self.unread = now.answers.iter().map(unread).collect();
        match self.unread.values().max() {
            None => !reads && !now.asks(&before),
            Some(longest) => *longest >= UNREAD_PERIODS_MAX,
        }
    }
}

/// Marks an answer whose body goes on for long: its connection is in use until that ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Streaming;

/// Small answers are not worth a look, unless many may wait on one connection.
pub(super) fn watched(
    activity: &Arc<Activity>,
    version: Version,
    answer: hyper::Response<Body>,
) -> hyper::Response<Body> {
    let alone = version != Version::HTTP_2;
    let bytes = answer.body().size_hint().lower();
    let is_small = bytes <= LARGE_BYTES as u64 && (alone || answer.body().is_end_stream());
    if is_small && answer.extensions().get::<Streaming>().is_none() {
        return answer;
    }
    let sending = Sending::begin(activity, alone);
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
        self.sending.hands_out();
        let size = self.rest.len().min(PART_BYTES);
        // A copy: a part that waits in the protocol must not keep the whole answer.
        let part = Bytes::copy_from_slice(&self.rest.split_to(size));
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

/// An answer on its way, until this is dropped.
struct Sending {
    activity: Arc<Activity>,
    id: u64,
}

impl Sending {
    fn begin(activity: &Arc<Activity>, alone: bool) -> Self {
        let mut answers = activity.answers();
        answers.next += 1;
        let id = answers.next;
        answers.on_their_way.insert(id, Progress { parts: 0, alone });
        Self { activity: Arc::clone(activity), id }
    }

    fn hands_out(&self) {
        if let Some(progress) = self.activity.answers().on_their_way.get_mut(&self.id) {
            progress.parts += 1;
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.activity.answers().on_their_way.remove(&self.id);
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

    const BEFORE: Reading =
        Reading { begun: 3, ended: 3, written: 5_000, answers: BTreeMap::new() };

    /// Whether it is over after as many periods like this.
    fn over_after(periods: u32, before: &Reading, now: &Reading) -> bool {
        let mut watch = Watch { before: before.clone(), unread: BTreeMap::new() };
        (0..periods).map(|_| watch.is_over(now.clone())).last() == Some(true)
    }

    /// These answers are on their way, alone or not, and so many parts of each were handed out.
    fn sending<const N: usize>(alone: bool, parts: [u64; N]) -> BTreeMap<u64, Progress> {
        (1..).zip(parts.map(|parts| Progress { parts, alone })).collect()
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
            assert_eq!(over_after(1, &BEFORE, &now), over, "{name}");
        }
    }

    #[test]
    fn who_does_not_read_an_answer_is_given_less_than_a_minute() {
        for alone in [true, false] {
            let before = Reading { answers: sending(alone, [0]), ..BEFORE };
            for (name, now) in [
                ("does not read", before.clone()),
                ("asks and does not read", Reading { begun: 9, ended: 9, ..before.clone() }),
            ] {
                assert!(!over_after(UNREAD_PERIODS_MAX - 1, &before, &now), "{name}");
                assert!(over_after(UNREAD_PERIODS_MAX, &before, &now), "{name}");
            }
            let unread = [(1, UNREAD_PERIODS_MAX - 1)].into();
            let mut watch = Watch { before, unread };
            let later = Reading { answers: sending(alone, [1]), ..BEFORE };
            assert!(!watch.is_over(later.clone()), "it was told something");
            assert!(!watch.is_over(later), "and has as long as before");
        }
    }

    #[test]
    fn what_is_read_beside_it_is_no_excuse_for_an_answer_that_is_not() {
        // Of two answers at once one is taken, part by part; the other is not.
        let period = |period: u32| Reading {
            written: 100_000 * u64::from(period),
            answers: sending(false, [0, u64::from(period)]),
            ..BEFORE
        };
        let mut watch = Watch { before: period(0), unread: BTreeMap::new() };
        let over = (1..=UNREAD_PERIODS_MAX).map(|number| watch.is_over(period(number)));
        assert_eq!(over.filter(|over| *over).count(), 1, "when its time is up, and not before");
        // Alone, whoever reads a little now and then reads it.
        let slow = |period: u32| Reading {
            written: 2_000 * u64::from(period),
            answers: sending(true, [1]),
            ..BEFORE
        };
        let mut watch = Watch { before: slow(0), unread: BTreeMap::new() };
        assert!((1..=20).all(|number| !watch.is_over(slow(number))));
    }

    #[tokio::test]
    async fn a_large_answer_is_whole_and_counted_until_its_last_part() {
        let activity = Arc::new(Activity::default());
        let bytes: Vec<u8> = (0..100_000_u32).map(|number| number as u8).collect();
        let answer = hyper::Response::new(Body::from(bytes.clone()));
        let answer = watched(&activity, Version::HTTP_11, answer);
        assert_eq!(answer.body().size_hint().exact(), Some(100_000));
        let mut body = answer.into_body();
        let (mut read, mut parts) = (Vec::new(), 0);
        while let Some(frame) = body.frame().await {
            assert_eq!(activity.read().answers.len(), 1);
            parts += 1;
            read.extend_from_slice(frame.unwrap().data_ref().unwrap());
            assert_eq!(body.size_hint().exact(), Some(100_000 - read.len() as u64));
        }
        drop(body);
        assert_eq!((read == bytes, activity.read().answers.len()), (true, 0));
        assert_eq!(parts, bytes.len().div_ceil(PART_BYTES));
    }
}
