//! What a page may do with its order: a signed note, good for one order and a quarter of an hour.
//!
//! The reference number is in the merchant's hands and in addresses; it opens nothing. Whoever pays
//! or cancels shows the session that came with the page.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};

use crate::domain::{PaymentMethod, ReferenceNumber, after};
use crate::keys::Keys;

const SESSION_LIFE: SignedDuration = SignedDuration::from_mins(15);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub reference: ReferenceNumber,
    /// What the merchant allows; a page cannot allow itself more.
    pub methods: Vec<PaymentMethod>,
    pub reference_life_minutes: i64,
    pub until_s: i64,
}

impl Session {
    pub(super) fn open(
        reference: ReferenceNumber,
        methods: Vec<PaymentMethod>,
        reference_life_minutes: i64,
        now: Timestamp,
    ) -> Self {
        let until = after(now, SESSION_LIFE);
        Self { reference, methods, reference_life_minutes, until_s: until.as_second() }
    }

    pub(super) fn seal(&self, keys: &Keys) -> String {
        let codes: Vec<&str> = self.methods.iter().map(|method| method.code()).collect();
        let text = format!(
            "{}.{}.{}.{}",
            self.reference.as_str(),
            codes.join("+"),
            self.reference_life_minutes,
            self.until_s
        );
        let signature = URL_SAFE_NO_PAD.encode(keys.sign_session(text.as_bytes()));
        format!("{}.{signature}", URL_SAFE_NO_PAD.encode(text))
    }

    /// The session of this order, if it is ours and has not run out.
    pub(super) fn check(
        keys: &Keys,
        token: &str,
        reference: &ReferenceNumber,
        now: Timestamp,
    ) -> Option<Self> {
        Self::of(keys, token, reference).filter(|session| !session.has_ended(now))
    }

    pub(super) fn has_ended(&self, now: Timestamp) -> bool {
        now.as_second() >= self.until_s
    }

    /// The session that a token of ours names, also if it has ended.
    pub(super) fn of(keys: &Keys, token: &str, reference: &ReferenceNumber) -> Option<Self> {
        let (text, signature) = token.split_once('.')?;
        let text = URL_SAFE_NO_PAD.decode(text).ok()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        if !keys.is_session(&text, &signature) {
            return None;
        }
        let session = Self::read(std::str::from_utf8(&text).ok()?)?;
        (session.reference == *reference).then_some(session)
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        Some(Self {
            reference: ReferenceNumber::parse(parts.next()?).ok()?,
            methods: parts.next()?.split('+').filter_map(PaymentMethod::from_code).collect(),
            reference_life_minutes: parts.next()?.parse().ok()?,
            until_s: parts.next()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{KEY_BYTES, master_key_from};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    #[test]
    fn a_session_opens_its_own_order_unchanged_and_in_time() {
        let keys = |byte| Keys::derive(&master_key_from([byte; KEY_BYTES])).unwrap();
        let order = ReferenceNumber::assign(at(0), [1; 10]);
        let methods = vec![PaymentMethod::Direct, PaymentMethod::BankReference];
        let session = Session::open(order.clone(), methods, 60, at(0));
        let token = session.seal(&keys(1));
        assert_eq!(Session::check(&keys(1), &token, &order, at(899)), Some(session));
        assert_eq!(Session::check(&keys(1), &token, &order, at(900)), None);
        assert_eq!(Session::check(&keys(2), &token, &order, at(1)), None);
        let other = ReferenceNumber::assign(at(0), [2; 10]);
        assert_eq!(Session::check(&keys(1), &token, &other, at(1)), None);
        for place in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(Session::check(&keys(1), &changed, &order, at(1)), None, "{place}");
        }
    }
}
