//! One try to collect the money of an order by one method, from the first call of its rail to the end.

use jiff::{SignedDuration, Timestamp};

use super::words::words;
use super::{
    ApplicationId, BankReference, Event, PaymentMethod, Reason, ReferenceNumber, Word, after,
};

/// The payer has this long to answer a push. The ring of the waiting page has a mark for each second.
pub const PUSH_WINDOW: SignedDuration = SignedDuration::from_secs(90);

/// Given to rails: at most 15 letters and digits, which is what the shortest of them takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(String);

impl AttemptId {
    pub const CHARS: usize = 15;
    /// Without the letters people read as digits.
    const ALPHABET: &'static [u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

    pub fn assign(random: [u8; Self::CHARS]) -> Self {
        Self(random.iter().map(|byte| char::from(Self::ALPHABET[usize::from(byte % 32)])).collect())
    }

    pub fn parse(text: &str) -> Option<Self> {
        let shaped = text.len() == Self::CHARS && text.bytes().all(|b| Self::ALPHABET.contains(&b));
        shaped.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

words! {
    /// Where an attempt stands.
    ///
    /// ```text
    /// submitted ─┬─> awaiting_payer ─┬─> accepted | rejected | timed_out
    ///            ├─> issued ─────────┼─> accepted | rejected | revoked | expired
    ///            └─> unknown ────────┘   held: paid, but not the amount
    /// ```
    pub enum AttemptState {
        /// Stored; its rail is being called.
        Submitted = "submitted",
        /// The payer has been asked and has not answered.
        AwaitingPayer = "awaiting_payer",
        /// Only the rail knows, and it has not told: never taken for a refusal.
        Unknown = "unknown",
        /// A reference or a code that can be paid; nothing happens until somebody does.
        Issued = "issued",
        /// Money came that is not the amount: an operator decides.
        Held = "held",
        Accepted = "accepted",
        Rejected = "rejected",
        TimedOut = "timed_out",
        Revoked = "revoked",
        Expired = "expired",
    }
}

impl AttemptState {
    /// Money may be moving: meanwhile the order is neither cancelled nor paid another way.
    pub fn is_in_flight(self) -> bool {
        matches!(self, Self::Submitted | Self::AwaitingPayer | Self::Unknown)
    }

    /// The payer can still act, or may have acted.
    pub fn may_be_paid(self) -> bool {
        self.is_in_flight() || self == Self::Issued
    }

    /// Nothing more is expected of it.
    pub fn is_over(self) -> bool {
        !self.may_be_paid() && self != Self::Held
    }
}

/// What the payer is given to pay with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instrument {
    /// A request in the app that belongs to this number; the number itself is sealed.
    Push { phone_masked: String, phone_sealed: Vec<u8> },
    /// Drawn by us; a rail with numbers of its own puts its own in its place when it issues it.
    Reference(Option<BankReference>),
    /// Not known before the rail has issued it.
    Code(Option<WalletCode>),
}

impl Instrument {
    pub fn method(&self) -> PaymentMethod {
        match self {
            Self::Push { .. } => PaymentMethod::ExpressWallet,
            Self::Reference(_) => PaymentMethod::BankReference,
            Self::Code(_) => PaymentMethod::Direct,
        }
    }
}

/// A short code to type and the address it stands for, also shown as a QR code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalletCode {
    pub code: String,
    pub link: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentAttempt {
    pub id: AttemptId,
    pub application: ApplicationId,
    pub reference_number: ReferenceNumber,
    /// The connector that was called.
    pub rail: String,
    pub instrument: Instrument,
    pub state: AttemptState,
    pub reason: Option<Reason>,
    /// The rail's own id of it.
    pub rail_id: Option<String>,
    pub created_at: Timestamp,
    /// Until when the payer can act.
    pub deadline: Timestamp,
    /// When somebody must look at it again, whatever happens.
    pub due_at: Option<Timestamp>,
    /// How often its rail was asked for the outcome since nobody knows.
    pub polls: u32,
}

/// A change of an attempt, with all that must be stored with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub attempt: AttemptId,
    pub reference_number: ReferenceNumber,
    /// The state it is known to be in: if it is not, nothing happens.
    pub from: AttemptState,
    pub to: AttemptState,
    pub reason: Option<Reason>,
    pub rail_id: Option<String>,
    pub instrument: Instrument,
    pub deadline: Timestamp,
    pub due_at: Option<Timestamp>,
    pub polls: u32,
    pub at: Timestamp,
    /// The `PEN` event, if this is what makes it due and the merchant wants it.
    pub event: Option<Event>,
    /// What a simulated rail is going to say, and when.
    pub forecast: Vec<Forecast>,
    /// Ended by an operator or by us: the rail is told, if it has issued a reference.
    pub by_hand: bool,
}

/// How long an order lives whose payer was told a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderLives {
    /// Unless something else that can be paid lasts longer.
    UntilThen,
    AtLeastUntilThen,
}

impl Step {
    /// A deadline the payer is told is kept: a reference sets the order's, a code, which is short, may only put it
    /// off.
    pub fn order_lives(&self) -> Option<OrderLives> {
        match &self.instrument {
            _ if self.to != AttemptState::Issued => None,
            Instrument::Reference(_) => Some(OrderLives::UntilThen),
            Instrument::Code(_) => Some(OrderLives::AtLeastUntilThen),
            Instrument::Push { .. } => None,
        }
    }

    /// For the audit row.
    pub fn cause(&self) -> String {
        let (method, id) = (self.instrument.method().code(), self.attempt.as_str());
        match &self.reason {
            Some(reason) => format!("{method} {id}: {}", reason.to_text()),
            None => format!("{method} {id}"),
        }
    }
}

/// A notice that a simulated rail will send at a moment of the service's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    pub at: Timestamp,
    pub rail_payment_id: String,
    pub word: Word,
}

/// Pauses before the outcome of an unknown attempt is asked for: at 10, 30 and 60 seconds, then
/// patiently for a day, then by a person.
const POLL_PAUSES: [SignedDuration; 3] =
    [SignedDuration::from_secs(10), SignedDuration::from_secs(20), SignedDuration::from_secs(30)];
const POLL_PERIOD: SignedDuration = SignedDuration::from_mins(5);
/// A day of them.
const POLLS_MAX: u32 = 24 * 60 / 5;

impl PaymentAttempt {
    /// The same attempt in another state; what does not follow from the state stays.
    pub fn step(&self, to: AttemptState, at: Timestamp) -> Step {
        Step {
            attempt: self.id.clone(),
            reference_number: self.reference_number.clone(),
            from: self.state,
            to,
            reason: None,
            rail_id: self.rail_id.clone(),
            instrument: self.instrument.clone(),
            deadline: self.deadline,
            due_at: None,
            polls: self.polls,
            at,
            event: None,
            forecast: Vec::new(),
            by_hand: false,
        }
    }

    pub fn refused(&self, reason: Reason, at: Timestamp) -> Step {
        Step { reason: Some(reason), ..self.step(AttemptState::Rejected, at) }
    }

    /// Not by its rail's word, but by an operator's or ours.
    pub fn given_up(&self, reason: Reason, at: Timestamp) -> Step {
        Step { by_hand: true, ..self.refused(reason, at) }
    }

    /// The rail does not know, or cannot be asked: ask again later, for a day. Then it is left to
    /// an operator, still unknown.
    pub fn unknown(&self, at: Timestamp) -> Step {
        let polls = if self.state == AttemptState::Unknown { self.polls + 1 } else { 0 };
        let pause = POLL_PAUSES.get(polls as usize).copied().unwrap_or(POLL_PERIOD);
        let next = after(at, pause);
        Step {
            due_at: (polls < POLLS_MAX).then_some(next),
            polls,
            ..self.step(AttemptState::Unknown, at)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::before;

    #[test]
    fn ids_have_15_letters_and_digits() {
        let id = AttemptId::assign(*b"123456789abcdef");
        assert_eq!(AttemptId::parse(id.as_str()), Some(id));
        for bad in ["", "short", "ABCDEFGHJKMNPQi", "ABCDEFGHJKMNPQ-"] {
            assert_eq!(AttemptId::parse(bad), None);
        }
    }

    #[test]
    fn states_and_reasons_read_back() {
        for state in AttemptState::ALL {
            assert_eq!(AttemptState::from_text(state.as_str()), Some(state));
        }
        for text in ["payer_refused", "limit", "rail_down", "other:2006"] {
            assert_eq!(Reason::from_text(text).to_text(), text);
        }
        assert_eq!(Reason::from_text("odd\u{0}word").to_text(), "other:oddword");
    }

    #[test]
    fn an_unknown_attempt_is_asked_about_soon_then_patiently_then_no_more() {
        let started = Timestamp::from_second(1_800_000_000).unwrap();
        let deadline = after(started, SignedDuration::from_secs(90));
        let mut attempt = PaymentAttempt {
            id: AttemptId::assign([1; 15]),
            application: ApplicationId(1),
            reference_number: ReferenceNumber::assign(started, [1; 10]),
            rail: "simulator".into(),
            instrument: Instrument::Code(None),
            state: AttemptState::AwaitingPayer,
            reason: None,
            rail_id: None,
            created_at: started,
            deadline,
            due_at: Some(deadline),
            polls: 0,
        };
        // However long it had been known before.
        attempt.created_at = before(started, SignedDuration::from_hours(48));
        let mut asked_at = Vec::new();
        while let Some(due) = attempt.due_at {
            asked_at.push(due.duration_since(started).as_secs());
            let step = attempt.unknown(due);
            attempt.state = step.to;
            attempt.polls = step.polls;
            attempt.due_at = step.due_at;
        }
        assert_eq!(asked_at[..6], [90, 100, 120, 150, 450, 750]);
        assert!((85_000..87_000).contains(asked_at.last().unwrap()), "for a day");
    }
}
