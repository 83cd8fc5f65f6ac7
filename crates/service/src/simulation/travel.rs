//! The way of a sandbox to a later time: every deadline and every retry on it happens at its own moment, in order.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::app::{App, joined};
use crate::orders;
use crate::store::StoreError;

/// A journey with many stops goes on after this; its caller is told.
const ANSWER_AFTER: Duration = Duration::from_secs(8);

/// Whether it arrived while somebody waited; it goes on either way.
pub(crate) async fn travel(app: &App, by: SignedDuration) -> Result<bool, StoreError> {
    // A caller that hangs up does not leave the sandbox between two times.
    let journey = tokio::spawn(go(app.clone(), by));
    match tokio::time::timeout(ANSWER_AFTER, journey).await {
        Ok(ended) => joined(ended)?.map(|()| true),
        Err(_) => Ok(false),
    }
}

/// From one moment at which something is due to the next.
async fn go(app: App, by: SignedDuration) -> Result<(), StoreError> {
    let _one_at_a_time = app.travel.lock().await;
    let target = app.clock.ahead().saturating_add(by);
    let mut stuck_at = None;
    loop {
        orders::run_due(&app).await?;
        let webhooks = app.outbox_bell.sent().await;
        let orders = orders::next_due(&app).await?;
        let next = webhooks.into_iter().chain(orders).min().unwrap_or(Timestamp::MAX);
        let left = target.saturating_sub(app.clock.ahead());
        if left <= SignedDuration::ZERO {
            return Ok(());
        }
        let wait = next.duration_since(app.clock.now());
        // It fell due while we looked: look again. What stays due must not keep us from arriving.
        if wait <= SignedDuration::ZERO && stuck_at != Some(next) {
            stuck_at = Some(next);
            continue;
        }
        let stop = if wait <= SignedDuration::ZERO { left } else { wait.min(left) };
        app.clock.advance(stop);
        app.store.set_clock_ahead(app.clock.ahead()).await?;
    }
}
