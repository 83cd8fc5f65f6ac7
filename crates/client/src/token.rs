//! The access token: kept until a minute before it expires, fetched once however many ask (spec 4.1).

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::error::Error;

/// Before it expires, so that no call is under way with a token that dies.
const SPARE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct TokenCache(Mutex<Option<Kept>>);

struct Kept {
    bearer: Arc<str>,
    good_until: Instant,
}

pub(crate) struct Fetched {
    pub access_token: String,
    pub expires_in: Duration,
}

impl TokenCache {
    /// The token that is kept, or a new one. Whoever comes while it is fetched waits for that one.
    pub(crate) async fn bearer<F>(&self, fetch: impl FnOnce() -> F) -> Result<Arc<str>, Error>
    where
        F: Future<Output = Result<Fetched, Error>>,
    {
        let mut kept = self.0.lock().await;
        let asked_at = now();
        if let Some(known) = kept.as_ref().filter(|known| asked_at < known.good_until) {
            return Ok(Arc::clone(&known.bearer));
        }
        let fetched = fetch().await?;
        let bearer: Arc<str> = format!("Bearer {}", fetched.access_token).into();
        let good_for = fetched.expires_in.saturating_sub(SPARE);
        *kept = Some(Kept { bearer: Arc::clone(&bearer), good_until: asked_at + good_for });
        Ok(bearer)
    }

    /// Forgets this token, unless another has taken its place already.
    pub(crate) async fn forget(&self, bearer: &str) {
        let mut kept = self.0.lock().await;
        if kept.as_ref().is_some_and(|known| &*known.bearer == bearer) {
            *kept = None;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one clock of this crate")]
fn now() -> Instant {
    Instant::now()
}
