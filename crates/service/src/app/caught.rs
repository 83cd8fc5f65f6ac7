//! Where a panic ends one piece of work, not everybody's, and where it goes on.

use std::panic::AssertUnwindSafe;
use std::task::Poll;

use tokio::task::JoinError;

use crate::store::StoreError;

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

/// What a task came to; its panic goes on here.
pub(crate) fn joined<T>(ended: Result<T, JoinError>) -> Result<T, StoreError> {
    ended.map_err(|ended| match ended.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => StoreError::Unavailable("the service is ending".into()),
    })
}
