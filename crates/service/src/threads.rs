//! Threads, one per core, for connections and for what gathers their calls into batches. What is begun on one
//! stays there: nobody looks about for work, and whoever is woken waits for one thread alone (decision 0057).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// By default there are none: work is done wherever it is begun. They end, with all that still runs there, when the
/// last of these is dropped; work that holds one of them keeps them.
#[derive(Clone, Debug, Default)]
pub struct Threads(Arc<All>);

#[derive(Debug, Default)]
struct All {
    threads: Vec<Thread>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Thread {
    runtime: Handle,
    /// Dropped, it ends the thread.
    _end: oneshot::Sender<()>,
}

impl Threads {
    pub(crate) fn begin() -> std::io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = (0..cores).map(|_| Thread::begin()).collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(All { threads, next: AtomicUsize::new(0) })))
    }

    /// On each of them in turn.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let All { threads, next } = &*self.0;
        match threads.len() {
            0 => tokio::spawn(work),
            count => threads[next.fetch_add(1, Ordering::Relaxed) % count].runtime.spawn(work),
        }
    }
}

impl Thread {
    fn begin() -> std::io::Result<Self> {
        let (end, ended) = oneshot::channel::<()>();
        let (tell, told) = mpsc::channel();
        thread::Builder::new().name("svc-connections".to_owned()).spawn(move || {
            // Made where it ends: who begins threads may be on a runtime, where none may be dropped.
            match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => {
                    let _ = tell.send(Ok(runtime.handle().clone()));
                    let _ = runtime.block_on(ended);
                }
                Err(fault) => drop(tell.send(Err(fault))),
            }
        })?;
        let runtime = told.recv().expect("it tells of itself first")?;
        Ok(Self { runtime, _end: end })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[tokio::test]
    async fn work_goes_to_each_thread_in_turn_and_ends_with_them() {
        let threads = Threads::begin().unwrap();
        let cores = thread::available_parallelism().unwrap().get();
        let mut seen = HashSet::new();
        for _ in 0..cores {
            seen.insert(threads.spawn(async { thread::current().id() }).await.unwrap());
        }
        assert_eq!(seen.len(), cores);
        assert!(!seen.contains(&thread::current().id()));
        let (held, dropped) = oneshot::channel::<()>();
        threads.spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        drop(threads);
        dropped.await.unwrap_err();
    }
}
