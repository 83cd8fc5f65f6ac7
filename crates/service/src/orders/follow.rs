//! An attempt nobody has heard of in time: its rail is asked, and not taken for granted.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::settle;
use crate::app::App;
use crate::domain::{
    AttemptId, AttemptState, Centimos, Kwanza, Notice, PaymentAttempt, Reason, ReferenceNumber,
    Step, Word, after,
};
use crate::rails::{Line, Outcome, Rail};
use crate::store::{Received, StoreError};

/// While one node asks, no other does.
const ASKING: SignedDuration = SignedDuration::from_secs(45);

/// A rail that cannot be asked tells by itself. After the time in which something could be paid it is waited for
/// so long; then an operator may say how it went.
const TELLS_WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// Asks where the answer is at hand; else returns the question, to be asked beside everything else.
pub(super) async fn follow(
    app: &App,
    id: &AttemptId,
    reference: &ReferenceNumber,
    due_at: Timestamp,
) -> Result<Option<impl Future<Output = Result<(), StoreError>> + use<>>, StoreError> {
    let Some(dossier) = app.store.dossier(reference).await? else { return Ok(None) };
    let Some(attempt) = dossier.attempt(id) else { return Ok(None) };
    let rail = app.rails.named(&attempt.rail).cloned();
    let line = rail.as_ref().map_or(Line::Quick, |rail| rail.line());
    let away = if let Line::Busy(after) = line { after } else { ASKING };
    let until = after(app.clock.now(), away);
    if !app.store.claim_attempt(id, due_at, until).await? {
        return Ok(None);
    }
    let question = Question { attempt: attempt.clone(), amount: dossier.order.terms.amount, rail };
    match line {
        Line::Quick => question.ask(app).await.map(|()| None),
        Line::Busy(_) => Ok(None),
        Line::Slow(held) => {
            let app = app.clone();
            Ok(Some(async move {
                let _held = held;
                question.ask(&app).await
            }))
        }
    }
}

struct Question {
    attempt: PaymentAttempt,
    amount: Kwanza,
    rail: Option<Arc<Rail>>,
}

impl Question {
    async fn ask(self, app: &App) -> Result<(), StoreError> {
        let Self { attempt, amount, rail } = self;
        let now = app.clock.now();
        let askable = rail.filter(|rail| rail.capabilities().is_none_or(|can| can.can_query));
        let is_mute = askable.is_none();
        let outcome = match askable {
            Some(rail) => rail.query(&attempt, amount, now).await,
            None => Outcome::Unknown,
        };
        match outcome {
            Outcome::Paid { rail_payment_id, amount } => {
                match settle(app, paid(&attempt, rail_payment_id, amount), "").await? {
                    // It was known, and left this attempt open: it is not what became of it.
                    Received::Duplicate => app.store.step(attempt.unknown(now)).await.map(drop),
                    _ => Ok(()),
                }
            }
            Outcome::Refused(reason) => {
                app.store.step(refused(&attempt, reason, now)).await.map(drop)
            }
            Outcome::Unknown => {
                let mut step = attempt.unknown(now);
                if is_mute && now >= after(attempt.deadline, TELLS_WITHIN) {
                    step.due_at = None;
                }
                if step.due_at.is_none() {
                    tracing::error!(
                        order = attempt.reference_number.as_str(),
                        rail = attempt.rail,
                        "nobody says what became of a payment: find out, then svc order answer"
                    );
                }
                app.store.step(step).await.map(drop)
            }
        }
    }
}

/// As if the rail had told it by itself.
pub(super) fn paid(attempt: &PaymentAttempt, rail_payment_id: String, amount: Centimos) -> Notice {
    let raw = format!("query {rail_payment_id}");
    Notice::of(attempt, rail_payment_id, Word::Paid(amount), &raw)
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
