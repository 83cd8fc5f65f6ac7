//! Tokens whose signature was checked a moment ago: merchants send the same one for an hour.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::domain::ClientId;

/// What a verified token says. Whether it has expired or its epoch has passed is asked every time.
#[derive(Debug)]
pub struct Token {
    pub client_id: ClientId,
    pub epoch: i64,
    pub expires_at_s: i64,
}

#[derive(Default)]
pub struct TokenCache(RwLock<HashMap<Box<str>, Arc<Token>>>);

/// Past this all are forgotten; checking a signature again costs microseconds.
const TOKENS_MAX: usize = 10_000;

impl TokenCache {
    pub fn get(&self, token: &str) -> Option<Arc<Token>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// Only for tokens whose signature is right.
    pub fn remember(&self, token: &str, verified: Token) -> Arc<Token> {
        let verified = Arc::new(verified);
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= TOKENS_MAX {
            known.clear();
        }
        known.insert(token.into(), Arc::clone(&verified));
        verified
    }
}
