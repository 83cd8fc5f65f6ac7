//! Waiting for a condition, never for a time.

use std::time::{Duration, Instant};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks until `look` finds something; panics when the time is over.
#[expect(clippy::disallowed_methods, reason = "a deadline of the test itself, not of the service")]
pub(crate) fn until<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < within, "waited {within:?} in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}
