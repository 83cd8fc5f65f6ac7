//! Which screen an order has now. Pure: whoever asks at the same moment sees the same.

use jiff::Timestamp;

use crate::domain::{AttemptState, Dossier, PaymentAttempt, PaymentMethod, Status};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Screen<'a> {
    Choose,
    Phone,
    /// A push the payer has not answered.
    Waiting(&'a PaymentAttempt),
    Refused(&'a PaymentAttempt),
    Reference(&'a PaymentAttempt),
    Code(&'a PaymentAttempt),
    /// Money may be moving: nobody must pay again.
    Confirming,
    Paid,
    Cancelled,
    Expired,
    /// The rail's trouble, not the payer's.
    Down,
}

impl Screen<'_> {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Choose => "choose",
            Self::Phone => "phone",
            Self::Waiting(_) => "waiting",
            Self::Refused(_) => "refused",
            Self::Reference(_) => "reference",
            Self::Code(_) => "code",
            Self::Confirming => "confirming",
            Self::Paid => "paid",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Down => "down",
        }
    }
}

/// What `view` asks for counts only while the payer has a choice.
pub(super) fn screen<'a>(dossier: &'a Dossier, view: &str, now: Timestamp) -> Screen<'a> {
    match dossier.order.status {
        Status::Confirmed => return Screen::Paid,
        Status::Cancelled if has_expired(dossier) => return Screen::Expired,
        Status::Cancelled => return Screen::Cancelled,
        Status::Pending => {}
    }
    if let Some(attempt) = dossier.in_flight() {
        let asked = attempt.instrument.method() == PaymentMethod::ExpressWallet
            && attempt.state != AttemptState::Unknown
            && now < attempt.deadline;
        return if asked { Screen::Waiting(attempt) } else { Screen::Confirming };
    }
    if dossier.may_be_moving(now) {
        return Screen::Confirming;
    }
    if !dossier.is_offered(now) {
        return match dossier.cancel_requested {
            Some(_) => Screen::Cancelled,
            None => Screen::Expired,
        };
    }
    match view {
        "choose" => return Screen::Choose,
        "phone" => return Screen::Phone,
        _ => {}
    }
    // Whoever asks for what they have, sees it, whatever they tried since.
    if let Some(wanted) = PaymentMethod::from_code(view).and_then(|own| dossier.live(own, now)) {
        return payable(wanted);
    }
    match dossier.attempts.last() {
        Some(last) if matches!(last.state, AttemptState::Rejected | AttemptState::TimedOut) => {
            match &last.reason {
                Some(reason) if reason.is_outage() => Screen::Down,
                _ => Screen::Refused(last),
            }
        }
        Some(last) if is_expired_code(last) => Screen::Refused(last),
        _ => dossier.newest_live(now).map_or(Screen::Choose, payable),
    }
}

fn payable(live: &PaymentAttempt) -> Screen<'_> {
    match live.instrument.method() {
        PaymentMethod::BankReference => Screen::Reference(live),
        PaymentMethod::Direct | PaymentMethod::ExpressWallet => Screen::Code(live),
    }
}

/// With a reference the order ends as a rule; a code ends before.
pub(super) fn is_expired_code(attempt: &PaymentAttempt) -> bool {
    attempt.state == AttemptState::Expired && attempt.instrument.method() == PaymentMethod::Direct
}

/// Whether it was time that ended the order.
fn has_expired(dossier: &Dossier) -> bool {
    let ended = dossier.settled_at.unwrap_or(Timestamp::MAX);
    dossier.cancel_requested.is_none()
        && (dossier.closing_since.is_some() || dossier.order.expires_at <= ended)
}

/// Changes whenever the page would look different.
pub(super) fn version(dossier: &Dossier, shown: Screen<'_>) -> String {
    let last = dossier.attempts.last();
    let state = last.map_or("", |attempt| attempt.state.as_str());
    let cancelling = if dossier.cancel_requested.is_some() { "-cancelling" } else { "" };
    let held = if dossier.is_held() { "-held" } else { "" };
    let ended = if dossier.order.status == Status::Pending { "" } else { "-ended" };
    format!("{}-{}-{state}{cancelling}{held}{ended}", shown.name(), dossier.attempts.len())
}
