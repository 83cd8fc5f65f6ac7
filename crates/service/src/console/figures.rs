//! Counts the hours now and then, so that the first page is quick however many orders there are.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::app::App;
use crate::domain::after;
use crate::store::StoreError;

const PERIOD: Duration = Duration::from_secs(10);
const HOUR_MS: i64 = 60 * 60 * 1_000;
/// What ended longer ago is counted for good: its first attempts have been made.
const SETTLES_AFTER: SignedDuration = SignedDuration::from_hours(1);
/// Hours counted in one go; the rest waits for the next.
const HOURS_MAX: usize = 200;

/// Runs beside the service.
pub(crate) async fn keep_figures(app: App) {
    loop {
        let watch = app.clock.stopwatch();
        if let Err(fault) = count(&app).await {
            tracing::warn!(%fault, "the figures of the console could not be counted");
        }
        // Where counting takes long it is done less often.
        tokio::time::sleep(PERIOD.max(watch.elapsed() * 10)).await;
    }
}

/// Counts from the first hour that may have changed to the present one.
pub async fn count(app: &App) -> Result<(), StoreError> {
    let now = app.clock.now();
    let mut from = app.store.figures_counted_to().await?.unwrap_or(Timestamp::UNIX_EPOCH);
    for _ in 0..HOURS_MAX {
        let Some(news) = app.store.first_news_since(from).await? else { break };
        let hour = hour_of(news.max(from));
        if hour > now {
            break;
        }
        app.store.count_hour(hour, now).await?;
        from = after(hour, SignedDuration::from_hours(1));
        if now.duration_since(from) >= SETTLES_AFTER {
            app.store.set_figures_counted_to(from).await?;
        }
    }
    Ok(())
}

pub(super) fn hour_of(at: Timestamp) -> Timestamp {
    let ms = at.as_millisecond();
    Timestamp::from_millisecond(ms - ms.rem_euclid(HOUR_MS)).unwrap_or(at)
}
