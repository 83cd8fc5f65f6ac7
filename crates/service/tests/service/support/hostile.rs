//! Merchants that do not speak HTTP well, or not at all, or not yet.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;

use super::Receiver;

/// Reads one request and leaves the connection open; false when the peer has gone.
pub(crate) async fn read_request(stream: &mut TcpStream) -> bool {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4_096]);
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return false,
            Ok(length) => bytes.extend_from_slice(&buffer[..length]),
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return true;
        }
    }
}

/// Reads the request, says this, and is silent from then on.
pub(crate) async fn says(said: impl Into<Vec<u8>>) -> Receiver {
    let said = Arc::new(said.into());
    Receiver::raw(move |mut stream| {
        let said = Arc::clone(&said);
        async move {
            if read_request(&mut stream).await && stream.write_all(&said).await.is_ok() {
                std::future::pending::<()>().await;
            }
        }
    })
    .await
}

/// Reads the request, says this, and closes.
pub(crate) async fn says_and_closes(said: impl Into<Vec<u8>>) -> Receiver {
    let said = Arc::new(said.into());
    Receiver::raw(move |mut stream| {
        let said = Arc::clone(&said);
        async move {
            if read_request(&mut stream).await {
                let _ = stream.write_all(&said).await;
            }
        }
    })
    .await
}

/// Reads the request and answers it with a reset.
pub(crate) async fn resets() -> Receiver {
    Receiver::raw(|mut stream| async move {
        read_request(&mut stream).await;
        stream.set_zero_linger().unwrap();
    })
    .await
}

/// A port whose queue of connections is full: a further one is never answered.
pub(crate) struct FullQueue {
    url: String,
    _kept: (tokio::net::TcpListener, JoinSet<()>),
}

impl FullQueue {
    pub(crate) async fn start() -> Self {
        const QUEUE: usize = 1;
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(u32::try_from(QUEUE).unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let (connected, mut count) = watch::channel(0);
        let mut waiting = JoinSet::new();
        for _ in 0..QUEUE + 7 {
            let connected = connected.clone();
            waiting.spawn(async move {
                if let Ok(_stream) = TcpStream::connect(address).await {
                    connected.send_modify(|count| *count += 1);
                    std::future::pending::<()>().await;
                }
            });
        }
        // Linux takes one more than the queue is long.
        count.wait_for(|count| *count > QUEUE).await.unwrap();
        Self { url: format!("http://{address}/hook"), _kept: (listener, waiting) }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }
}

/// A merchant that answers when and as it is told, and not before.
pub(crate) struct Gate {
    pub(crate) receiver: Receiver,
    came: watch::Receiver<usize>,
    answers: mpsc::UnboundedSender<u16>,
}

impl Gate {
    pub(crate) async fn start() -> Self {
        let (answers, told) = mpsc::unbounded_channel();
        let (coming, came) = watch::channel(0);
        let (told, coming) = (Arc::new(Mutex::new(told)), Arc::new(coming));
        let receiver = Receiver::raw(move |mut stream| {
            let (told, coming) = (Arc::clone(&told), Arc::clone(&coming));
            async move {
                while read_request(&mut stream).await {
                    coming.send_modify(|count| *count += 1);
                    let Some(status) = told.lock().await.recv().await else { return };
                    let answer = format!("HTTP/1.1 {status} So\r\nContent-Length: 0\r\n\r\n");
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await;
        Self { receiver, came, answers }
    }

    /// Requests so far.
    pub(crate) fn came(&self) -> usize {
        *self.came.borrow()
    }

    /// Waits until so many requests have come.
    pub(crate) async fn wait_for(&mut self, count: usize) {
        super::patiently(self.came.wait_for(|came| *came >= count)).await.unwrap();
    }

    /// Answers so many requests, those that wait or the next.
    pub(crate) fn answer(&self, count: usize, status: u16) {
        (0..count).for_each(|_| self.answers.send(status).unwrap());
    }
}
