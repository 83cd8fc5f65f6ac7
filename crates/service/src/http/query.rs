//! Reading names and values: of a query of the API, each at most once and those that must be there, there;
//! of a page's query or form, the first.

use std::borrow::Cow;

use super::error::ApiError;
use super::issues::FieldFault;
use super::issues::Issue;
use super::language::Language;
use crate::domain::{ApplicationUuid, IdIssue};

/// The names and values of a page's query or of a form, as they came.
pub(crate) struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// Nobody types a zero byte, and PostgreSQL has no text with one in it.
    pub(crate) fn of_query(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.map(|(name, value)| (name.into_owned(), value.replace('\0', ""))).collect())
    }

    pub(super) fn of_form(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// All that have this name.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.iter().filter(move |(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The first that has this name; empty where there is none.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.values(name).next().unwrap_or_default()
    }

    /// What a payer's page is in.
    pub(crate) fn language(&self) -> Language {
        Language::from_tag(self.value("lang")).unwrap_or(Language::Pt)
    }
}

/// The value of a name and its value, if that is the name. In most there is nothing to decode, and looking for it
/// byte by byte is the larger part of answering a query.
fn value_of<'a>(text: &'a str, wanted: &str) -> Option<Cow<'a, str>> {
    let is_plain = |text: &str| !text.bytes().any(|byte| matches!(byte, b'%' | b'+'));
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    if is_plain(name) && (name != wanted || is_plain(value)) {
        return (name == wanted).then_some(value.into());
    }
    let (name, value) = form_urlencoded::parse(text.as_bytes()).next()?;
    (name == wanted).then_some(value)
}

/// The one value of a parameter: none, an empty one and two are all the caller's mistake.
pub(crate) fn parameter(
    faults: &mut Vec<FieldFault>,
    query: &str,
    name: &'static str,
) -> Option<String> {
    only(faults, query, name, Some(Issue::Required), Issue::Required)
}

/// As `parameter`, where none is fine.
pub(crate) fn optional_parameter(
    faults: &mut Vec<FieldFault>,
    query: &str,
    name: &'static str,
) -> Option<String> {
    only(faults, query, name, None, Issue::Empty)
}

fn only(
    faults: &mut Vec<FieldFault>,
    query: &str,
    name: &'static str,
    missing: Option<Issue>,
    empty: Issue,
) -> Option<String> {
    let mut values = query.split('&').filter_map(|text| value_of(text, name));
    let issue = match (values.next(), values.next()) {
        (Some(value), None) if !value.is_empty() => return Some(value.into_owned()),
        (Some(_), None) => empty,
        (Some(_), Some(_)) => Issue::Duplicate,
        (None, _) => missing?,
    };
    faults.push(FieldFault::new(name, issue));
    None
}

/// The application a query is about. An id that cannot exist is simply not found, but for the prefix of a
/// key, which is told.
pub(crate) fn application_parameter(
    faults: &mut Vec<FieldFault>,
    query: &str,
) -> Option<Result<ApplicationUuid, ApiError>> {
    const NAME: &str = "applicationUUID";
    let given = parameter(faults, query, NAME)?;
    let uuid = ApplicationUuid::parse(given);
    if let Err(issue @ IdIssue::KeyPrefix) = uuid {
        faults.push(FieldFault::new(NAME, issue));
    }
    Some(uuid.map_err(|_| ApiError::ApplicationNotFound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_as_forms_are() {
        for query in [
            "",
            "a",
            "a=",
            "=b",
            "a=b=c",
            "a=b&c=d",
            "&&a=b&",
            "%61=%62+c",
            "a=%C3%A7",
            "a=ç",
            "a=%FF",
            "a=b&%61=c&a=%62&a=+",
        ] {
            let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
            for name in pairs.iter().map(|(name, _)| name).chain([&"a".into(), &"other".into()]) {
                let read = query.split('&').filter(|text| !text.is_empty());
                let ours: Vec<_> = read.filter_map(|text| value_of(text, name)).collect();
                let theirs = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value);
                assert!(theirs.eq(&ours), "{name} in {query}: {ours:?}");
            }
        }
    }
}
