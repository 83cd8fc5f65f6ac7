//! An attempt nobody has heard of in time: its rail is asked, and not taken for granted.

use jiff::{SignedDuration, Timestamp};

use super::settle;
use crate::app::App;
use crate::domain::{
    About, AttemptId, AttemptState, Notice, PaymentAttempt, Reason, ReferenceNumber, Step, Word,
};
use crate::rails::Outcome;
use crate::store::{Received, StoreError};

/// While one node asks, no other does.
const ASKING: SignedDuration = SignedDuration::from_secs(45);

pub(super) async fn follow(
    app: &App,
    id: &AttemptId,
    reference: &ReferenceNumber,
    due_at: Timestamp,
) -> Result<(), StoreError> {
    let now = app.clock.now();
    let until = now.saturating_add(ASKING).unwrap_or(Timestamp::MAX);
    if !app.store.claim_attempt(id, due_at, until).await? {
        return Ok(());
    }
    let Some(dossier) = app.store.dossier(reference).await? else { return Ok(()) };
    let Some(attempt) = dossier.attempt(id) else { return Ok(()) };
    let rail = app.rails.named(&attempt.rail);
    let outcome = match rail {
        Some(rail) => rail.query(attempt, dossier.order.terms.amount, now).await,
        None => Outcome::Unknown,
    };
    match outcome {
        Outcome::Paid { rail_payment_id, amount } => {
            let notice = Notice {
                rail: attempt.rail.clone(),
                raw: format!("query {rail_payment_id}").into_bytes(),
                rail_payment_id,
                about: About::Attempt(attempt.id.clone()),
                word: Word::Paid(amount),
            };
            match settle(app, notice, "").await? {
                // An id the rail has used before: it does not say what became of this attempt.
                Received::Duplicate => app.store.step(attempt.unknown(now)).await.map(drop),
                _ => Ok(()),
            }
        }
        Outcome::Refused(reason) => app.store.step(refused(attempt, reason, now)).await.map(drop),
        Outcome::Unknown => app.store.step(attempt.unknown(now)).await.map(drop),
    }
}

/// A code nobody used has expired, a push nobody answered has timed out; else it was refused.
fn refused(attempt: &PaymentAttempt, reason: Reason, now: Timestamp) -> Step {
    match (attempt.state, reason) {
        (AttemptState::Issued, Reason::Timeout) => attempt.step(AttemptState::Expired, now),
        (_, Reason::Timeout) => {
            let step = attempt.step(AttemptState::TimedOut, now);
            Step { reason: Some(Reason::Timeout), ..step }
        }
        (_, reason) => attempt.refused(reason, now),
    }
}
