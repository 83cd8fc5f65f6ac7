//! Where a panic ends one piece of work, not everybody's.

use std::panic::AssertUnwindSafe;
use std::task::Poll;

pub(crate) struct Panicked;

/// The panic hook has logged it.
pub(crate) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|context| {
        let polled = AssertUnwindSafe(|| work.as_mut().poll(context));
        match std::panic::catch_unwind(polled) {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        }
    })
    .await
}
