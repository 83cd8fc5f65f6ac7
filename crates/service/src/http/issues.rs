//! What can be wrong with one field, and what the doors of the domain find wrong.

use crate::domain::{AdditionalInfoError, IdIssue, MoneyIssue, TextIssue, UrlFault, UrlIssue};

/// What can be wrong with one field; `code` is stable, the text follows the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Issue {
    Required,
    NotJson,
    NotAnObject,
    NotAJsonObject,
    NotAString,
    /// The same, where JSON is wanted inside the string.
    NotStringified,
    NotAnInteger,
    Duplicate,
    Empty,
    TooSmall,
    TooLarge {
        max: i64,
    },
    TooLong {
        max: usize,
    },
    NotAscii,
    ControlCharacters,
    KeyPrefix,
    NotAnAbsoluteUrl,
    UrlCharacters,
    HttpsRequired,
    UrlCredentials,
    PrivateHost,
    Port,
    OwnHost,
    HostNotNamed,
    Negative,
    /// A part of a whole: from 0 to 1.
    NotARate,
    /// The values it may have, as the reader writes them.
    NotOneOf(&'static str),
    NotACursor,
    NotUtf8,
    ByteOrderMark,
    NotANotice,
}

impl Issue {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::NotJson | Self::NotUtf8 | Self::ByteOrderMark => "not_json",
            Self::NotAnObject | Self::NotAJsonObject | Self::NotANotice => "not_an_object",
            Self::NotAString | Self::NotStringified => "not_a_string",
            Self::NotAnInteger => "not_an_integer",
            Self::Duplicate => "duplicate",
            Self::Empty => "empty",
            Self::TooSmall => "too_small",
            Self::TooLarge { .. } => "too_large",
            Self::TooLong { .. } => "too_long",
            Self::NotAscii => "not_ascii",
            Self::ControlCharacters => "control_characters",
            Self::KeyPrefix => "key_prefix",
            Self::NotAnAbsoluteUrl => "not_an_absolute_url",
            Self::UrlCharacters => "url_characters",
            Self::HttpsRequired => "https_required",
            Self::UrlCredentials => "url_credentials",
            Self::PrivateHost => "private_host",
            Self::Port => "port_not_allowed",
            Self::OwnHost => "own_host",
            Self::HostNotNamed => "host_not_named",
            Self::Negative => "negative",
            Self::NotARate => "not_a_rate",
            Self::NotOneOf(_) | Self::NotACursor => "not_one_of",
        }
    }
}

/// One field of a body and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldFault {
    pub field: String,
    pub issue: Issue,
}

impl FieldFault {
    pub(crate) fn new(field: impl Into<String>, issue: impl Into<Issue>) -> Self {
        Self { field: field.into(), issue: issue.into() }
    }
}

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
