//! Whether the database commits: asked once for all who want to know at the same time. Anybody may ask, and each
//! question would take a connection, or a place in the queue, from those who pay.

use std::time::Duration;

use tokio::sync::Mutex;

use super::Clock;
use crate::domain::Steady;
use crate::store::Store;

const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// So long a good answer holds. A bad one does not: the first commit ends it.
const GOOD_FOR: Duration = Duration::from_millis(250);

#[derive(Default)]
pub struct Ready(Mutex<Option<Steady>>);

impl Ready {
    pub async fn is(&self, store: &Store, clock: &Clock) -> bool {
        let mut good_until = self.0.lock().await;
        if good_until.is_some_and(|until| clock.steady() < until) {
            return true;
        }
        let answer = tokio::time::timeout(PING_TIMEOUT, store.ping()).await;
        let good = matches!(answer, Ok(Ok(())));
        *good_until = good.then(|| clock.steady().after(GOOD_FOR));
        good
    }
}
