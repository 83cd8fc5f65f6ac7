//! A reference is dead with us, and its rail is told: whoever still pays it is found among the exceptions.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::follow::paid;
use super::settle;
use crate::app::App;
use crate::domain::{AttemptId, Kwanza, PaymentAttempt, ReferenceNumber, Status, after, before};
use crate::rails::{Line, Outcome, Rail};
use crate::store::StoreError;

/// While one node tells it, no other does.
const TELLING: SignedDuration = SignedDuration::from_secs(45);
/// A rail that has its hands full, or has not said yet what it can do.
const TURN: SignedDuration = SignedDuration::from_secs(30);
/// A rail that said no, or nothing, or is not set up.
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
    let (Some(dossier), Some(attempt), Some(rail)) = (dossier, attempt, rail) else {
        return again(app, id, due_at, PAUSE).await.map(|()| None);
    };
    let is_open = dossier.order.status == Status::Pending;
    let held = match rail.capabilities() {
        // It cannot be told. While the order can still be paid, one that can be asked is.
        Some(can) if !(can.can_revoke || can.can_query && is_open) => {
            return done(app, id, due_at).await.map(|()| None);
        }
        Some(_) => match rail.spare_line() {
            Line::Quick => None,
            Line::Slow(held) => Some(held),
            Line::Busy(after) => {
                return later(app, id, due_at, after.max(TURN)).await.map(|()| None);
            }
        },
        None => return later(app, id, due_at, TURN).await.map(|()| None),
    };
    let until = after(app.clock.now(), TELLING);
    if !app.store.move_withdrawal(id, due_at, Some(until), Timestamp::MIN).await? {
        return Ok(None);
    }
    let app = app.clone();
    Ok(Some(async move {
        let _held = held;
        tell(&app, &rail, &attempt, dossier.order.terms.amount, until).await
    }))
}

async fn tell(
    app: &App,
    rail: &Arc<Rail>,
    attempt: &PaymentAttempt,
    asked: Kwanza,
    until: Timestamp,
) -> Result<(), StoreError> {
    let can = rail.capabilities().unwrap_or_default();
    if can.can_revoke && rail.revoke(attempt).await {
        return done(app, &attempt.id, until).await;
    }
    // Most often because it was paid a moment ago: better to ask than to be told when the order is over.
    let outcome = match can.can_query {
        true => rail.query(attempt, asked, app.clock.now()).await,
        false => Outcome::Unknown,
    };
    match outcome {
        Outcome::Paid { rail_payment_id, amount } => {
            settle(app, paid(attempt, rail_payment_id, amount), "").await?;
            done(app, &attempt.id, until).await
        }
        Outcome::Refused(_) if !can.can_revoke => done(app, &attempt.id, until).await,
        _ if can.can_revoke => {
            tracing::warn!(attempt = attempt.id.as_str(), "a reference could not be withdrawn");
            again(app, &attempt.id, until, PAUSE).await
        }
        // It cannot be told, only asked: that goes on while the order is open.
        _ => later(app, &attempt.id, until, PAUSE).await,
    }
}

async fn done(app: &App, id: &AttemptId, due_at: Timestamp) -> Result<(), StoreError> {
    app.store.move_withdrawal(id, due_at, None, Timestamp::MIN).await.map(drop)
}

/// For as long as it takes.
async fn later(
    app: &App,
    id: &AttemptId,
    due_at: Timestamp,
    pause: SignedDuration,
) -> Result<(), StoreError> {
    let next = after(app.clock.now(), pause);
    app.store.move_withdrawal(id, due_at, Some(next), Timestamp::MIN).await.map(drop)
}

/// Later, for a day.
async fn again(
    app: &App,
    id: &AttemptId,
    due_at: Timestamp,
    pause: SignedDuration,
) -> Result<(), StoreError> {
    let now = app.clock.now();
    let next = after(now, pause);
    let since = before(now, TOLD_FOR);
    if app.store.move_withdrawal(id, due_at, Some(next), since).await? {
        return Ok(());
    }
    if app.store.move_withdrawal(id, due_at, None, Timestamp::MIN).await? {
        tracing::error!(
            attempt = id.as_str(),
            "a reference could not be withdrawn in a day: withdraw it at its rail"
        );
    }
    Ok(())
}
