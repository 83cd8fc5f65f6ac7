//! What can go wrong, with what the service said about it.

use std::time::Duration;

use serde::Deserialize;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The service refused the call; the message is its own, in the language asked for.
    #[error("{message} ({status} {error}, request {request_id})")]
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
    /// The call did not reach the service, or its answer did not reach us.
    #[error("the service cannot be reached: {0}")]
    Unreachable(String),
    #[error("the service did not answer in time")]
    TimedOut,
    /// An answer that is not this API's.
    #[error("the answer makes no sense: {0}")]
    Malformed(String),
    #[error("{0}")]
    Settings(String),
}

impl Error {
    pub(crate) fn retry_after(&self) -> Duration {
        match self {
            Self::Refused { retry_after: Some(asked), .. } => *asked,
            _ => Duration::ZERO,
        }
    }

    /// Whether the same call may succeed a moment later. Repeating is always safe: creating is
    /// idempotent by `externalTransactionId`.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status, 408 | 429 | 500..=599),
            Self::Unreachable(_) | Self::TimedOut => true,
            Self::Malformed(_) | Self::Settings(_) => false,
        }
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
    #[serde(default)]
    error: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    request_id: String,
    #[serde(default)]
    details: Vec<Detail>,
}

impl ErrorReply {
    /// Also for an answer in another shape, as a proxy on the way may give it.
    pub(crate) fn read(status: u16, body: &[u8], retry_after: Option<Duration>) -> Error {
        let reply: Self = serde_json::from_slice(body).unwrap_or_else(|_| Self {
            error: "unknown".into(),
            message: format!("the service answered {status}"),
            request_id: String::new(),
            details: Vec::new(),
        });
        let Self { error, message, request_id, details } = reply;
        Error::Refused { status, error, message, request_id, details, retry_after }
    }
}
