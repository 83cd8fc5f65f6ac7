//! Waiting for what must come, and how long it took.

use std::time::{Duration, Instant};

use anyhow::bail;

use super::crowd::Crowd;

const LOOK_PERIOD: Duration = Duration::from_millis(50);
const LOOKS_MAX: u32 = 600;

/// Looks again and again until it is so.
pub(super) async fn until(what: &str, is_so: impl AsyncFn() -> bool) -> anyhow::Result<()> {
    for _ in 0..LOOKS_MAX {
        if is_so().await {
            return Ok(());
        }
        tokio::time::sleep(LOOK_PERIOD).await;
    }
    bail!("waited in vain until {what}")
}

/// Waits until something more is acknowledged; how long it took.
#[expect(clippy::disallowed_methods, reason = "a drill measures real time")]
pub(super) async fn until_more(crowd: &Crowd) -> anyhow::Result<Duration> {
    let (begun, before) = (Instant::now(), crowd.acknowledged());
    until("orders are created again", async || crowd.acknowledged() > before + 10).await?;
    Ok(begun.elapsed())
}

pub(super) fn ms(time: Duration) -> String {
    format!("{} ms", time.as_millis())
}
