//! What a rail says about money, and what follows from it. Pure.

use super::words::words;
use super::{
    AttemptId, AttemptState, BankReference, Centimos, Change, Dossier, Instrument, PaymentAttempt,
    Proof, Reason, ReferenceNumber, Refusal, Stamp, Status, Step, Word,
};

/// A rail's word, already authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub rail: String,
    /// The rail's id of what happened: the same id and kind again is the same news again, unless it is
    /// about other money.
    pub rail_payment_id: String,
    pub about: About,
    pub word: Word,
    /// What the rail sent, byte for byte.
    pub raw: Vec<u8>,
}

impl Notice {
    /// As the attempt's rail would tell it.
    pub fn of(attempt: &PaymentAttempt, rail_payment_id: String, word: Word, raw: &str) -> Self {
        Self {
            rail: attempt.rail.clone(),
            rail_payment_id,
            about: About::Attempt(attempt.id.clone()),
            word,
            raw: raw.into(),
        }
    }

    /// What tells it from other money of the same id: the attempt that brought it, the order if that is all
    /// we know, else what the rail says that it is for.
    pub fn own_name(&self, order: Option<&ReferenceNumber>, attempt: Option<&AttemptId>) -> String {
        let about = attempt.cloned().map(About::Attempt);
        let about = about.or_else(|| order.cloned().map(About::Order));
        let about = about.as_ref().unwrap_or(&self.about);
        format!("{} ({} for {about})", self.rail_payment_id, self.word.amount())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    Attempt(AttemptId),
    Reference(BankReference),
    /// No rail speaks of orders; the sandbox does, where it plays one.
    Order(ReferenceNumber),
}

impl std::fmt::Display for About {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Attempt(id) => write!(f, "attempt {}", id.as_str()),
            Self::Reference(r) => write!(f, "entity {} reference {}", r.entity(), r.number()),
            Self::Order(reference) => write!(f, "order {}", reference.as_str()),
        }
    }
}

words! {
    /// Money, or news of it, that fits no open order.
    pub enum ExceptionKind {
        /// The order was cancelled before.
        Late = "late",
        /// Not the amount of the order, which stays pending until an operator has decided.
        Mismatch = "mismatch",
        /// The amount of the order, by an id of the rail's that was of other money before: it may be the
        /// rail's mistake, and the order stays pending until an operator has found out.
        Reused = "reused",
        /// The order was paid before.
        Excess = "excess",
        /// Nobody knows what it is for.
        Unmatched = "unmatched",
        Reversal = "reversal",
    }
}

impl ExceptionKind {
    /// Whether its order waits for an operator, who may accept it.
    pub fn holds_order(self) -> bool {
        matches!(self, Self::Mismatch | Self::Reused)
    }

    /// What becomes of the attempt that brought the money, if one did and was not over: money that is
    /// held is held even then.
    pub fn leaves(self) -> Option<AttemptState> {
        match self {
            Self::Mismatch | Self::Reused => Some(AttemptState::Held),
            Self::Late | Self::Excess => Some(AttemptState::Accepted),
            Self::Unmatched | Self::Reversal => None,
        }
    }

    /// Why money for an order that is no longer pending does not fit it.
    pub fn of_settled(status: Status) -> Self {
        match status {
            Status::Cancelled => Self::Late,
            Status::Confirmed | Status::Pending => Self::Excess,
        }
    }

    /// The same, with what people are told of it.
    pub fn of_lost(status: Status) -> (Self, String) {
        (Self::of_settled(status), Refusal::AlreadySettled(status).to_string())
    }

    /// What it is once the order is known to stand like this: it may have ended since the notice was
    /// weighed, and then nothing is held for it any more.
    pub fn weigh_again(self, status: Option<Status>) -> Self {
        match status {
            Some(settled) if self.holds_order() && settled != Status::Pending => {
                Self::of_settled(settled)
            }
            _ => self,
        }
    }
}

/// What a notice does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// If the order is still pending; else it is an exception.
    Confirm(Box<Change>),
    /// If the attempt is still in that state; else it is old news.
    Step(Box<Step>),
    Exception {
        kind: ExceptionKind,
        detail: String,
    },
    /// Old news.
    Nothing,
}

impl Effect {
    /// The same, by an id that was of other money before: it confirms nothing by itself.
    pub fn of_reused_id(self) -> Self {
        match self {
            Self::Confirm(_) => Self::Exception {
                kind: ExceptionKind::Reused,
                detail: "the rail's id was of other money before".into(),
            },
            other => other,
        }
    }
}

/// What the notice means for the order it is about, if there is one.
pub fn weigh(
    notice: &Notice,
    about: Option<(&Dossier, Option<&PaymentAttempt>)>,
    stamp: &Stamp,
) -> Effect {
    let Some((dossier, attempt)) = about else {
        let detail = format!("{} for {}", notice.word.kind(), notice.about);
        return Effect::Exception { kind: ExceptionKind::Unmatched, detail };
    };
    match &notice.word {
        Word::Paid(amount) => paid(notice, *amount, dossier, attempt, stamp),
        Word::Reversed(amount) => Effect::Exception {
            kind: ExceptionKind::Reversal,
            detail: format!("{amount} kwanza were taken back"),
        },
        // A refusal after money came does not take the money back.
        Word::Refused(reason) => match attempt.filter(|attempt| attempt.state.may_be_paid()) {
            Some(open) => Effect::Step(Box::new(open.refused(reason.clone(), stamp.at))),
            None => Effect::Nothing,
        },
        Word::Unconfirmed => match attempt {
            Some(open)
                if matches!(open.state, AttemptState::Issued | AttemptState::AwaitingPayer) =>
            {
                Effect::Step(Box::new(open.unknown(stamp.at)))
            }
            Some(_) | None => Effect::Nothing,
        },
    }
}

/// A number that came with a refusal of ours: the rail had given it to another order before, and the payer of this one
/// never saw it. Whose money it brings only people can find out.
fn is_of_two(attempt: &PaymentAttempt) -> bool {
    let has_number =
        matches!(attempt.instrument, Instrument::Reference(Some(_)) | Instrument::Code(Some(_)));
    attempt.state == AttemptState::Rejected && attempt.reason == Some(Reason::Config) && has_number
}

fn paid(
    notice: &Notice,
    amount: Centimos,
    dossier: &Dossier,
    attempt: Option<&PaymentAttempt>,
    stamp: &Stamp,
) -> Effect {
    let proof = Proof {
        rail: notice.rail.clone(),
        rail_payment_id: notice.rail_payment_id.clone(),
        amount,
        attempt: attempt.map(|attempt| attempt.id.clone()),
    };
    let confirmed =
        dossier.order.clone().pending().and_then(|open| open.confirm(&proof, stamp.clone()));
    match confirmed {
        Ok(_) if attempt.is_some_and(is_of_two) => Effect::Exception {
            kind: ExceptionKind::Reused,
            detail: "its number may be another order's as well".into(),
        },
        Ok(change) => Effect::Confirm(Box::new(change)),
        Err(refusal) => {
            let kind = match refusal {
                Refusal::AlreadySettled(status) => ExceptionKind::of_settled(status),
                Refusal::AmountDiffers { .. } => ExceptionKind::Mismatch,
            };
            Effect::Exception { kind, detail: refusal.to_string() }
        }
    }
}
