//! `additionalInfo` that was read before: a merchant may send the same three URLs with every order, as our shop
//! does, and reading them is a fifth of creating one.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::domain::{AdditionalInfo, AdditionalInfoError, UrlRules};

/// By the very text; only what was found right.
pub struct AdditionalInfos {
    rules: UrlRules,
    known: RwLock<HashMap<Box<str>, AdditionalInfo>>,
    /// What came last at each place, by its hash: a text that comes once is not remembered.
    seen: Box<[AtomicU64]>,
    hasher: RandomState,
}

/// Past this all are forgotten; reading one again costs microseconds.
const KNOWN_MAX: usize = 2_000;
/// Longer ones carry something of the order itself.
const KNOWN_BYTES_MAX: usize = 1_024;
const SEEN_MAX: usize = 4_096;

impl AdditionalInfos {
    pub fn new(rules: UrlRules) -> Self {
        let seen = (0..SEEN_MAX).map(|_| AtomicU64::default()).collect();
        Self { rules, known: RwLock::default(), seen, hasher: RandomState::new() }
    }

    pub fn parse(&self, text: &str) -> Result<AdditionalInfo, AdditionalInfoError> {
        if text.len() > KNOWN_BYTES_MAX {
            return AdditionalInfo::parse(text, &self.rules);
        }
        if let Some(known) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(text) {
            return Ok(known.clone());
        }
        let parsed = AdditionalInfo::parse(text, &self.rules)?;
        if self.comes_again(text) {
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            known.insert(text.into(), parsed.clone());
        }
        Ok(parsed)
    }

    fn comes_again(&self, text: &str) -> bool {
        let hash = self.hasher.hash_one(text);
        self.seen[hash as usize % SEEN_MAX].swap(hash, Ordering::Relaxed) == hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(host: &str) -> String {
        format!(
            r#"{{"returnUrl":"https://{host}/ok","cancelUrl":"https://{host}/no","webhookUrl":"https://{host}/hook"}}"#
        )
    }

    fn known(infos: &AdditionalInfos) -> usize {
        infos.known.read().unwrap().len()
    }

    #[test]
    fn what_is_remembered_is_what_would_be_read() {
        let infos = AdditionalInfos::new(UrlRules::default());
        let read = AdditionalInfo::parse(&text("A.ao"), &UrlRules::default());
        for _ in 0..3 {
            assert_eq!(infos.parse(&text("A.ao")), read);
            assert_eq!(infos.parse(&text("a.ao")), read, "the same URLs in another text");
        }
        assert_eq!(known(&infos), 2);
    }

    #[test]
    fn what_is_wrong_or_comes_once_or_is_long_is_not_remembered() {
        let infos = AdditionalInfos::new(UrlRules { https_only: true, ..UrlRules::default() });
        let wrong = text("a.ao").replace("https", "http");
        let cart = format!(r#"{{"cart":"{}","#, "x".repeat(KNOWN_BYTES_MAX));
        let long = text("a.ao").replacen('{', &cart, 1);
        for _ in 0..3 {
            infos.parse(&wrong).unwrap_err();
            infos.parse("{").unwrap_err();
            infos.parse(&long).unwrap();
            infos.parse(&long[..1_000]).unwrap_err();
        }
        for number in 0..100 {
            infos.parse(&text(&format!("shop-{number}.ao"))).unwrap();
        }
        assert_eq!(known(&infos), 0);
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let infos = AdditionalInfos::new(UrlRules::default());
        for number in 0..2 * KNOWN_MAX {
            let text = text(&format!("shop-{number}.ao"));
            infos.parse(&text).unwrap();
            infos.parse(&text).unwrap();
        }
        assert!((1..=KNOWN_MAX).contains(&known(&infos)));
    }
}
