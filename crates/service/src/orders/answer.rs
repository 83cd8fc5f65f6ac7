//! A rail keeps silent about an attempt, and an operator found out elsewhere what became of it.

use super::{read_dossier, settle};
use crate::app::App;
use crate::domain::{
    AttemptId, AttemptState, Author, Dossier, ExceptionKind, Notice, PaymentAttempt, Reason,
    ReferenceNumber, Word,
};
use crate::store::{Received, Stepped, StoreError};

/// What an operator knows of an attempt.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Which, where the rails of several keep silent.
    pub attempt: Option<AttemptId>,
    pub found: Found,
    /// How they know.
    pub why: String,
}

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
    #[error("no payment of this order is unknown: see svc order show")]
    NotUnknown,
    #[error(
        "its rail is still being asked about this payment, for a day: what it says is noted by itself"
    )]
    StillAsked,
    #[error("several payments of this order are unknown: name one with --attempt, {}", .0.join(" or "))]
    Several(Vec<String>),
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
    answered: Answered,
    by: &Author,
) -> Result<(), AnswerError> {
    let dossier = read_dossier(app, reference).await?;
    let Answered { attempt, found, why } = answered;
    let attempt = silent(&dossier, attempt.as_ref())?;
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
            let word = Word::Paid(dossier.order.terms.amount.into());
            let notice = Notice::of(attempt, rail_payment_id, word, &why);
            match settle(app, notice, &by.request_id).await? {
                Received::Exception(kind) => return Err(AnswerError::Excepted(kind)),
                received => received == Received::Confirmed,
            }
        }
        Found::NotPaid => {
            let not_paid = attempt.given_up(Reason::from_text(&format!("other:{why}")), now);
            matches!(app.store.step(not_paid).await?, Stepped::Done { .. })
        }
    };
    app.news.tell();
    if done { Ok(()) } else { Err(AnswerError::Answered) }
}

/// The attempt whose rail is no longer asked.
fn silent<'a>(
    dossier: &'a Dossier,
    named: Option<&AttemptId>,
) -> Result<&'a PaymentAttempt, AnswerError> {
    let unknown = dossier.attempts.iter().filter(|one| {
        one.state == AttemptState::Unknown && named.is_none_or(|named| one.id == *named)
    });
    let (asked, silent): (Vec<_>, Vec<_>) = unknown.partition(|one| one.due_at.is_some());
    match silent.as_slice() {
        [only] => Ok(only),
        [] if asked.is_empty() => Err(AnswerError::NotUnknown),
        [] => Err(AnswerError::StillAsked),
        several => {
            let ids = several.iter().map(|one| one.id.as_str().to_owned()).collect();
            Err(AnswerError::Several(ids))
        }
    }
}
