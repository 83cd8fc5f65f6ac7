//! What can go wrong, with what the service said about it.

use std::time::Duration;

use serde::Deserialize;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The service refused the call; the message is its own, in the language asked for.
    #[error("{message} ({status} {error}{})", asked_as(.request_id))]
    Refused {
        status: u16,
        /// One of the stable values of the API's documentation.
        error: String,
        message: String,
        /// For support.
        request_id: String,
        /// Which fields are wrong, and how.
        details: Vec<Detail>,
        /// How long the service asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// A refusal that is not in this API's words: of another program, or of a proxy on the way.
    #[error("{address} does not answer like this service ({status}): {}", question(*.status))]
    Foreign { address: String, status: u16, retry_after: Option<Duration> },
    /// The call did not reach the service, or its answer did not reach us: the address, and why.
    #[error("{0}")]
    Unreachable(String),
    #[error("the service did not answer in time")]
    TimedOut,
    /// A success that is not this API's: the address, and why.
    #[error("{0}")]
    Malformed(String),
    #[error("{0}")]
    Settings(String),
}

impl Error {
    pub(crate) fn retry_after(&self) -> Duration {
        match self {
            Self::Refused { retry_after: Some(asked), .. }
            | Self::Foreign { retry_after: Some(asked), .. } => *asked,
            _ => Duration::ZERO,
        }
    }

    /// Whether the same call may succeed a moment later. Repeating is always safe: creating is
    /// idempotent by `externalTransactionId`.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused { status, .. } | Self::Foreign { status, .. } => {
                matches!(status, 408 | 429 | 500..=599)
            }
            Self::Unreachable(_) | Self::TimedOut => true,
            Self::Malformed(_) | Self::Settings(_) => false,
        }
    }
}

fn asked_as(request_id: &str) -> String {
    if request_id.is_empty() { String::new() } else { format!(", request {request_id}") }
}

fn question(status: u16) -> &'static str {
    match status {
        502..=504 => "is the service behind it running?",
        _ => "is SVC_BASE_URL right?",
    }
}

/// One field of a refused body.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Detail {
    pub field: String,
    pub issue: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorReply {
    /// The status once more: by this the envelope is known from what others answer.
    code: u16,
    error: String,
    message: String,
    #[serde(default)]
    request_id: String,
    #[serde(default)]
    details: Vec<Detail>,
}

impl ErrorReply {
    /// `None` if it is in another shape, as a proxy on the way may give it.
    pub(crate) fn read(status: u16, body: &[u8], retry_after: Option<Duration>) -> Option<Error> {
        let reply: Self = serde_json::from_slice(body).ok()?;
        let Self { code, error, message, request_id, details } = reply;
        (code == status).then_some(Error::Refused {
            status,
            error,
            message,
            request_id,
            details,
            retry_after,
        })
    }
}
