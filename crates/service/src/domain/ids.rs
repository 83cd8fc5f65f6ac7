//! The identifiers of the contract, each with one way in (spec 2.1, 2.3).

use jiff::Timestamp;
use ulid::Ulid;

/// Row number of a partner; never leaves the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartnerId(pub i64);

/// Row number of an application; every order row carries it, so that tables can be distributed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApplicationId(pub i64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdIssue {
    #[error("must not be empty")]
    Empty,
    #[error("must have at most {max} characters")]
    TooLong { max: usize },
    #[error("must be printable ASCII without spaces")]
    Charset,
    #[error("must not carry the pk_test_ or pk_live_ prefix of the publishable key")]
    KeyPrefix,
    #[error("is not a reference number of this service")]
    NotAReference,
}

/// The merchant's id of an order and its idempotency key, for ever (spec 2.3).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExternalTransactionId(String);

impl ExternalTransactionId {
    pub const CHARS_MAX: usize = 128;

    pub fn parse(id: impl Into<String>) -> Result<Self, IdIssue> {
        printable_ascii(id.into(), Self::CHARS_MAX).map(Self)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<ExternalTransactionId> for String {
    fn from(id: ExternalTransactionId) -> Self {
        id.0
    }
}

/// The publishable key without its prefix (spec 2.1). Which application it names, if any, the directory knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ApplicationUuid(String);

impl ApplicationUuid {
    pub const CHARS_MAX: usize = 64;

    pub fn parse(id: impl Into<String>) -> Result<Self, IdIssue> {
        let id = printable_ascii(id.into(), Self::CHARS_MAX)?;
        if id.starts_with("pk_") {
            return Err(IdIssue::KeyPrefix);
        }
        Ok(Self(id))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Identifies a partner when it asks for a token (spec 2.1 `CLIENT_ID`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientId(String);

impl ClientId {
    pub const CHARS_MAX: usize = 64;

    pub fn parse(id: impl Into<String>) -> Result<Self, IdIssue> {
        printable_ascii(id.into(), Self::CHARS_MAX).map(Self)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Time first, then 80 random bits.
pub(super) fn ulid(at: Timestamp, random: [u8; 10]) -> Ulid {
    let mut low = [0u8; 16];
    low[6..].copy_from_slice(&random);
    let at_ms = at.as_millisecond().max(0).unsigned_abs();
    Ulid::from_parts(at_ms, u128::from_be_bytes(low))
}

/// The service's reference of an order: 26 upper-case letters and digits, time first, then 80 random bits.
///
/// Opaque to everyone else. It is never all digits, so that nobody takes it for the bank's
/// 9-digit reference and types it at an ATM.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReferenceNumber(String);

impl ReferenceNumber {
    pub const CHARS: usize = 26;

    /// Pure: the caller brings the time and ten random bytes.
    pub fn assign(at: Timestamp, random: [u8; 10]) -> Self {
        let mut text = ulid(at, random).to_string();
        if text.bytes().all(|b| b.is_ascii_digit()) {
            text.replace_range(Self::CHARS - 1.., "X");
        }
        Self(text)
    }

    /// Not after any reference of this moment or later: a range of times is a range of references.
    pub fn lowest_at(at: Timestamp) -> String {
        const TIME_CHARS: usize = 10;
        let mut lowest = Self::assign(at, [0; 10]).0;
        lowest.truncate(TIME_CHARS);
        lowest
    }

    pub fn parse(text: &str) -> Result<Self, IdIssue> {
        let shaped = text.len() == Self::CHARS
            && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
        if !shaped || Ulid::from_string(text).is_err() {
            return Err(IdIssue::NotAReference);
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<ReferenceNumber> for String {
    fn from(reference: ReferenceNumber) -> Self {
        reference.0
    }
}

fn printable_ascii(id: String, max: usize) -> Result<String, IdIssue> {
    if id.is_empty() {
        return Err(IdIssue::Empty);
    }
    if !id.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(IdIssue::Charset);
    }
    if id.len() > max {
        return Err(IdIssue::TooLong { max });
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn external_ids_are_printable_ascii_without_spaces() {
        for good in ["order_6f9", "x", "order_x';DROP--", "~!@", &"a".repeat(128)] {
            assert!(ExternalTransactionId::parse(good).is_ok(), "{good}");
        }
        let cases = [
            ("", IdIssue::Empty),
            (" ", IdIssue::Charset),
            ("a b", IdIssue::Charset),
            ("ordér_1", IdIssue::Charset),
            ("a\u{0}", IdIssue::Charset),
            ("a\r\n", IdIssue::Charset),
        ];
        for (bad, issue) in cases {
            assert_eq!(ExternalTransactionId::parse(bad), Err(issue), "{bad:?}");
        }
        assert_eq!(
            ExternalTransactionId::parse("a".repeat(129)),
            Err(IdIssue::TooLong { max: 128 })
        );
    }

    #[test]
    fn an_application_uuid_with_its_key_prefix_is_refused() {
        assert_eq!(ApplicationUuid::parse("pk_test_9f"), Err(IdIssue::KeyPrefix));
        assert_eq!(ApplicationUuid::parse("pk_live_9f"), Err(IdIssue::KeyPrefix));
        assert!(ApplicationUuid::parse("0b6f1d3c-8a55-4c1b-9c86-0f6f6ad0a111").is_ok());
    }

    #[test]
    fn references_sort_by_time() {
        let earlier = ReferenceNumber::assign(Timestamp::from_millisecond(1).unwrap(), [0xff; 10]);
        let later = ReferenceNumber::assign(Timestamp::from_millisecond(2).unwrap(), [0; 10]);
        assert!(earlier < later);
    }

    proptest! {
        #[test]
        fn every_assigned_reference_parses_and_is_not_all_digits(
            at_ms in 0i64..200_000_000_000_000, random in any::<[u8; 10]>()
        ) {
            let reference =
                ReferenceNumber::assign(Timestamp::from_millisecond(at_ms).unwrap(), random);
            prop_assert!(!reference.as_str().bytes().all(|b| b.is_ascii_digit()));
            prop_assert_eq!(ReferenceNumber::parse(reference.as_str()), Ok(reference));
        }

        #[test]
        fn different_random_bits_give_different_references(
            a in any::<[u8; 10]>(), b in any::<[u8; 10]>()
        ) {
            let at = Timestamp::from_millisecond(1_800_000_000_000).unwrap();
            prop_assert_eq!(
                a == b, ReferenceNumber::assign(at, a) == ReferenceNumber::assign(at, b)
            );
        }

        #[test]
        fn only_the_exact_alphabet_is_a_reference(
            random in any::<[u8; 10]>(), at in 0..ReferenceNumber::CHARS,
            other in "[^0-9A-HJKMNP-TV-Z]{0,3}"
        ) {
            let reference = ReferenceNumber::assign(Timestamp::UNIX_EPOCH, random);
            let mut text = reference.as_str().to_owned();
            text.replace_range(at..=at, &other);
            prop_assert!(ReferenceNumber::parse(&text).is_err(), "{}", text);
        }
    }
}
