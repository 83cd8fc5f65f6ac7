//! One-time codes (RFC 6238): six digits, thirty seconds, SHA-1, as every phone app makes them.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use secrecy::ExposeSecret;

use crate::app::App;

pub(super) const SEED_BYTES: usize = 20;
const STEP_S: i64 = 30;

/// What a phone was given, as it is kept.
pub(super) fn seed(app: &App, sealed: &[u8]) -> Option<Vec<u8>> {
    let opened = app.keys.open(sealed).ok()?;
    STANDARD.decode(opened.expose_secret()).ok()
}

/// The step a code belongs to, if it is the present one or a neighbour: clocks of phones differ.
pub(super) fn step_of(seed: &[u8], code: &str, now: Timestamp) -> Option<i64> {
    let code = code.trim().replace(' ', "");
    let present = now.as_second() / STEP_S;
    let right = |step: &i64| {
        let expected = code_at(seed, *step);
        aws_lc_rs::constant_time::verify_slices_are_equal(expected.as_bytes(), code.as_bytes())
            .is_ok()
    };
    // Every step is looked at, whichever fits.
    let fits: Vec<_> = (present - 1..=present + 1).filter(right).collect();
    fits.into_iter().next()
}

fn code_at(seed: &[u8], step: i64) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, seed);
    let mac = hmac::sign(&key, &step.to_be_bytes());
    let mac = mac.as_ref();
    let at = usize::from(mac[mac.len() - 1] & 0x0f);
    let number = u32::from_be_bytes([mac[at] & 0x7f, mac[at + 1], mac[at + 2], mac[at + 3]]);
    format!("{:06}", number % 1_000_000)
}

/// Base32 without padding: what is typed into a phone.
pub(super) fn spelled(seed: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut out = String::new();
    let (mut held, mut bits) = (0u32, 0);
    for byte in seed {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            out.push(char::from(LETTERS[(held >> bits & 31) as usize]));
        }
    }
    if bits > 0 {
        out.push(char::from(LETTERS[(held << (5 - bits) & 31) as usize]));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 6238, appendix B, shortened to six digits.
    #[test]
    fn codes_are_those_of_the_rfc() {
        let seed = b"12345678901234567890";
        for (second, code) in
            [(59, "287082"), (1_111_111_109, "081804"), (20_000_000_000, "353130")]
        {
            let now = Timestamp::from_second(second).unwrap();
            assert_eq!(step_of(seed, code, now), Some(second / STEP_S), "{second}");
            assert_eq!(step_of(seed, "000000", now), None);
        }
    }

    #[test]
    fn a_seed_is_spelled_in_base32() {
        assert_eq!(spelled(b"12345678901234567890"), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        assert_eq!(spelled(b"foob"), "MZXW6YQ");
    }
}
