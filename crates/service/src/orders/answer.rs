//! A rail keeps silent about an attempt, and an operator found out elsewhere what became of it.

use super::settle;
use crate::app::App;
use crate::domain::{
    About, AttemptState, Author, ExceptionKind, Notice, PaymentAttempt, Reason, ReferenceNumber,
    Word,
};
use crate::store::{Received, Stepped, StoreError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The full amount, by this id of the rail's: should it tell us after all, that is old news.
    Paid {
        rail_payment_id: String,
    },
    NotPaid,
}

#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    #[error("no payment of this order is unknown: its rail has answered, or is still being asked")]
    NotUnknown,
    #[error("the rail answered meanwhile: look at the order again")]
    Answered,
    #[error("it does not confirm the order ({}): see svc exception list", .0.as_str())]
    Excepted(ExceptionKind),
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub async fn answer(
    app: &App,
    reference: &ReferenceNumber,
    found: Found,
    by: &Author,
    why: &str,
) -> Result<(), AnswerError> {
    let dossier = app.store.dossier(reference).await?.ok_or(StoreError::Unknown("the order"))?;
    let silent = |one: &&PaymentAttempt| one.state == AttemptState::Unknown && one.due_at.is_none();
    let attempt = dossier.attempts.iter().find(silent);
    let attempt = attempt.ok_or(AnswerError::NotUnknown)?;
    let now = app.clock.now();
    let cause = match &found {
        Found::Paid { rail_payment_id } => {
            format!("{} was paid by {rail_payment_id}: {why}", attempt.id.as_str())
        }
        Found::NotPaid => format!("{} was not paid: {why}", attempt.id.as_str()),
    };
    app.store.note(now, by, "attempt.answer", reference.as_str(), &cause).await?;
    let done = match found {
        Found::Paid { rail_payment_id } => {
            let notice = Notice {
                rail: attempt.rail.clone(),
                rail_payment_id,
                about: About::Attempt(attempt.id.clone()),
                word: Word::Paid(dossier.order.terms.amount.into()),
                raw: why.as_bytes().to_vec(),
            };
            match settle(app, notice, &by.request_id).await? {
                Received::Exception(kind) => return Err(AnswerError::Excepted(kind)),
                received => received == Received::Confirmed,
            }
        }
        Found::NotPaid => {
            let refused = attempt.refused(Reason::from_text(&format!("other:{why}")), now);
            matches!(app.store.step(refused).await?, Stepped::Done { .. })
        }
    };
    app.news.tell();
    if done { Ok(()) } else { Err(AnswerError::Answered) }
}
