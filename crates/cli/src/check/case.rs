//! What is tried, and what the contract wants to come of it.

/// One line of the verdict table, in the order of trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Case {
    Valid,
    Duplicate,
    CancelAfterPaid,
    PendingAfterPaid,
    Cancelled,
    PaidAfterCancelled,
    Parallel,
    OddFormat,
    OtherAmount,
    PendingFirst,
    UnknownOrder,
    UnknownEvent,
    UnknownStatus,
    SignedNonsense,
    MissingSignature,
    EmptySignature,
    ShortSignature,
    LongSignature,
    NotHex,
    HalfRight,
    Capitals,
    Prefixed,
    Base64,
    OtherSecret,
    ChangedBody,
    ReencodedBody,
    AddedLineBreak,
    UnsignedNonsense,
    InTime,
}

/// What the handler should answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Any 2xx (spec 3: respond 200, also for a duplicate).
    Taken,
    /// 401 (spec 5.3).
    Refused,
    /// A 4xx: genuine, but nothing can be read from it.
    Unreadable,
}

impl Case {
    pub(super) const ALL: [Self; 29] = [
        Self::Valid,
        Self::Duplicate,
        Self::CancelAfterPaid,
        Self::PendingAfterPaid,
        Self::Cancelled,
        Self::PaidAfterCancelled,
        Self::Parallel,
        Self::OddFormat,
        Self::OtherAmount,
        Self::PendingFirst,
        Self::UnknownOrder,
        Self::UnknownEvent,
        Self::UnknownStatus,
        Self::SignedNonsense,
        Self::MissingSignature,
        Self::EmptySignature,
        Self::ShortSignature,
        Self::LongSignature,
        Self::NotHex,
        Self::HalfRight,
        Self::Capitals,
        Self::Prefixed,
        Self::Base64,
        Self::OtherSecret,
        Self::ChangedBody,
        Self::ReencodedBody,
        Self::AddedLineBreak,
        Self::UnsignedNonsense,
        Self::InTime,
    ];

    /// Its name in JSON and JUnit; stable.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Duplicate => "duplicate",
            Self::CancelAfterPaid => "can-after-con",
            Self::PendingAfterPaid => "pen-after-con",
            Self::Cancelled => "cancelled",
            Self::PaidAfterCancelled => "con-after-can",
            Self::Parallel => "parallel-duplicates",
            Self::OddFormat => "odd-format",
            Self::OtherAmount => "other-amount",
            Self::PendingFirst => "pending",
            Self::UnknownOrder => "unknown-order",
            Self::UnknownEvent => "unknown-event",
            Self::UnknownStatus => "unknown-status",
            Self::SignedNonsense => "signed-not-json",
            Self::MissingSignature => "missing-signature",
            Self::EmptySignature => "empty-signature",
            Self::ShortSignature => "short-signature",
            Self::LongSignature => "long-signature",
            Self::NotHex => "not-hex",
            Self::HalfRight => "half-right",
            Self::Capitals => "upper-case",
            Self::Prefixed => "sha256-prefix",
            Self::Base64 => "base64",
            Self::OtherSecret => "other-secret",
            Self::ChangedBody => "changed-body",
            Self::ReencodedBody => "re-encoded-body",
            Self::AddedLineBreak => "added-line-break",
            Self::UnsignedNonsense => "unsigned-not-json",
            Self::InTime => "in-time",
        }
    }

    pub(super) fn wanted(self) -> Wanted {
        match self {
            Self::SignedNonsense => Wanted::Unreadable,
            forged if forged >= Self::MissingSignature && forged != Self::InTime => Wanted::Refused,
            _ => Wanted::Taken,
        }
    }

    /// A genuine event, which a handler that refuses the first one refuses as well.
    pub(super) fn is_genuine(self) -> bool {
        self.wanted() != Wanted::Refused
    }
}

/// The state of an order (spec 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Pending,
    Confirmed,
    Cancelled,
    /// Something else, which the contract does not know.
    Other,
}

impl State {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Pending => "PEN",
            Self::Confirmed => "CON",
            Self::Cancelled => "CAN",
            Self::Other => "?",
        }
    }

    pub(super) fn read(code: &str) -> Self {
        match code {
            "PEN" => Self::Pending,
            "CON" => Self::Confirmed,
            "CAN" => Self::Cancelled,
            _ => Self::Other,
        }
    }
}
