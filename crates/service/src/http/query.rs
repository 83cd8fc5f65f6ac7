//! Reading query parameters: each at most once, and those that must be there, there.

use super::error::FieldFault;
use super::messages::Issue;

/// The one value of a parameter: none, an empty one and two are all the caller's mistake.
pub(crate) fn parameter(
    faults: &mut Vec<FieldFault>,
    query: &str,
    name: &'static str,
) -> Option<String> {
    let mut values =
        form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name).map(|(_, v)| v);
    let issue = match (values.next(), values.next()) {
        (Some(value), None) if !value.is_empty() => return Some(value.into_owned()),
        (Some(_), Some(_)) => Issue::Duplicate,
        (Some(_), None) | (None, _) => Issue::Required,
    };
    faults.push(FieldFault::new(name, issue));
    None
}

/// As `parameter`, where none is fine.
pub(crate) fn optional_parameter(
    faults: &mut Vec<FieldFault>,
    query: &str,
    name: &'static str,
) -> Option<String> {
    let given = form_urlencoded::parse(query.as_bytes()).any(|(key, _)| key == name);
    if given { parameter(faults, query, name) } else { None }
}
