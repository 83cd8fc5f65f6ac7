//! An order and all that was tried to pay it: what decides what may happen next. Pure.

use jiff::{SignedDuration, Timestamp};

use super::{
    AttemptId, AttemptState, CancelReason, Order, PaymentAttempt, PaymentMethod, Status, after,
};

/// Tries by one method. A payer who needs more has another problem.
pub const TRIES_PER_METHOD_MAX: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dossier {
    pub order: Order,
    /// A cancellation that waits for the attempt in flight; a confirmation wins over it.
    pub cancel_requested: Option<CancelReason>,
    /// Since when the order is no longer offered.
    pub closing_since: Option<Timestamp>,
    /// When it was paid or cancelled.
    pub settled_at: Option<Timestamp>,
    /// Oldest first.
    pub attempts: Vec<PaymentAttempt>,
}

/// What a payer who chooses a method gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A new attempt.
    Start,
    /// The one that is there: a second click is not a second payment.
    Show,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayRefusal {
    #[error("the order is already {}", .0.code())]
    Settled(Status),
    #[error("the order is no longer offered")]
    Closed,
    #[error("another attempt is under way")]
    InFlight,
    #[error("the order was tried too often by this method")]
    TooManyAttempts,
}

/// What is to be done with an order whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// No longer offered. It may still be paid at a rail, money may be moving, or waits for an operator: look
    /// again then.
    Close {
        until: Timestamp,
    },
    Cancel(CancelReason),
}

/// What becomes of an order whose payer closed the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// Nothing was begun that could still be paid.
    GiveUp,
    /// A push may be answered, or a code approved in the wallet, until then: look again.
    Wait { until: Timestamp },
    /// A reference the payer may have written down, money that may be moving: its own time ends it.
    Stay,
}

/// How long to wait before looking again at an order that cannot end yet. What it waits for wakes it
/// earlier.
const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

impl Dossier {
    pub fn open(&self, method: PaymentMethod, now: Timestamp) -> Result<Opening, PayRefusal> {
        if self.order.status != Status::Pending {
            return Err(PayRefusal::Settled(self.order.status));
        }
        if let Some(attempt) = self.in_flight() {
            return match attempt.instrument.method() == method {
                true => Ok(Opening::Show),
                false => Err(PayRefusal::InFlight),
            };
        }
        if self.is_held() || self.code_is_asked_about(now) {
            return Err(PayRefusal::InFlight);
        }
        if !self.is_offered(now) {
            return Err(PayRefusal::Closed);
        }
        if self.live(method, now).is_some() {
            return Ok(Opening::Show);
        }
        let tried = self.attempts.iter().filter(|tried| tried.instrument.method() == method);
        if tried.count() >= TRIES_PER_METHOD_MAX {
            return Err(PayRefusal::TooManyAttempts);
        }
        Ok(Opening::Start)
    }

    /// Whether a payer may still choose how to pay.
    pub fn is_offered(&self, now: Timestamp) -> bool {
        self.order.status == Status::Pending
            && self.closing_since.is_none()
            && self.cancel_requested.is_none()
            && now < self.order.expires_at
    }

    pub fn attempt(&self, id: &AttemptId) -> Option<&PaymentAttempt> {
        self.attempts.iter().find(|attempt| attempt.id == *id)
    }

    /// The attempt that may be moving money at this moment; the newest, should there be two.
    pub fn in_flight(&self) -> Option<&PaymentAttempt> {
        self.attempts.iter().rfind(|attempt| attempt.state.is_in_flight())
    }

    /// Money came that is not the amount: until an operator has decided, the order stays pending.
    pub fn is_held(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.state == AttemptState::Held)
    }

    /// Past its deadline a code counts until its rail has said that nobody used it.
    fn code_is_asked_about(&self, now: Timestamp) -> bool {
        self.issued().any(|attempt| {
            attempt.instrument.method() == PaymentMethod::Direct
                && attempt.deadline <= now
                && attempt.due_at.is_some()
        })
    }

    /// Whether money may be on its way: then nobody is asked to pay.
    pub fn may_be_moving(&self, now: Timestamp) -> bool {
        self.in_flight().is_some() || self.is_held() || self.code_is_asked_about(now)
    }

    /// A reference or code of this method that can be paid now.
    pub fn live(&self, method: PaymentMethod, now: Timestamp) -> Option<&PaymentAttempt> {
        self.attempts.iter().rfind(|attempt| {
            attempt.state == AttemptState::Issued
                && attempt.instrument.method() == method
                && now < attempt.deadline
        })
    }

    /// The newest of what the payer was given and can pay now.
    pub fn newest_live(&self, now: Timestamp) -> Option<&PaymentAttempt> {
        self.attempts
            .iter()
            .rfind(|attempt| attempt.state == AttemptState::Issued && now < attempt.deadline)
    }

    /// What can be paid at a rail although nobody asks us.
    pub fn issued(&self) -> impl Iterator<Item = &PaymentAttempt> {
        self.attempts.iter().filter(|attempt| attempt.state == AttemptState::Issued)
    }

    /// Whether closing the window means giving up.
    pub fn when_left(&self, now: Timestamp) -> Leaving {
        let reference =
            |attempt: &PaymentAttempt| attempt.instrument.method() == PaymentMethod::BankReference;
        let settled = self.order.status != Status::Pending;
        if settled || self.is_held() || self.issued().any(reference) {
            return Leaving::Stay;
        }
        if let Some(attempt) = self.in_flight() {
            // Others have a deadline, too: of what is only asked for.
            let is_push = attempt.instrument.method() == PaymentMethod::ExpressWallet;
            let answered_by = Some(attempt.deadline).filter(|by| is_push && now < *by);
            return Leaving::Wait { until: answered_by.unwrap_or_else(|| after(now, PATIENCE)) };
        }
        // A code past its deadline is one whose rail is being asked.
        match self.issued().map(|code| code.deadline.max(now)).max() {
            Some(until) => Leaving::Wait { until },
            None => Leaving::GiveUp,
        }
    }

    /// Two phases: first the order is no longer offered, and after a grace for money on its way it
    /// is cancelled. The grace is of the time in which we could hear of that money. Nothing is left to do with
    /// one that is settled.
    pub fn at_deadline(
        &self,
        now: Timestamp,
        grace: SignedDuration,
        heard_since: Timestamp,
    ) -> Option<Deadline> {
        if self.order.status != Status::Pending {
            return None;
        }
        let later = Deadline::Close { until: after(now, PATIENCE) };
        if self.in_flight().is_some() || self.is_held() {
            return Some(later);
        }
        if let Some(reason) = self.cancel_requested {
            return Some(match self.code_is_asked_about(now) {
                true => later,
                false => Deadline::Cancel(reason),
            });
        }
        // An attempt in flight may have kept it waiting, but the grace is of what was issued.
        let since = self.closing_since.unwrap_or(now).max(heard_since);
        let until = after(since, grace);
        if self.issued().next().is_some() && now < until {
            return Some(Deadline::Close { until });
        }
        if self.code_is_asked_about(now) {
            return Some(later);
        }
        Some(Deadline::Cancel(CancelReason::Expired))
    }
}
