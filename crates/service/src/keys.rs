//! One master key, and what is derived from it: the pepper of hashes, the seal of secrets, the keys of
//! access tokens, checkout sessions and the history.

use aws_lc_rs::{aead, hkdf, hmac};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret, SecretString};

pub struct Keys {
    pepper: hmac::Key,
    seal: aead::LessSafeKey,
    token: [u8; KEY_BYTES],
    checkout: hmac::Key,
    history: hmac::Key,
    /// Names the master key inside every sealed record and token.
    id: [u8; ID_BYTES],
}

pub const KEY_BYTES: usize = 32;
pub const NONCE_BYTES: usize = 12;
const ID_BYTES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the master key is 32 bytes in base64; \"svc keygen\" prints one")]
    NotAKey,
    #[error("a stored secret was sealed with another master key")]
    OtherKey,
    #[error("a stored secret was changed since it was sealed")]
    Changed,
}

impl Keys {
    pub fn derive(master: &SecretString) -> Result<Self, KeyError> {
        let master = STANDARD
            .decode(master.expose_secret().trim())
            .ok()
            .filter(|bytes| bytes.len() == KEY_BYTES)
            .ok_or(KeyError::NotAKey)?;
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"svc").extract(&master);
        let seal = aead::UnboundKey::new(&aead::AES_256_GCM, &expand::<KEY_BYTES>(&prk, b"seal"))
            .expect("32 bytes fit AES-256");
        Ok(Self {
            pepper: hmac::Key::new(hmac::HMAC_SHA256, &expand::<KEY_BYTES>(&prk, b"pepper")),
            seal: aead::LessSafeKey::new(seal),
            token: expand(&prk, b"token"),
            checkout: hmac::Key::new(hmac::HMAC_SHA256, &expand::<KEY_BYTES>(&prk, b"checkout")),
            history: hmac::Key::new(hmac::HMAC_SHA256, &expand::<KEY_BYTES>(&prk, b"history")),
            id: expand(&prk, b"id"),
        })
    }

    /// For secrets that are only compared. They have 256 random bits, so no slow hash is needed.
    pub fn hash(&self, secret: &str) -> Vec<u8> {
        hmac::sign(&self.pepper, secret.as_bytes()).as_ref().to_vec()
    }

    /// In constant time.
    pub fn matches(&self, hash: &[u8], secret: &str) -> bool {
        hmac::verify(&self.pepper, secret.as_bytes(), hash).is_ok()
    }

    /// For secrets that must be used again; the nonce is random and never repeats.
    pub fn seal(&self, secret: &str, nonce: [u8; NONCE_BYTES]) -> Vec<u8> {
        let mut sealed = [&self.id[..], &nonce[..], secret.as_bytes()].concat();
        let mut text = sealed.split_off(ID_BYTES + NONCE_BYTES);
        self.seal
            .seal_in_place_append_tag(
                aead::Nonce::assume_unique_for_key(nonce),
                aead::Aad::from(self.id),
                &mut text,
            )
            .expect("a short text can always be sealed");
        sealed.append(&mut text);
        sealed
    }

    pub fn open(&self, sealed: &[u8]) -> Result<SecretString, KeyError> {
        let (id, rest) = sealed.split_at_checked(ID_BYTES).ok_or(KeyError::Changed)?;
        if id != self.id {
            return Err(KeyError::OtherKey);
        }
        let (nonce, text) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(KeyError::Changed)?;
        let mut text = text.to_vec();
        let nonce = aead::Nonce::assume_unique_for_key(*nonce);
        let opened = self
            .seal
            .open_in_place(nonce, aead::Aad::from(self.id), &mut text)
            .map_err(|_| KeyError::Changed)?;
        let secret = std::str::from_utf8(opened).map_err(|_| KeyError::Changed)?;
        Ok(secret.to_owned().into())
    }

    /// The signature of a checkout session.
    pub(crate) fn sign_session(&self, session: &[u8]) -> Vec<u8> {
        hmac::sign(&self.checkout, session).as_ref().to_vec()
    }

    /// In constant time.
    pub(crate) fn is_session(&self, session: &[u8], signature: &[u8]) -> bool {
        hmac::verify(&self.checkout, session, signature).is_ok()
    }

    /// The seal of a stretch of the history.
    pub(crate) fn seal_history(&self, rows: &[u8]) -> Vec<u8> {
        hmac::sign(&self.history, rows).as_ref().to_vec()
    }

    pub(crate) fn token_key(&self) -> &[u8] {
        &self.token
    }

    pub fn id(&self) -> String {
        hex::encode(self.id)
    }
}

/// A master key as people hold it.
pub fn master_key_from(random: [u8; KEY_BYTES]) -> SecretString {
    STANDARD.encode(random).into()
}

fn expand<const N: usize>(prk: &hkdf::Prk, purpose: &'static [u8]) -> [u8; N] {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut out = [0; N];
    prk.expand(&[purpose], Length(N))
        .and_then(|okm| okm.fill(&mut out))
        .expect("HKDF gives up to 8,160 bytes");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(byte: u8) -> Keys {
        Keys::derive(&master_key_from([byte; KEY_BYTES])).unwrap()
    }

    #[test]
    fn a_sealed_secret_opens_only_with_its_key_and_unchanged() {
        let sealed = keys(1).seal("whsec_abc", [9; NONCE_BYTES]);
        assert_eq!(keys(1).open(&sealed).unwrap().expose_secret(), "whsec_abc");
        assert!(matches!(keys(2).open(&sealed), Err(KeyError::OtherKey)));
        for position in ID_BYTES..sealed.len() {
            let mut changed = sealed.clone();
            changed[position] ^= 1;
            assert!(matches!(keys(1).open(&changed), Err(KeyError::Changed)), "{position}");
        }
        assert!(!String::from_utf8_lossy(&sealed).contains("whsec"));
    }

    #[test]
    fn hashes_depend_on_the_secret_and_the_pepper() {
        let hash = keys(1).hash("secret");
        assert!(keys(1).matches(&hash, "secret"));
        assert!(!keys(1).matches(&hash, "secret "));
        assert!(!keys(2).matches(&hash, "secret"));
    }

    #[test]
    fn only_32_bytes_in_base64_are_a_master_key() {
        for bad in ["", "short", "!!!"] {
            assert!(matches!(Keys::derive(&bad.to_owned().into()), Err(KeyError::NotAKey)));
        }
    }
}
