//! One connection: HTTP/1.1 or HTTP/2, for as long as its peer asks or reads.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};

use super::activity::{Activity, Busy, Counted, until_idle, watched};

/// An HTTP/2 peer is asked whether it is there, and must answer.
const PING_PERIOD: Duration = Duration::from_secs(10);
const HEADERS_MAX: usize = 64;
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Each may hold a body for its time: what one address has open, times this, must fit in memory.
const STREAMS_MAX: u32 = 32;

/// Ends with its peer, with `stop`, or when `period` after `period` nothing is asked or read.
pub(super) async fn serve<S, P, A>(
    stream: S,
    stop: Watcher,
    period: impl FnMut() -> P,
    answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    P: Future<Output = ()>,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    let activity = Arc::new(Activity::default());
    let service = service_fn({
        let activity = Arc::clone(&activity);
        move |request: Request<Incoming>| {
            let (answer, activity) = (answer.clone(), Arc::clone(&activity));
            async move {
                let (busy, version) = (Busy::begin(&activity), request.version());
                let answered = answer(request).await;
                drop(busy);
                Ok::<_, Infallible>(watched(&activity, version, answered))
            }
        }
    });
    let builder = builder();
    let stream = TokioIo::new(Counted::new(stream, &activity));
    let connection = stop.watch(builder.serve_connection(stream, service).into_owned());
    // Errors here are the client's: a cut connection, a head that never came.
    if let Err(fault) = until_idle(&activity, period, connection).await {
        tracing::trace!(fault, "a connection ended badly");
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
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

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use http_body_util::Empty;
    use hyper_util::server::graceful::GracefulShutdown;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpSocket, TcpStream};
    use tokio::sync::{Semaphore, watch};
    use tokio::task::JoinHandle;

    use super::super::activity::UNREAD_PERIODS_MAX;
    use super::*;

    const LARGE_BYTES: usize = 8 * 1024 * 1024;
    /// What the system keeps for a peer that does not read.
    const BUFFER_BYTES: u32 = 4_096;
    /// Far more than anybody is given.
    const PERIODS_MAX: u32 = 40;

    /// A connection whose periods go by when the test says so.
    struct Served {
        periods: Arc<Semaphore>,
        begun: watch::Receiver<u32>,
        ended: JoinHandle<()>,
        /// Dropped, it would end the connection.
        _stop: GracefulShutdown,
    }

    async fn served() -> (TcpStream, Served) {
        let listener = TcpSocket::new_v4().unwrap();
        listener.set_send_buffer_size(BUFFER_BYTES).unwrap();
        listener.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = listener.listen(1).unwrap();
        let peer = TcpSocket::new_v4().unwrap();
        peer.set_recv_buffer_size(BUFFER_BYTES).unwrap();
        let (peer, ours) =
            tokio::join!(peer.connect(listener.local_addr().unwrap()), listener.accept());
        let (tell, begun) = watch::channel(0);
        let (periods, stop) = (Arc::new(Semaphore::new(0)), GracefulShutdown::new());
        let (watcher, gate) = (stop.watcher(), Arc::clone(&periods));
        let stream = ours.unwrap().0;
        let ended = tokio::spawn(async move {
            let period = move || {
                tell.send_modify(|begun| *begun += 1);
                let gate = Arc::clone(&gate);
                async move { gate.acquire().await.unwrap().forget() }
            };
            serve(stream, watcher, period, async |request: Request<Incoming>| {
                let size = if request.uri().path() == "/small" { 2 } else { LARGE_BYTES };
                Response::new(Body::from(vec![b'x'; size]))
            })
            .await;
        });
        (peer.unwrap(), Served { periods, begun, ended, _stop: stop })
    }

    impl Served {
        /// One period goes by. Whether the connection is still served.
        async fn lasts(&mut self) -> bool {
            let before = *self.begun.borrow();
            self.periods.add_permits(1);
            tokio::select! {
                _ = &mut self.ended => false,
                Ok(_) = self.begun.wait_for(|begun| *begun > before) => true,
            }
        }
    }

    #[tokio::test]
    async fn who_reads_nothing_over_http_1_is_left() {
        let (mut peer, mut served) = served().await;
        peer.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        peer.peek(&mut [0]).await.unwrap();
        let mut periods = 1;
        while served.lasts().await {
            periods += 1;
            assert!(periods < PERIODS_MAX, "nobody is left");
        }
        assert!(periods >= UNREAD_PERIODS_MAX, "{periods}: a slow payer would be left too");
        let mut rest = Vec::new();
        let _ = peer.read_to_end(&mut rest).await;
        assert!(rest.len() < LARGE_BYTES, "cut short");
    }

    #[tokio::test]
    async fn who_opens_no_window_over_http_2_is_left_however_often_they_ask() {
        let (peer, mut served) = served().await;
        let (mut sender, connection) =
            hyper::client::conn::http2::Builder::new(TokioExecutor::new())
                .initial_stream_window_size(0)
                .handshake(TokioIo::new(peer))
                .await
                .unwrap();
        tokio::spawn(connection);
        let get = |path: &str| {
            Request::get(format!("http://a{path}")).body(Empty::<Bytes>::new()).unwrap()
        };
        // Kept: a stream that is dropped is reset, and that is an end too.
        let mut answers = vec![sender.send_request(get("/")).await.unwrap()];
        let mut periods = 1;
        while served.lasts().await {
            periods += 1;
            assert!(periods < PERIODS_MAX, "a new request is taken for reading");
            answers.extend(sender.send_request(get("/small")).await.ok());
        }
        assert!(periods >= UNREAD_PERIODS_MAX, "{periods}");
    }

    #[tokio::test]
    async fn who_reads_now_and_then_is_served_to_the_end() {
        let (mut peer, mut served) = served().await;
        peer.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        // More than the system keeps for both: we must write to make up for it.
        let mut some = vec![0; 256 * 1024];
        for period in 0..20 {
            if period % 5 == 0 {
                peer.read_exact(&mut some).await.unwrap();
            }
            assert!(served.lasts().await, "period {period}");
        }
    }
}
