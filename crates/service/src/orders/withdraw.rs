//! A reference is dead with us, and its rail is told: whoever still pays it is found among the exceptions.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::app::App;
use crate::domain::{AttemptId, PaymentAttempt, ReferenceNumber};
use crate::rails::{Line, Rail};
use crate::store::StoreError;

/// While one node tells it, no other does.
const TELLING: SignedDuration = SignedDuration::from_secs(45);
/// A rail that has its hands full, or has not said yet what it can do.
const TURN: SignedDuration = SignedDuration::from_secs(2);
/// A rail that said no, or nothing.
const PAUSE: SignedDuration = SignedDuration::from_mins(5);
const TOLD_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Returns what is to be told, to be done beside everything else.
pub(super) async fn withdraw(
    app: &App,
    id: &AttemptId,
    reference: &ReferenceNumber,
    due_at: Timestamp,
) -> Result<Option<impl Future<Output = Result<(), StoreError>> + use<>>, StoreError> {
    let dossier = app.store.dossier(reference).await?;
    let attempt = dossier.as_ref().and_then(|dossier| dossier.attempt(id)).cloned();
    let rail = attempt.as_ref().and_then(|attempt| app.rails.named(&attempt.rail)).cloned();
    let (Some(attempt), Some(rail)) = (attempt, rail) else {
        tracing::warn!(attempt = id.as_str(), "the rail of a dead reference is not set up here");
        return app.store.withdrawn(id, due_at).await.map(|_| None);
    };
    let after = |pause| app.clock.now().saturating_add(pause).unwrap_or(Timestamp::MAX);
    let held = match rail.capabilities().map(|can| can.can_revoke) {
        Some(false) => return app.store.withdrawn(id, due_at).await.map(|_| None),
        Some(true) => match rail.line() {
            Line::Quick => None,
            Line::Slow(held) => Some(held),
            Line::Busy => {
                return app.store.withdraw_at(id, due_at, after(TURN)).await.map(|_| None);
            }
        },
        None => return app.store.withdraw_at(id, due_at, after(TURN)).await.map(|_| None),
    };
    let until = after(TELLING);
    if !app.store.withdraw_at(id, due_at, until).await? {
        return Ok(None);
    }
    let app = app.clone();
    Ok(Some(async move {
        let _held = held;
        tell(&app, &rail, &attempt, until).await
    }))
}

async fn tell(
    app: &App,
    rail: &Arc<Rail>,
    attempt: &PaymentAttempt,
    until: Timestamp,
) -> Result<(), StoreError> {
    if rail.revoke(attempt).await {
        return app.store.withdrawn(&attempt.id, until).await.map(drop);
    }
    let (now, attempt) = (app.clock.now(), &attempt.id);
    let next = now.saturating_add(PAUSE).unwrap_or(Timestamp::MAX);
    let since = now.saturating_sub(TOLD_FOR).unwrap_or(Timestamp::MIN);
    if app.store.withdraw_again(attempt, until, next, since).await? {
        tracing::warn!(
            attempt = attempt.as_str(),
            "a reference could not be withdrawn; it is tried again"
        );
        return Ok(());
    }
    tracing::error!(
        attempt = attempt.as_str(),
        rail = rail.name(),
        "a reference could not be withdrawn in a day: withdraw it at the rail"
    );
    app.store.withdrawn(attempt, until).await.map(drop)
}
