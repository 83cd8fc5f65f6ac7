//! A merchant's webhook endpoint: a real HTTP server that keeps what it is sent and answers as told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// One request as it came in.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) version: Version,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// `data.paymentStatus`.
    pub(crate) fn status(&self) -> String {
        self.json()["data"]["paymentStatus"].as_str().unwrap().to_owned()
    }

    /// `data.externalTransactionId`.
    pub(crate) fn order(&self) -> String {
        self.json()["data"]["externalTransactionId"].as_str().unwrap().to_owned()
    }
}

type Answer = Response<Full<Bytes>>;

/// Ends with the test.
pub(crate) struct Receiver {
    address: SocketAddr,
    kept: Arc<Kept>,
    server: JoinHandle<()>,
}

#[derive(Default)]
struct Kept {
    requests: Mutex<Vec<Received>>,
    connections: Mutex<usize>,
    came: Notify,
}

impl Receiver {
    /// Answers every request with this status.
    pub(crate) async fn answering(status: u16) -> Self {
        Self::start(move |_| Response::builder().status(status).body(Full::default()).unwrap())
            .await
    }

    /// Answers each request as `answer` says.
    pub(crate) async fn start(
        answer: impl Fn(&Received) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::start_rude(move |request| Some(answer(request))).await
    }

    /// The same, and hangs up without a word where it says nothing.
    pub(crate) async fn start_rude(
        answer: impl Fn(&Received) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let answer = Arc::new(answer);
        Self::over(move |stream, kept| serve(TokioIo::new(stream), Arc::clone(&answer), kept)).await
    }

    /// Does with each connection what `connection` does: for merchants that do not speak HTTP well.
    pub(crate) async fn raw<F: Future<Output = ()> + Send + 'static>(
        connection: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::over(move |stream, _| connection(stream)).await
    }

    /// Answers 200 over TLS.
    pub(crate) async fn secure(tls: rustls::ServerConfig) -> Self {
        let answer = Arc::new(|_: &Received| Some(Answer::default()));
        Self::over_tls(tls, move |stream, kept| {
            serve(TokioIo::new(stream), Arc::clone(&answer), kept)
        })
        .await
    }

    /// Does with each connection over TLS what `connection` does.
    pub(crate) async fn raw_secure<F: Future<Output = ()> + Send + 'static>(
        tls: rustls::ServerConfig,
        connection: impl Fn(TlsStream<TcpStream>) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::over_tls(tls, move |stream, _| connection(stream)).await
    }

    async fn over_tls<F: Future<Output = ()> + Send + 'static>(
        tls: rustls::ServerConfig,
        connection: impl Fn(TlsStream<TcpStream>, Arc<Kept>) -> F + Send + Sync + 'static,
    ) -> Self {
        let (acceptor, connection) = (TlsAcceptor::from(Arc::new(tls)), Arc::new(connection));
        Self::over(move |stream, kept| {
            let (acceptor, connection) = (acceptor.clone(), Arc::clone(&connection));
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    connection(stream, kept).await;
                }
            }
        })
        .await
    }

    /// Answers 200 on every address of this machine, of both families where there are both.
    pub(crate) async fn everywhere() -> Self {
        let listener = match TcpListener::bind("[::]:0").await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind("0.0.0.0:0").await.unwrap(),
        };
        let answer = Arc::new(|_: &Received| Some(Answer::default()));
        Self::on(listener, move |stream, kept| {
            serve(TokioIo::new(stream), Arc::clone(&answer), kept)
        })
    }

    async fn over<F: Future<Output = ()> + Send + 'static>(
        connection: impl Fn(TcpStream, Arc<Kept>) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), connection)
    }

    fn on<F: Future<Output = ()> + Send + 'static>(
        listener: TcpListener,
        connection: impl Fn(TcpStream, Arc<Kept>) -> F + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let kept = Arc::new(Kept::default());
        let for_server = Arc::clone(&kept);
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *for_server.connections.lock().unwrap() += 1;
                tokio::spawn(connection(stream, Arc::clone(&for_server)));
            }
        });
        Self { address, kept, server }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.kept.requests.lock().unwrap().clone()
    }

    /// How many times somebody connected.
    pub(crate) fn connections(&self) -> usize {
        *self.kept.connections.lock().unwrap()
    }

    /// Waits until so many requests have come.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Received> {
        super::patiently(async {
            loop {
                let came = self.kept.came.notified();
                let requests = self.requests();
                if requests.len() >= count {
                    return requests;
                }
                came.await;
            }
        })
        .await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve<IO>(
    io: IO,
    answer: Arc<impl Fn(&Received) -> Option<Answer> + Send + Sync + 'static>,
    kept: Arc<Kept>,
) where
    IO: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let (answer, kept) = (Arc::clone(&answer), Arc::clone(&kept));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let path = head.uri.path().to_owned();
            let received = Received { version: head.version, path, headers: head.headers, body };
            let answered = answer(&received);
            kept.requests.lock().unwrap().push(received);
            kept.came.notify_waiters();
            answered.ok_or("it hangs up")
        }
    });
    // A peer that hangs up is part of some tests.
    let _ = Builder::new(TokioExecutor::new()).serve_connection(io, service).await;
}
