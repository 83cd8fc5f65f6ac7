//! What the doors of the domain find wrong, as issues of an answer.

use super::error::FieldFault;
use super::messages::Issue;
use crate::domain::{AdditionalInfoError, IdIssue, MoneyIssue, TextIssue, UrlFault, UrlIssue};

impl From<MoneyIssue> for Issue {
    fn from(issue: MoneyIssue) -> Self {
        match issue {
            MoneyIssue::TooSmall => Self::TooSmall,
            MoneyIssue::TooLarge { max } => Self::TooLarge { max },
        }
    }
}

impl From<TextIssue> for Issue {
    fn from(issue: TextIssue) -> Self {
        match issue {
            TextIssue::Empty => Self::Empty,
            TextIssue::TooLong { max } => Self::TooLong { max },
            TextIssue::Control => Self::ControlCharacters,
        }
    }
}

impl From<IdIssue> for Issue {
    fn from(issue: IdIssue) -> Self {
        match issue {
            IdIssue::Empty => Self::Empty,
            IdIssue::TooLong { max } => Self::TooLong { max },
            IdIssue::Charset | IdIssue::NotAReference => Self::NotAscii,
            IdIssue::KeyPrefix => Self::KeyPrefix,
        }
    }
}

impl From<UrlIssue> for Issue {
    fn from(issue: UrlIssue) -> Self {
        match issue {
            UrlIssue::NotAbsolute => Self::NotAnAbsoluteUrl,
            UrlIssue::Characters => Self::UrlCharacters,
            UrlIssue::TooLong { max } => Self::TooLong { max },
            UrlIssue::HttpsRequired => Self::HttpsRequired,
            UrlIssue::Credentials => Self::UrlCredentials,
            UrlIssue::NotPublic => Self::PrivateHost,
            UrlIssue::Port => Self::Port,
            UrlIssue::OwnHost => Self::OwnHost,
            UrlIssue::NotNamed => Self::HostNotNamed,
        }
    }
}

/// Of a key of the caller's, in our answer.
const KEY_CHARS_MAX: usize = 64;

impl FieldFault {
    /// All that is wrong inside `additionalInfo`.
    pub(crate) fn of_additional_info(fault: AdditionalInfoError) -> Vec<Self> {
        let whole = |issue| vec![Self::new("additionalInfo", issue)];
        match fault {
            AdditionalInfoError::NotAnObject => whole(Issue::NotAnObject),
            AdditionalInfoError::NotJson => whole(Issue::NotJson),
            AdditionalInfoError::Twice { key } => {
                let key: String = key.chars().take(KEY_CHARS_MAX).collect();
                vec![Self::new(format!("additionalInfo.{key}"), Issue::Duplicate)]
            }
            AdditionalInfoError::TooLong { max } => whole(Issue::TooLong { max }),
            AdditionalInfoError::Urls(faults) => faults.into_iter().map(Self::from).collect(),
        }
    }
}

impl From<UrlFault> for FieldFault {
    fn from(fault: UrlFault) -> Self {
        let (key, issue) = match fault {
            UrlFault::Missing { key } => (key, Issue::Required),
            UrlFault::NotAString { key } => (key, Issue::NotAString),
            UrlFault::Refused { key, issue } => (key, issue.into()),
        };
        Self::new(format!("additionalInfo.{key}"), issue)
    }
}
