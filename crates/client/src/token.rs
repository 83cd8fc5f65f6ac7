//! The access token: kept until a minute before it expires, fetched once however many ask (spec 4.1).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::error::Error;

/// Before it expires, so that no call is under way with a token that dies.
const SPARE: Duration = Duration::from_secs(60);
/// Whatever an answer says about its life: no token is believed to be good for longer than a day.
const LIFE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Default)]
pub(crate) struct TokenCache {
    kept: Mutex<Last>,
    /// How many fetches have ended.
    ended: AtomicU64,
}

/// What the last fetch gave.
#[derive(Default)]
enum Last {
    #[default]
    Nothing,
    Token(Kept),
    Failure(Error),
}

struct Kept {
    bearer: Arc<str>,
    good_until: Instant,
}

pub(crate) struct Fetched {
    pub access_token: String,
    pub expires_in: Duration,
}

impl TokenCache {
    /// The token that is kept, or a new one. Whoever comes while it is fetched waits for that one and
    /// shares what comes of it: were a failure not shared, the last of many would wait for each of them.
    pub(crate) async fn bearer<F>(&self, fetch: impl FnOnce() -> F) -> Result<Arc<str>, Error>
    where
        F: Future<Output = Result<Fetched, Error>>,
    {
        let ended_before = self.ended.load(Ordering::Acquire);
        let mut kept = self.kept.lock().await;
        let asked_at = now();
        match &*kept {
            Last::Token(known) if asked_at < known.good_until => {
                return Ok(Arc::clone(&known.bearer));
            }
            Last::Failure(fault) if self.ended.load(Ordering::Acquire) != ended_before => {
                return Err(fault.clone());
            }
            _ => {}
        }
        let fetched = fetch().await;
        self.ended.fetch_add(1, Ordering::Release);
        match fetched {
            Ok(Fetched { access_token, expires_in }) => {
                let bearer: Arc<str> = format!("Bearer {access_token}").into();
                let good_until = asked_at + expires_in.min(LIFE_MAX).saturating_sub(SPARE);
                *kept = Last::Token(Kept { bearer: Arc::clone(&bearer), good_until });
                Ok(bearer)
            }
            Err(fault) => {
                *kept = Last::Failure(fault.clone());
                Err(fault)
            }
        }
    }

    /// Forgets this token, unless another has taken its place already.
    pub(crate) async fn forget(&self, bearer: &str) {
        let mut kept = self.kept.lock().await;
        if matches!(&*kept, Last::Token(known) if &*known.bearer == bearer) {
            *kept = Last::Nothing;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one clock of this crate")]
fn now() -> Instant {
    Instant::now()
}
