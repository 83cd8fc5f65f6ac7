//! What a rail says of a payment, and why it says no.

use super::Centimos;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    Paid(Centimos),
    Refused(Reason),
    /// Something happened, and the rail does not know yet what.
    Unconfirmed,
    /// Money that was paid was taken back.
    Reversed(Centimos),
}

impl Word {
    pub const REVERSAL: &'static str = "reversal";

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Paid(_) => "payment",
            Self::Refused(_) => "refusal",
            Self::Unconfirmed => "unconfirmed",
            Self::Reversed(_) => Self::REVERSAL,
        }
    }

    pub fn is_payment(&self) -> bool {
        matches!(self, Self::Paid(_))
    }

    /// By its kind; nothing if there is no such kind, or no amount where one is needed.
    pub fn read(
        kind: &str,
        amount: impl FnOnce() -> Option<Centimos>,
        reason: Option<&str>,
    ) -> Option<Self> {
        match kind {
            "payment" => Some(Self::Paid(amount()?)),
            "refusal" => Some(Self::Refused(Reason::from_text(reason.unwrap_or("other")))),
            "unconfirmed" => Some(Self::Unconfirmed),
            Self::REVERSAL => Some(Self::Reversed(amount()?)),
            _ => None,
        }
    }

    pub fn amount(&self) -> Centimos {
        match self {
            Self::Paid(amount) | Self::Reversed(amount) => *amount,
            Self::Refused(_) | Self::Unconfirmed => Centimos::new(0),
        }
    }
}

/// Why a rail said no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    PayerRefused,
    InsufficientFunds,
    Limit,
    IssuerRefused,
    Timeout,
    InvalidPhone,
    NotEnrolled,
    RailDown,
    Config,
    /// The rail's own word for something we have none for.
    Other(String),
}

impl Reason {
    const OTHER: &'static str = "other:";
    /// Of a rail's own word.
    const OTHER_CHARS_MAX: usize = 64;

    /// The rail's trouble rather than the payer's.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::RailDown | Self::Config)
    }

    pub fn to_text(&self) -> String {
        match self {
            Self::PayerRefused => "payer_refused".into(),
            Self::InsufficientFunds => "insufficient_funds".into(),
            Self::Limit => "limit".into(),
            Self::IssuerRefused => "issuer_refused".into(),
            Self::Timeout => "timeout".into(),
            Self::InvalidPhone => "invalid_phone".into(),
            Self::NotEnrolled => "not_enrolled".into(),
            Self::RailDown => "rail_down".into(),
            Self::Config => "config".into(),
            Self::Other(raw) => format!("{}{raw}", Self::OTHER),
        }
    }

    pub fn from_text(text: &str) -> Self {
        match text {
            "payer_refused" => Self::PayerRefused,
            "insufficient_funds" => Self::InsufficientFunds,
            "limit" => Self::Limit,
            "issuer_refused" => Self::IssuerRefused,
            "timeout" => Self::Timeout,
            "invalid_phone" => Self::InvalidPhone,
            "not_enrolled" => Self::NotEnrolled,
            "rail_down" => Self::RailDown,
            "config" => Self::Config,
            other => {
                let raw = other.strip_prefix(Self::OTHER).unwrap_or(other);
                let plain = raw.chars().filter(|c| !c.is_control());
                Self::Other(plain.take(Self::OTHER_CHARS_MAX).collect())
            }
        }
    }
}
