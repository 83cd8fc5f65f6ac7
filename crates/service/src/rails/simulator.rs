//! The rails of a sandbox: what happens is told by the phone number or the amount, and when by the
//! service's clock. The tables are those of docs/sandbox.md.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{Accepted, Answer, Capabilities, Given, How, MethodTerms, Outcome, Start};
use crate::domain::{
    AttemptId, Centimos, Forecast, Kwanza, PUSH_WINDOW, PaymentAttempt, PaymentMethod, Reason,
    WalletCode, Word, after,
};

/// A lost notification is found by asking from here on.
const FOUND_AFTER_S: i64 = 120;
/// The life of a reference that is forced to be short.
const SHORT_LIFE: SignedDuration = SignedDuration::from_mins(2);

/// What the rails of Angola take; hides a method for other amounts.
const MAX_EXPRESS: i64 = 30_000_000;
const MAX_REFERENCE: i64 = 99_999_999;

pub struct Simulator(Arc<Capabilities>);

/// One line of a table: so many seconds after the start, this.
enum Play {
    Paid {
        after_s: i64,
        off: i64,
    },
    /// Another payment for the same attempt.
    PaidAgain {
        after_s: i64,
    },
    Refused {
        after_s: i64,
        reason: Reason,
    },
    Unconfirmed {
        after_s: i64,
    },
    Reversed {
        after_s: i64,
    },
}

impl Simulator {
    pub const NAME: &str = "simulator";
    /// No bank has it: nobody can pay a reference of the sandbox by mistake.
    pub const ENTITY: &str = "00000";

    pub fn new() -> Self {
        let terms = |method, max| MethodTerms { method, min: 1, max };
        Self(Arc::new(Capabilities {
            methods: vec![
                terms(PaymentMethod::Direct, Kwanza::MAX),
                terms(PaymentMethod::ExpressWallet, MAX_EXPRESS),
                terms(PaymentMethod::BankReference, MAX_REFERENCE),
            ],
            can_revoke: true,
            can_query: true,
            has_queue: false,
        }))
    }

    pub(super) fn capabilities(&self) -> Arc<Capabilities> {
        Arc::clone(&self.0)
    }

    pub(super) fn start(&self, start: &Start) -> Answer {
        let (scenario, plays) = match &start.how {
            How::Push(phone) => match push(phone.national()) {
                Ok(plays) => (phone.national().to_owned(), plays),
                Err(reason) => return Answer::Refused(reason),
            },
            How::Reference(_) => match reference(start.amount) {
                Ok(plays) => (start.amount.get().to_string(), plays),
                Err(reason) => return Answer::Refused(reason),
            },
            How::Code => (start.amount.get().to_string(), code(start.amount)),
        };
        let shortened =
            matches!((&start.how, start.amount.get()), (How::Reference(_), 9006 | 9007));
        Answer::Accepted(Accepted {
            rail_id: format!("sim-{}-{}", known(&scenario), start.attempt.as_str()),
            given: match &start.how {
                How::Push(_) => Given::Push,
                How::Reference(kept) => Given::Reference(kept.clone()),
                How::Code => Given::Code(wallet_code(&start.attempt)),
            },
            deadline: shortened.then(|| after(start.now, SHORT_LIFE)),
            forecast: plays.iter().map(|play| play.forecast(start)).collect(),
        })
    }

    /// The few that only tell when they are asked; all others send a notice in time.
    pub(super) fn query(
        &self,
        attempt: &PaymentAttempt,
        amount: Kwanza,
        now: Timestamp,
    ) -> Outcome {
        let waited_s = now.duration_since(attempt.created_at).as_secs();
        // Of a push it is a phone number; of anything else an amount, which may look like one.
        let is_push = attempt.instrument.method() == PaymentMethod::ExpressWallet;
        let scenario = attempt.rail_id.as_deref().and_then(|id| id.split('-').nth(1));
        match scenario.filter(|_| is_push) {
            Some("900000003") if waited_s >= PUSH_WINDOW.as_secs() => {
                Outcome::Refused(Reason::Timeout)
            }
            Some("900000010") if waited_s >= FOUND_AFTER_S => {
                Outcome::Paid { rail_payment_id: payment_id(&attempt.id), amount: amount.into() }
            }
            _ if now >= attempt.deadline && is_code(attempt) => Outcome::Refused(Reason::Timeout),
            _ => Outcome::Unknown,
        }
    }
}

impl Default for Simulator {
    fn default() -> Self {
        Self::new()
    }
}

fn is_code(attempt: &PaymentAttempt) -> bool {
    attempt.instrument.method() == PaymentMethod::Direct
        && attempt.state == crate::domain::AttemptState::Issued
}

/// By phone number; any other is accepted after four seconds.
fn push(phone: &str) -> Result<Vec<Play>, Reason> {
    let paid = |after_s| Play::Paid { after_s, off: 0 };
    let refused = |reason| vec![Play::Refused { after_s: 5, reason }];
    Ok(match phone {
        "900000000" => vec![paid(3)],
        "900000001" => vec![paid(30)],
        "900000002" => vec![paid(88)],
        "900000003" => Vec::new(),
        "900000004" => vec![paid(180)],
        "900000005" => vec![Play::Refused { after_s: 180, reason: Reason::PayerRefused }],
        "900000006" => vec![paid(3), Play::Unconfirmed { after_s: 4 }, paid(5), paid(6)],
        "900000007" => vec![Play::Paid { after_s: 3, off: -1 }],
        "900000008" => vec![paid(3), Play::Reversed { after_s: 63 }],
        "900000009" => return Err(Reason::RailDown),
        "900000010" => Vec::new(),
        "900001001" | "900002004" => refused(Reason::Timeout),
        "900002001" => refused(Reason::InsufficientFunds),
        "900002002" => refused(Reason::IssuerRefused),
        "900002003" => refused(Reason::Limit),
        "900002005" => refused(Reason::RailDown),
        "900003000" => refused(Reason::PayerRefused),
        _ => vec![paid(4)],
    })
}

/// By amount; any other waits for the mock ATM.
fn reference(amount: Kwanza) -> Result<Vec<Play>, Reason> {
    let paid = |after_s| Play::Paid { after_s, off: 0 };
    Ok(match amount.get() {
        9001 => vec![paid(5)],
        9002 => vec![paid(60)],
        9003 => vec![Play::Paid { after_s: 5, off: -1 }],
        9004 => vec![Play::Paid { after_s: 5, off: 1 }],
        9005 => vec![paid(5), Play::PaidAgain { after_s: 10 }],
        9007 => vec![paid(180)],
        9008 => vec![paid(FOUND_AFTER_S)],
        9009 => return Err(Reason::RailDown),
        _ => Vec::new(),
    })
}

/// By amount; any other waits for the wallet's page.
fn code(amount: Kwanza) -> Vec<Play> {
    match amount.get() {
        9101 => vec![Play::Paid { after_s: 5, off: 0 }],
        9102 => vec![Play::Refused { after_s: 5, reason: Reason::PayerRefused }],
        9104 => vec![Play::Unconfirmed { after_s: 5 }, Play::Paid { after_s: 60, off: 0 }],
        _ => Vec::new(),
    }
}

impl Play {
    fn forecast(&self, start: &Start) -> Forecast {
        let full = Centimos::from(start.amount).get();
        let (after_s, word) = match self {
            Self::Paid { after_s, off } => (after_s, Word::Paid(Centimos::new(full + off * 100))),
            Self::PaidAgain { after_s } => (after_s, Word::Paid(Centimos::new(full))),
            Self::Refused { after_s, reason } => (after_s, Word::Refused(reason.clone())),
            Self::Unconfirmed { after_s } => (after_s, Word::Unconfirmed),
            Self::Reversed { after_s } => (after_s, Word::Reversed(Centimos::new(full))),
        };
        let id = payment_id(&start.attempt);
        let again = matches!(self, Self::PaidAgain { .. });
        Forecast {
            at: after(start.now, SignedDuration::from_secs(*after_s)),
            rail_payment_id: if again { format!("{id}-2") } else { id },
            word,
        }
    }
}

/// What stands in a rail id: a magic number as it is, and never a person's.
fn known(scenario: &str) -> &str {
    let magic = scenario.len() < 9 || scenario.starts_with("90000");
    if magic { scenario } else { "any" }
}

pub fn payment_id(attempt: &AttemptId) -> String {
    format!("simpay-{}", attempt.as_str())
}

/// Two groups of four, from the attempt's own id; the link has all of it.
fn wallet_code(attempt: &AttemptId) -> WalletCode {
    let id = attempt.as_str();
    WalletCode {
        code: format!("{}-{}", &id[..4], &id[4..8]),
        link: format!("/sandbox/wallet/{id}"),
    }
}
