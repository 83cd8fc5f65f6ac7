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
    /// As the database has it: the id of the master key it goes by, and sealed with that what outlived others.
    stored: String,
    kept: Kept,
    pepper: hmac::Key,
}

/// What is derived from one master key.
struct Master {
    /// Names it inside every sealed record and token.
    id: [u8; ID_BYTES],
    seal: aead::LessSafeKey,
    /// Of what outlives others: no secret that somebody had sealed can stand in for it.
    keep: aead::LessSafeKey,
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

/// Whoever has found it can make no seal after the last, nor another in its place or before it.
#[derive(Clone, Serialize, Deserialize)]
struct Retired {
    key: Key,
    last_seal: i64,
    last_mac: Vec<u8>,
}

type Key = [u8; KEY_BYTES];

pub const KEY_BYTES: usize = 32;
pub const NONCE_BYTES: usize = 12;
const ID_BYTES: usize = 4;
/// Between the id of a database's master key and what outlived others. A program that knows of one key only
/// takes the whole for another key, and refuses.
const KEPT: char = ':';

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the master key is 32 bytes in base64; \"svc keygen\" prints one")]
    NotAKey,
    #[error(
        "the other master key is not 32 bytes in base64; take it out of the settings, or give the right one"
    )]
    OtherNotAKey,
    #[error("this master key was replaced; give the one that took over from it")]
    Retired,
    #[error("a stored secret was sealed with another master key")]
    OtherKey,
    #[error("a stored secret was changed since it was sealed")]
    Changed,
}

impl Keys {
    pub fn derive(master: &SecretString) -> Result<Self, KeyError> {
        let current = Master::derive(master)?;
        let kept = Kept { pepper: current.pepper, history: Vec::new() };
        let (stored, pepper) = (hex::encode(current.id), signing(&current.pepper));
        Ok(Self { current, other: None, stored, kept, pepper })
    }

    /// Understands what was made with another master key as well.
    pub fn beside(self, other: &SecretString) -> Result<Self, KeyError> {
        let other = Master::derive(other).map_err(|_| KeyError::OtherNotAKey)?;
        Ok(Self { other: (other.id != self.current.id).then_some(other), ..self })
    }

    /// As keys of a database.
    pub fn inherit(self, stored: &str) -> Result<Self, KeyError> {
        let (id, kept) = parts(stored);
        let own = self.masters().find(|master| hex::encode(master.id) == id);
        let own = own.ok_or(KeyError::OtherKey)?;
        let mut kept = match kept {
            Some(sealed) => own.read_kept(sealed)?,
            None => Kept { pepper: own.pepper, history: Vec::new() },
        };
        // Only a thief would say that the key they hold was replaced.
        kept.history.retain(|retired| retired.key != own.history);
        // It could make no seal of the history that counts.
        if kept.has_retired(&self.current) {
            return Err(KeyError::Retired);
        }
        Ok(Self { stored: stored.to_owned(), pepper: signing(&kept.pepper), kept, ..self })
    }

    pub(crate) fn stored(&self) -> &str {
        &self.stored
    }

    /// Whether the database goes by the current master key.
    pub(crate) fn is_the_databases(&self) -> bool {
        id_of(&self.stored) == self.id()
    }

    /// Whether it does, instead of the other one.
    pub(crate) fn has_taken_over(&self) -> bool {
        let replaced = |other: &Master| self.kept.has_retired(other);
        self.is_the_databases() && self.other.as_ref().is_none_or(replaced)
    }

    /// What the database is to store when the current master key takes over from the other. All of the
    /// history up to this seal may be of keys before.
    pub(crate) fn bequest(&self, last: Option<(i64, &[u8])>, nonce: [u8; NONCE_BYTES]) -> String {
        let (last_seal, last_mac) = last.map_or((0, Vec::new()), |(id, mac)| (id, mac.to_vec()));
        let mut kept = self.kept.clone();
        let last = |key| Retired { key, last_seal, last_mac: last_mac.clone() };
        // Whoever could write the database while a leaked key was in use may have put in others.
        for retired in kept.history.iter_mut().filter(|retired| retired.last_seal > last_seal) {
            *retired = last(retired.key);
        }
        kept.history.extend(self.other.iter().map(|other| last(other.history)));
        let text: SecretString =
            serde_json::to_string(&kept).expect("numbers always serialise").into();
        let sealed = self.current.sealed(&self.current.keep, text.expose_secret(), nonce);
        format!("{}{KEPT}{}", self.id(), STANDARD.encode(sealed))
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
        self.current.sealed(&self.current.seal, secret, nonce)
    }

    pub fn open(&self, sealed: &[u8]) -> Result<SecretString, KeyError> {
        let mut masters = self.masters();
        let master = masters.find(|master| sealed.starts_with(&master.id));
        let master = master.ok_or(KeyError::OtherKey)?;
        master.opened(&master.seal, sealed)
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
        let other = self.other.iter().filter(|other| !self.kept.has_retired(other));
        let present = std::iter::once(&self.current).chain(other).map(|master| &master.history);
        let retired = self.kept.history.iter().filter(|retired| seal <= retired.last_seal);
        let mut keys = present.chain(retired.map(|retired| &retired.key));
        keys.any(|key| hmac::verify(&signing(key), rows, mac).is_ok())
    }

    /// Seals, by their numbers, that must be these.
    pub(crate) fn known_seals(&self) -> impl Iterator<Item = (i64, &[u8])> {
        let retired = self.kept.history.iter().filter(|retired| retired.last_seal > 0);
        retired.map(|retired| (retired.last_seal, &retired.last_mac[..]))
    }

    pub(crate) fn token_key(&self) -> &[u8] {
        &self.current.token
    }

    /// All that are understood.
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

impl Kept {
    fn has_retired(&self, master: &Master) -> bool {
        self.history.iter().any(|retired| retired.key == master.history)
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
        Ok(Self {
            id: expand(&prk, b"id"),
            seal: sealing(&expand(&prk, b"seal")),
            keep: sealing(&expand(&prk, b"keep")),
            token: expand(&prk, b"token"),
            checkout: signing(&expand(&prk, b"checkout")),
            history: expand(&prk, b"history"),
            pepper: expand(&prk, b"pepper"),
        })
    }

    fn sealed(&self, key: &aead::LessSafeKey, text: &str, nonce: [u8; NONCE_BYTES]) -> Vec<u8> {
        let mut sealed = [&self.id[..], &nonce[..], text.as_bytes()].concat();
        let mut text = sealed.split_off(ID_BYTES + NONCE_BYTES);
        let nonce = aead::Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(nonce, aead::Aad::from(self.id), &mut text)
            .expect("a short text can always be sealed");
        sealed.append(&mut text);
        sealed
    }

    fn opened(&self, key: &aead::LessSafeKey, sealed: &[u8]) -> Result<SecretString, KeyError> {
        let rest = sealed.strip_prefix(&self.id).ok_or(KeyError::OtherKey)?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(KeyError::Changed)?;
        let mut text = text.to_vec();
        let nonce = aead::Nonce::assume_unique_for_key(*nonce);
        let opened = key
            .open_in_place(nonce, aead::Aad::from(self.id), &mut text)
            .map_err(|_| KeyError::Changed)?;
        let secret = std::str::from_utf8(opened).map_err(|_| KeyError::Changed)?;
        Ok(secret.to_owned().into())
    }

    fn read_kept(&self, sealed: &str) -> Result<Kept, KeyError> {
        let sealed = STANDARD.decode(sealed).map_err(|_| KeyError::Changed)?;
        let opened = self.opened(&self.keep, &sealed)?;
        serde_json::from_str(opened.expose_secret()).map_err(|_| KeyError::Changed)
    }
}

fn sealing(key: &Key) -> aead::LessSafeKey {
    let key = aead::UnboundKey::new(&aead::AES_256_GCM, key).expect("32 bytes fit AES-256");
    aead::LessSafeKey::new(key)
}

fn signing(key: &Key) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, key)
}

/// The id of the master key that a database goes by, and sealed with that what outlived others.
fn parts(stored: &str) -> (&str, Option<&str>) {
    stored.split_once(KEPT).map_or((stored, None), |(id, kept)| (id, Some(kept)))
}

/// The id of the master key in what a database has stored of it.
pub fn id_of(stored: &str) -> &str {
    parts(stored).0
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
        let (hash, mac) = (old.hash("secret"), old.seal_history(b"rows"));
        let both = keys(2).beside(&master_key_from([1; KEY_BYTES])).unwrap();
        let taking_over = both.inherit(old.stored()).unwrap();
        assert!(taking_over.matches(&hash, "secret"), "the pepper is the database's");
        assert!(taking_over.is_session(b"page", &old.sign_session(b"page")));
        assert!(taking_over.is_history(9, b"rows", &mac) && !taking_over.has_taken_over());
        let anew = taking_over.sealed_anew(&sealed, [8; NONCE_BYTES]).unwrap();
        assert_eq!(Keys::derive(&new).unwrap().open(&anew).unwrap().expose_secret(), "whsec_abc");
        let stored = taking_over.bequest(Some((7, &mac)), [7; NONCE_BYTES]);
        let both = keys(2).beside(&master_key_from([1; KEY_BYTES])).unwrap();
        let both = both.inherit(&stored).unwrap();
        assert!(both.has_taken_over() && both.is_the_databases());
        assert!(!both.is_history(8, b"rows", &mac), "it is retired, although it is given");
        // The old one is gone.
        let after = keys(2).inherit(&stored).unwrap();
        assert!(after.matches(&hash, "secret") && after.matches(&after.hash("other"), "other"));
        assert!(matches!(after.open(&sealed), Err(KeyError::OtherKey)));
        assert!(!after.is_session(b"page", &old.sign_session(b"page")));
        assert!(after.is_history(7, b"rows", &mac) && !after.is_history(8, b"rows", &mac));
        assert_eq!(after.known_seals().collect::<Vec<_>>(), [(7, &mac[..])]);
        assert!(after.is_history(8, b"rows", &after.seal_history(b"rows")));
        // It does not come back.
        let back = keys(1).beside(&new).unwrap().inherit(&stored);
        assert!(matches!(back, Err(KeyError::Retired)));
        // And once more.
        let third = keys(3).beside(&new).unwrap().inherit(&stored).unwrap();
        let stored = third.bequest(Some((9, b"mac")), [6; NONCE_BYTES]);
        let after = keys(3).inherit(&stored).unwrap();
        assert!(after.matches(&hash, "secret"));
        assert!(after.is_history(7, b"rows", &mac) && !after.is_history(8, b"rows", &mac));
        assert!(after.is_history(9, b"rows", &keys(2).seal_history(b"rows")));
        assert_eq!(after.known_seals().map(|(id, _)| id).collect::<Vec<_>>(), [7, 9]);
    }

    #[test]
    fn what_was_put_in_with_a_leaked_key_reaches_no_further_than_that_key() {
        let old = keys(1);
        let everything = Some((i64::MAX, &b"any"[..]));
        let forged = keys(1).beside(&master_key_from([9; KEY_BYTES])).unwrap();
        let forged = forged.bequest(everything, [1; NONCE_BYTES]);
        let both = keys(2).beside(&master_key_from([1; KEY_BYTES])).unwrap();
        let both = both.inherit(&forged).unwrap();
        let after = both.bequest(Some((7, b"mac")), [2; NONCE_BYTES]);
        let after = keys(2).inherit(&after).unwrap();
        assert!(!after.is_history(8, b"rows", &keys(9).seal_history(b"rows")));
        assert!(after.known_seals().all(|seal| seal == (7, b"mac")));
        // Nor can it be said that the old one was replaced before.
        let itself = Master::derive(&master_key_from([1; KEY_BYTES])).unwrap();
        let forged = Keys { other: Some(itself), ..keys(1) }.bequest(None, [4; NONCE_BYTES]);
        assert!(keys(1).inherit(&forged).is_ok());
        let both = keys(2).beside(&master_key_from([1; KEY_BYTES])).unwrap();
        let both = both.inherit(&forged).unwrap();
        assert!(!both.has_taken_over());
        let after = keys(2).inherit(&both.bequest(Some((7, b"mac")), [5; NONCE_BYTES])).unwrap();
        assert!(after.is_history(7, b"rows", &old.seal_history(b"rows")));
        // A secret that is sealed anew is nothing that outlives a key.
        let secret = old.seal(r#"{"pepper":[],"history":[]}"#, [3; NONCE_BYTES]);
        let stored = format!("{}:{}", old.id(), STANDARD.encode(secret));
        assert!(matches!(keys(1).inherit(&stored), Err(KeyError::Changed)));
    }

    #[test]
    fn keys_of_another_database_are_refused() {
        assert!(matches!(keys(1).inherit(keys(2).stored()), Err(KeyError::OtherKey)));
        let kept = keys(2).bequest(None, [0; NONCE_BYTES]);
        assert!(matches!(keys(1).inherit(&kept), Err(KeyError::OtherKey)));
        assert!(keys(2).inherit(&kept).is_ok());
        for changed in [":", ":!", &kept[..kept.len() - 4]] {
            assert!(keys(2).inherit(changed).is_err(), "{changed}");
        }
        let other = keys(1).beside(&"short".to_owned().into());
        assert!(matches!(other, Err(KeyError::OtherNotAKey)));
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
