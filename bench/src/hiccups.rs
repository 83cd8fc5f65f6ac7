//! How long the machine itself makes anybody wait: a thread that wakes, writes a page and syncs it, beside a
//! measurement of delay. Nothing that commits before it answers can be quicker than that.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::anyhow;
use serde::Serialize;
use svc_service::app::Clock;

use crate::process::own_directory;

const PERIOD: Duration = Duration::from_millis(10);
const PAGE: [u8; 4096] = [0x5a; 4096];

#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hiccups {
    pub p99_ms: u64,
    pub max_ms: u64,
}

/// Watches until it is asked.
pub(crate) struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<anyhow::Result<Vec<u64>>>,
}

impl Watch {
    pub(crate) fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        Self { over, thread: std::thread::spawn(move || watch(&seen)) }
    }

    pub(crate) fn end(self) -> anyhow::Result<Hiccups> {
        self.over.store(true, Ordering::Relaxed);
        let mut late = self.thread.join().map_err(|_| anyhow!("the watch panicked"))??;
        late.sort_unstable();
        let at = |share: f64| late.get(((late.len() - 1) as f64 * share) as usize).copied();
        Ok(Hiccups { p99_ms: at(0.99).unwrap_or(0), max_ms: at(1.0).unwrap_or(0) })
    }
}

fn watch(over: &AtomicBool) -> anyhow::Result<Vec<u64>> {
    let path = own_directory()?.join(format!("bench-hiccups-{}", std::process::id()));
    let (file, clock) = (File::create(&path)?, Clock::system());
    let mut late = vec![0];
    while !over.load(Ordering::Relaxed) {
        let watch = clock.stopwatch();
        std::thread::sleep(PERIOD);
        file.write_all_at(&PAGE, 0)?;
        file.sync_data()?;
        let lost = watch.elapsed().saturating_sub(PERIOD);
        // Whoever came while it stood still waited too, each a period less than the one before.
        let waits = std::iter::successors(Some(lost), |lost| lost.checked_sub(PERIOD));
        late.extend(waits.map(|lost| lost.as_millis() as u64));
    }
    std::fs::remove_file(path)?;
    Ok(late)
}
