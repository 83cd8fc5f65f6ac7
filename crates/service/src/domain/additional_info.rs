//! `additionalInfo`: a JSON document inside a string, with the three URLs of the order (spec 4.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use url::Url;

use super::{UrlIssue, UrlRules, WebhookHosts};

/// The document as we keep it: URLs in their normal form, keys sorted, unknown keys kept.
///
/// Two requests that say the same in another key order or spacing are therefore equal; two that differ in
/// the last of thirty digits are not. Shared: thousands of orders have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdditionalInfo(Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdditionalInfoError {
    #[error("must be a JSON object in a string")]
    NotAnObject,
    /// It begins like one.
    #[error("is not valid JSON")]
    NotJson,
    #[error("has {key} twice")]
    Twice { key: String },
    #[error("must have at most {max} bytes")]
    TooLong { max: usize },
    /// All that are wrong.
    #[error("has wrong URLs: {0:?}")]
    Urls(Vec<UrlFault>),
}

/// What is wrong with one of the three URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlFault {
    Missing { key: &'static str },
    NotAString { key: &'static str },
    Refused { key: &'static str, issue: UrlIssue },
}

const RETURN_URL: &str = "returnUrl";
const CANCEL_URL: &str = "cancelUrl";
const WEBHOOK_URL: &str = "webhookUrl";

/// The members of a JSON object as they are written.
struct Written<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Written<'de> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_map(WrittenVisitor)
    }
}

struct WrittenVisitor;

impl<'de> Visitor<'de> for WrittenVisitor {
    type Value = Written<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Written<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = source.next_entry()? {
            members.push(member);
        }
        Ok(Written(members))
    }
}

/// Its members, none of them twice.
struct Members<'a>(BTreeMap<String, Member<'a>>);

enum Member<'a> {
    Given(&'a RawValue),
    /// In its normal form.
    Url(Url),
}

/// How deep values may lie in each other.
const DEPTH_MAX: usize = 127;
/// With so many digits our parser's form of a number says exactly the same.
const EXACT_DIGITS: usize = 15;

impl<'a> Members<'a> {
    fn read(text: &'a str) -> Result<Self, AdditionalInfoError> {
        let Written(written) = serde_json::from_str(text).map_err(|_| unread(text))?;
        let mut members = BTreeMap::new();
        for (key, value) in written {
            if members.contains_key(&key) {
                return Err(AdditionalInfoError::Twice { key });
            }
            members.insert(key, Member::Given(value));
        }
        Ok(Self(members))
    }

    fn given(&self, key: &str) -> Option<&'a str> {
        match self.0.get(key)? {
            Member::Given(given) => Some(given.get()),
            Member::Url(_) => None,
        }
    }

    /// The URL takes the place of what was given for it.
    fn normalise(&mut self, key: &'static str, rules: &UrlRules) -> Result<(), UrlFault> {
        let given = self.given(key).filter(|given| *given != "null");
        let given = given.ok_or(UrlFault::Missing { key })?;
        let given: String =
            serde_json::from_str(given).map_err(|_| UrlFault::NotAString { key })?;
        let url = if key == WEBHOOK_URL { rules.webhook(&given) } else { rules.page(&given) };
        let url = url.map_err(|issue| UrlFault::Refused { key, issue })?;
        self.0.insert(key.to_owned(), Member::Url(url));
        Ok(())
    }

    fn spell(&self, depth: usize, into: &mut Vec<u8>) -> Result<(), AdditionalInfoError> {
        into.push(b'{');
        for (place, (key, value)) in self.0.iter().enumerate() {
            into.extend((place > 0).then_some(b','));
            spell_text(key, into)?;
            into.push(b':');
            match value {
                Member::Given(given) => spell(given, depth + 1, into)?,
                Member::Url(url) => spell_text(url.as_str(), into)?,
            }
        }
        into.push(b'}');
        Ok(())
    }
}

fn spell_text(text: &str, into: &mut Vec<u8>) -> Result<(), AdditionalInfoError> {
    serde_json::to_writer(into, text).map_err(|_| AdditionalInfoError::NotJson)
}

/// A value in one spelling: keys sorted and none twice, no spaces, every digit that counts.
fn spell(value: &RawValue, depth: usize, into: &mut Vec<u8>) -> Result<(), AdditionalInfoError> {
    let not_json = |_| AdditionalInfoError::NotJson;
    if depth >= DEPTH_MAX {
        return Err(AdditionalInfoError::NotJson);
    }
    let text = value.get();
    if text.starts_with('{') {
        return Members::read(text)?.spell(depth, into);
    }
    if text.starts_with('[') {
        let values: Vec<&RawValue> = serde_json::from_str(text).map_err(not_json)?;
        into.push(b'[');
        for (place, value) in values.into_iter().enumerate() {
            into.extend((place > 0).then_some(b','));
            spell(value, depth + 1, into)?;
        }
        into.push(b']');
        return Ok(());
    }
    let value: Value = serde_json::from_str(text).map_err(not_json)?;
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    if value.is_number() && digits > EXACT_DIGITS {
        into.extend_from_slice(text.as_bytes());
        return Ok(());
    }
    serde_json::to_writer(into, &value).map_err(not_json)
}

/// Why it is no object: whoever begins one wants to be told that it does not end well.
fn unread(text: &str) -> AdditionalInfoError {
    match text.trim_start().starts_with('{') {
        true => AdditionalInfoError::NotJson,
        false => AdditionalInfoError::NotAnObject,
    }
}

impl AdditionalInfo {
    pub const BYTES_MAX: usize = 8 * 1024;

    pub fn parse(text: &str, rules: &UrlRules) -> Result<Self, AdditionalInfoError> {
        if text.len() > Self::BYTES_MAX {
            return Err(AdditionalInfoError::TooLong { max: Self::BYTES_MAX });
        }
        let mut members = Members::read(text)?;
        let mut faults = Vec::new();
        for key in [RETURN_URL, CANCEL_URL, WEBHOOK_URL] {
            faults.extend(members.normalise(key, rules).err());
        }
        let mut spelt = Vec::with_capacity(text.len());
        members.spell(0, &mut spelt)?;
        if !faults.is_empty() {
            return Err(AdditionalInfoError::Urls(faults));
        }
        Ok(Self(String::from_utf8(spelt).expect("JSON is UTF-8").into()))
    }

    /// What the store kept, trusted because only `parse` makes it.
    pub fn restore(stored: String) -> Self {
        Self(stored.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether that is what was stored of it, now or before every digit was kept.
    pub fn is_stored_as(&self, stored: &Self) -> bool {
        let before = || serde_json::from_str::<Value>(&self.0).map(|value| value.to_string());
        self == stored || before().is_ok_and(|before| before == *stored.0)
    }

    pub fn is_told_at(&self, hosts: &WebhookHosts) -> Result<(), UrlFault> {
        match hosts.includes(&self.webhook_url()) {
            true => Ok(()),
            false => Err(UrlFault::Refused { key: WEBHOOK_URL, issue: UrlIssue::NotNamed }),
        }
    }

    pub fn webhook_url(&self) -> String {
        self.url(WEBHOOK_URL)
    }

    pub fn return_url(&self) -> String {
        self.url(RETURN_URL)
    }

    pub fn cancel_url(&self) -> String {
        self.url(CANCEL_URL)
    }

    fn url(&self, key: &str) -> String {
        // As it was read, whatever else is in it: no key is there twice.
        let members = serde_json::from_str(&self.0).map_or(Vec::new(), |Written(members)| members);
        let given = members.iter().find(|(name, _)| name == key);
        given.and_then(|(_, given)| serde_json::from_str(given.get()).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = r#"{"returnUrl":"https://a.ao/ok","cancelUrl":"https://a.ao/no","webhookUrl":"https://a.ao/hook"}"#;

    fn parse(text: &str) -> Result<AdditionalInfo, AdditionalInfoError> {
        AdditionalInfo::parse(text, &UrlRules::default())
    }

    #[test]
    fn key_order_and_spacing_do_not_matter() {
        let other = r#" { "webhookUrl" : "https://a.ao/hook", "cancelUrl":"https://a.ao/no", "returnUrl":"https://a.ao/ok" } "#;
        assert_eq!(parse(GOOD), parse(other));
        assert_eq!(parse(GOOD).unwrap().webhook_url(), "https://a.ao/hook");
    }

    #[test]
    fn unknown_keys_are_kept() {
        let with_cart = GOOD.replacen('{', r#"{"cart":{"id":7},"__proto__":{"x":1},"#, 1);
        let kept: Value = serde_json::from_str(parse(&with_cart).unwrap().as_str()).unwrap();
        assert_eq!(kept["cart"]["id"], 7);
    }

    #[test]
    fn what_differs_anywhere_is_not_the_same() {
        let with = |member: &str| parse(&GOOD.replacen('{', &format!("{{{member},"), 1)).unwrap();
        let (one, other) = ("12345678901234567890123", "12345678901234567890124");
        assert_ne!(with(&format!(r#""cart":[{one}]"#)), with(&format!(r#""cart":[{other}]"#)));
        let digits = "0.12345678901234567890123";
        assert!(with(&format!(r#""rate":{digits}"#)).as_str().contains(digits));
        let old = with(r#""rate":0.1"#);
        assert!(with(r#""rate":0.10000000000000001"#).is_stored_as(&old), "as it was stored once");
        assert!(!old.is_stored_as(&with(r#""rate":0.10000000000000001"#)));
        let spaced = with(r#""cart": { "b" : [ 1.50, true ], "a" : "\u00e7" }"#);
        assert_eq!(spaced, with(r#""cart":{"a":"ç","b":[1.5,true]}"#));
    }

    #[test]
    fn each_fault_is_named() {
        use AdditionalInfoError::*;
        use UrlFault::*;
        let twice = r#"{"returnUrl":"https://a.ao","returnUrl":"https://b.ao"}"#;
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        let (nested, half) = (r#"{"a":[{"b":1,"b":2}]}"#, r#"{"a":"\ud800"}"#);
        for text in ["", "[]", "\"x\"", "x"] {
            assert_eq!(parse(text), Err(NotAnObject), "{text}");
        }
        for text in ["{", r#"{"a":1,}"#, "{} {}", half, &deep] {
            assert_eq!(parse(text), Err(NotJson), "{text}");
        }
        assert_eq!(parse(twice), Err(Twice { key: "returnUrl".into() }));
        assert_eq!(parse(nested), Err(Twice { key: "b".into() }));
        let text = r#"{"returnUrl":null,"cancelUrl":5,"webhookUrl":"x"}"#;
        let all = [
            Missing { key: "returnUrl" },
            NotAString { key: "cancelUrl" },
            Refused { key: "webhookUrl", issue: UrlIssue::NotAbsolute },
        ];
        assert_eq!(parse(text), Err(Urls(all.to_vec())));
        let none = ["returnUrl", "cancelUrl", "webhookUrl"].map(|key| Missing { key });
        assert_eq!(parse("{}"), Err(Urls(none.to_vec())));
        let long = GOOD.replace("/hook", &"/x".repeat(5_000));
        assert_eq!(parse(&long), Err(TooLong { max: AdditionalInfo::BYTES_MAX }));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_kept_parses_to_itself(extra in "[a-z]{1,8}", value in any::<i32>()) {
            let text = GOOD.replacen('{', &format!("{{\"{extra}_\":{value},"), 1);
            let once = parse(&text).unwrap();
            prop_assert_eq!(parse(once.as_str()), Ok(once));
        }
    }
}
