//! `additionalInfo`: a JSON document inside a string, with the three URLs of the order (spec 4.2).

use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::{UrlIssue, UrlRules};

/// The document as we keep it: URLs in their normal form, keys sorted, unknown keys kept.
///
/// Two requests that say the same in another key order or spacing are therefore equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdditionalInfo(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdditionalInfoError {
    #[error("must be a JSON object in a string")]
    NotAnObject,
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

/// The members of a JSON object, none of them twice.
struct Members(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Members, A::Error> {
        let mut members = BTreeMap::new();
        while let Some((key, value)) = source.next_entry()? {
            if members.insert(key, value).is_some() {
                return Err(serde::de::Error::custom("a key appears twice"));
            }
        }
        Ok(Members(members))
    }
}

impl AdditionalInfo {
    pub const BYTES_MAX: usize = 8 * 1024;

    pub fn parse(text: &str, rules: &UrlRules) -> Result<Self, AdditionalInfoError> {
        if text.len() > Self::BYTES_MAX {
            return Err(AdditionalInfoError::TooLong { max: Self::BYTES_MAX });
        }
        let Members(mut members) =
            serde_json::from_str(text).map_err(|_| AdditionalInfoError::NotAnObject)?;
        let mut faults = Vec::new();
        for (key, webhook) in [(RETURN_URL, false), (CANCEL_URL, false), (WEBHOOK_URL, true)] {
            let given = match members.get_mut(key) {
                Some(Value::String(given)) => given,
                None | Some(Value::Null) => {
                    faults.push(UrlFault::Missing { key });
                    continue;
                }
                Some(_) => {
                    faults.push(UrlFault::NotAString { key });
                    continue;
                }
            };
            match if webhook { rules.webhook(given) } else { rules.page(given) } {
                Ok(url) => *given = url.into(),
                Err(issue) => faults.push(UrlFault::Refused { key, issue }),
            }
        }
        if !faults.is_empty() {
            return Err(AdditionalInfoError::Urls(faults));
        }
        Ok(Self(serde_json::to_string(&members).expect("parsed JSON serialises")))
    }

    /// What the store kept, trusted because only `parse` makes it.
    pub fn restore(stored: String) -> Self {
        Self(stored)
    }

    pub fn as_str(&self) -> &str {
        &self.0
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
        let document: Value = serde_json::from_str(&self.0).unwrap_or_default();
        document[key].as_str().unwrap_or_default().to_owned()
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
    fn each_fault_is_named() {
        use AdditionalInfoError::*;
        use UrlFault::*;
        let twice = r#"{"returnUrl":"https://a.ao","returnUrl":"https://b.ao"}"#;
        for text in ["", "[]", "\"x\"", "{", twice] {
            assert_eq!(parse(text), Err(NotAnObject), "{text}");
        }
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
