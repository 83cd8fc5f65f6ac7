//! The master key, and what is derived from it: the seal of secrets, the keys of access tokens, checkout
//! sessions and the history, the pepper of hashes. While one takes over from another there are two.

use aws_lc_rs::{aead, hkdf, hmac};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

pub struct Keys {
    /// Seals and signs.
    current: Master,
    /// Is understood as well.
    other: Option<Master>,
    kept: Kept,
    pepper: hmac::Key,
}

/// What is derived from one master key.
struct Master {
    /// Names it inside every sealed record and token.
    id: [u8; ID_BYTES],
    seal: aead::LessSafeKey,
    token: Key,
    checkout: hmac::Key,
    history: Key,
    pepper: Key,
}

/// What outlives a master key, as it lies sealed in the database.
#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    /// Of all hashes, for good: only who knows a secret could hash it anew.
    pepper: Key,
    /// Sealed the history before.
    history: Vec<Retired>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Retired {
    key: Key,
    /// Whoever has found it can make no seal after this one.
    last_seal: i64,
}

type Key = [u8; KEY_BYTES];

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
        let current = Master::derive(master)?;
        let kept = Kept { pepper: current.pepper, history: Vec::new() };
        Ok(Self { other: None, pepper: signing(&current.pepper), current, kept })
    }

    /// Understands what was made with another master key as well.
    pub fn beside(self, other: &SecretString) -> Result<Self, KeyError> {
        let other = Master::derive(other)?;
        Ok(Self { other: (other.id != self.current.id).then_some(other), ..self })
    }

    /// As keys of a database: by the id of the master key that it goes by, and what outlived those before.
    pub(crate) fn inherit(self, id: &str, kept: Option<&str>) -> Result<Self, KeyError> {
        let own = self.masters().find(|master| hex::encode(master.id) == id);
        let own = own.ok_or(KeyError::OtherKey)?;
        let kept = match kept {
            Some(sealed) => self.read_kept(sealed)?,
            None => Kept { pepper: own.pepper, history: Vec::new() },
        };
        Ok(Self { pepper: signing(&kept.pepper), kept, ..self })
    }

    fn read_kept(&self, sealed: &str) -> Result<Kept, KeyError> {
        let sealed = STANDARD.decode(sealed).map_err(|_| KeyError::Changed)?;
        serde_json::from_str(self.open(&sealed)?.expose_secret()).map_err(|_| KeyError::Changed)
    }

    /// What outlives the other master key, sealed with the current one; the history up to this seal may be
    /// the other's.
    pub(crate) fn bequest(&self, last_seal: i64, nonce: [u8; NONCE_BYTES]) -> String {
        let mut kept = self.kept.clone();
        let retired = self.other.iter().map(|other| Retired { key: other.history, last_seal });
        kept.history.extend(retired);
        let text = serde_json::to_string(&kept).expect("numbers always serialise");
        STANDARD.encode(self.seal(&text, nonce))
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
        let Master { id, seal, .. } = &self.current;
        let mut sealed = [&id[..], &nonce[..], secret.as_bytes()].concat();
        let mut text = sealed.split_off(ID_BYTES + NONCE_BYTES);
        seal.seal_in_place_append_tag(
            aead::Nonce::assume_unique_for_key(nonce),
            aead::Aad::from(*id),
            &mut text,
        )
        .expect("a short text can always be sealed");
        sealed.append(&mut text);
        sealed
    }

    pub fn open(&self, sealed: &[u8]) -> Result<SecretString, KeyError> {
        let (id, rest) = sealed.split_at_checked(ID_BYTES).ok_or(KeyError::Changed)?;
        let master = self.masters().find(|master| master.id == id).ok_or(KeyError::OtherKey)?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(KeyError::Changed)?;
        let mut text = text.to_vec();
        let nonce = aead::Nonce::assume_unique_for_key(*nonce);
        let opened = master
            .seal
            .open_in_place(nonce, aead::Aad::from(master.id), &mut text)
            .map_err(|_| KeyError::Changed)?;
        let secret = std::str::from_utf8(opened).map_err(|_| KeyError::Changed)?;
        Ok(secret.to_owned().into())
    }

    /// The same, sealed with the current master key.
    pub(crate) fn sealed_anew(
        &self,
        sealed: &[u8],
        nonce: [u8; NONCE_BYTES],
    ) -> Result<Vec<u8>, KeyError> {
        Ok(self.seal(self.open(sealed)?.expose_secret(), nonce))
    }

    pub(crate) fn is_current(&self, sealed: &[u8]) -> bool {
        sealed.starts_with(&self.current.id)
    }

    /// The signature of a checkout session.
    pub(crate) fn sign_session(&self, session: &[u8]) -> Vec<u8> {
        hmac::sign(&self.current.checkout, session).as_ref().to_vec()
    }

    /// In constant time.
    pub(crate) fn is_session(&self, session: &[u8], signature: &[u8]) -> bool {
        self.masters().any(|master| hmac::verify(&master.checkout, session, signature).is_ok())
    }

    /// The seal of a stretch of the history.
    pub(crate) fn seal_history(&self, rows: &[u8]) -> Vec<u8> {
        hmac::sign(&signing(&self.current.history), rows).as_ref().to_vec()
    }

    /// Whether the seal with this number is ours.
    pub(crate) fn is_history(&self, seal: i64, rows: &[u8], mac: &[u8]) -> bool {
        let retired = self.kept.history.iter().filter(|retired| seal <= retired.last_seal);
        let mut keys =
            self.masters().map(|m| &m.history).chain(retired.map(|retired| &retired.key));
        keys.any(|key| hmac::verify(&signing(key), rows, mac).is_ok())
    }

    /// The first makes tokens; the others are understood.
    pub(crate) fn token_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.masters().map(|master| &master.token[..])
    }

    pub fn id(&self) -> String {
        hex::encode(self.current.id)
    }

    pub fn other_id(&self) -> Option<String> {
        self.other.as_ref().map(|other| hex::encode(other.id))
    }

    fn masters(&self) -> impl Iterator<Item = &Master> {
        std::iter::once(&self.current).chain(&self.other)
    }
}

impl Master {
    fn derive(master: &SecretString) -> Result<Self, KeyError> {
        let master = STANDARD
            .decode(master.expose_secret().trim())
            .ok()
            .filter(|bytes| bytes.len() == KEY_BYTES)
            .ok_or(KeyError::NotAKey)?;
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"svc").extract(&master);
        let seal = aead::UnboundKey::new(&aead::AES_256_GCM, &expand::<KEY_BYTES>(&prk, b"seal"))
            .expect("32 bytes fit AES-256");
        Ok(Self {
            id: expand(&prk, b"id"),
            seal: aead::LessSafeKey::new(seal),
            token: expand(&prk, b"token"),
            checkout: signing(&expand(&prk, b"checkout")),
            history: expand(&prk, b"history"),
            pepper: expand(&prk, b"pepper"),
        })
    }
}

fn signing(key: &Key) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, key)
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
    fn while_one_master_key_takes_over_both_are_understood_and_one_is_used() {
        let (old, new) = (keys(1), master_key_from([2; KEY_BYTES]));
        let sealed = old.seal("whsec_abc", [9; NONCE_BYTES]);
        let hash = old.hash("secret");
        let both = || keys(2).beside(&master_key_from([1; KEY_BYTES])).unwrap();
        let taking_over = both().inherit(&old.id(), None).unwrap();
        assert!(taking_over.matches(&hash, "secret"), "the pepper is the database's");
        assert!(taking_over.is_session(b"page", &old.sign_session(b"page")));
        assert!(taking_over.is_history(7, b"rows", &old.seal_history(b"rows")));
        let anew = taking_over.sealed_anew(&sealed, [8; NONCE_BYTES]).unwrap();
        assert_eq!(Keys::derive(&new).unwrap().open(&anew).unwrap().expose_secret(), "whsec_abc");
        // The old one is gone.
        let kept = taking_over.bequest(7, [7; NONCE_BYTES]);
        let after = keys(2).inherit(&keys(2).id(), Some(&kept)).unwrap();
        assert!(after.matches(&hash, "secret") && after.matches(&after.hash("other"), "other"));
        assert!(matches!(after.open(&sealed), Err(KeyError::OtherKey)));
        assert!(!after.is_session(b"page", &old.sign_session(b"page")));
        assert!(after.is_history(7, b"rows", &old.seal_history(b"rows")));
        assert!(!after.is_history(8, b"rows", &old.seal_history(b"rows")), "it is retired");
        assert!(after.is_history(8, b"rows", &after.seal_history(b"rows")));
        // And once more.
        let third = keys(3).beside(&new).unwrap().inherit(&keys(2).id(), Some(&kept)).unwrap();
        let kept = third.bequest(9, [6; NONCE_BYTES]);
        let after = keys(3).inherit(&keys(3).id(), Some(&kept)).unwrap();
        assert!(after.matches(&hash, "secret"));
        assert!(after.is_history(7, b"rows", &old.seal_history(b"rows")));
        assert!(after.is_history(9, b"rows", &keys(2).seal_history(b"rows")));
        assert!(!after.is_history(8, b"rows", &old.seal_history(b"rows")));
    }

    #[test]
    fn keys_of_another_database_are_refused() {
        assert!(matches!(keys(1).inherit(&keys(2).id(), None), Err(KeyError::OtherKey)));
        let kept = keys(2).bequest(0, [0; NONCE_BYTES]);
        assert!(matches!(keys(1).inherit(&keys(1).id(), Some(&kept)), Err(KeyError::OtherKey)));
        for changed in ["", "!", &kept[1..]] {
            assert!(keys(2).inherit(&keys(2).id(), Some(changed)).is_err(), "{changed}");
        }
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
