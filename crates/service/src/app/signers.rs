//! Webhook secrets that are in use, ready to sign.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use secrecy::ExposeSecret;

use crate::domain::Signer;
use crate::keys::{KeyError, Keys};

/// By the sealed secret: one that is rotated has another seal.
#[derive(Default)]
pub struct Signers(RwLock<HashMap<Box<[u8]>, Arc<Signer>>>);

/// Past this all are forgotten; opening a secret again costs microseconds.
const SIGNERS_MAX: usize = 1_000;

impl Signers {
    pub fn signer(&self, keys: &Keys, sealed: &[u8]) -> Result<Arc<Signer>, KeyError> {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(sealed) {
            return Ok(Arc::clone(known));
        }
        let signer = Arc::new(Signer::new(keys.open(sealed)?.expose_secret()));
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= SIGNERS_MAX {
            known.clear();
        }
        known.insert(sealed.into(), Arc::clone(&signer));
        Ok(signer)
    }
}
