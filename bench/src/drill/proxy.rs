//! A network between two parties that can be made as bad as networks are.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::target::mix;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Weather {
    Fair,
    /// Nothing arrives any more, in either direction, and nobody is told.
    BlackHole,
    /// Connections are cut, and new ones at once.
    Reset,
    /// Everything takes so much longer.
    Slow(Duration),
    /// One answer in so many is lost with its connection: whoever asked knows nothing.
    LosesAnswers(u64),
}

/// Stands before one or several addresses; connections go to them in turn, past those that take none.
pub(super) struct Proxy {
    pub address: SocketAddr,
    weather: watch::Sender<Weather>,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    pub(super) async fn start(targets: Vec<String>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (weather, watched) = watch::channel(Weather::Fair);
        let task = tokio::spawn(async move {
            for turn in 0.. {
                let Ok((caller, _)) = listener.accept().await else { continue };
                let mut targets = targets.clone();
                let first = turn % targets.len();
                targets.rotate_left(first);
                tokio::spawn(connect(caller, targets, watched.clone()));
            }
        });
        Ok(Self { address, weather, task })
    }

    pub(super) fn becomes(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn connect(caller: TcpStream, targets: Vec<String>, weather: watch::Receiver<Weather>) {
    let mut changing = weather.clone();
    let now = *changing.borrow_and_update();
    if now == Weather::Reset {
        return;
    }
    if now == Weather::BlackHole && changing.changed().await.is_err() {
        return;
    }
    let Some(called) = first_of(&targets).await else { return };
    let _ = (caller.set_nodelay(true), called.set_nodelay(true));
    let ((from_caller, to_caller), (from_called, to_called)) =
        (caller.into_split(), called.into_split());
    let answers =
        Arc::new(AtomicU64::new(mix(u64::from(to_caller.local_addr().map_or(0, |a| a.port())))));
    // Whichever way ends first, both do.
    tokio::select! {
        () = carry(from_caller, to_called, weather.clone(), None) => {}
        () = carry(from_called, to_caller, weather.clone(), Some(answers)) => {}
        () = cut(weather) => {}
    }
}

async fn first_of(targets: &[String]) -> Option<TcpStream> {
    for target in targets {
        if let Ok(stream) = TcpStream::connect(target).await {
            return Some(stream);
        }
    }
    None
}

async fn cut(mut weather: watch::Receiver<Weather>) {
    if weather.wait_for(|now| *now == Weather::Reset).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
    answers: Option<Arc<AtomicU64>>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(read) = from.read(&mut buffer).await else { return };
        if read == 0 {
            return;
        }
        let now = *weather.borrow_and_update();
        match (now, &answers) {
            (Weather::BlackHole, _) => {
                // What was on its way is lost: the connection never recovers, and nobody says so.
                std::future::pending::<()>().await;
            }
            (Weather::Slow(by), _) => tokio::time::sleep(by).await,
            (Weather::LosesAnswers(one_in), Some(seen))
                if mix(seen.fetch_add(1, Ordering::Relaxed)).is_multiple_of(one_in) =>
            {
                return;
            }
            _ => {}
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
