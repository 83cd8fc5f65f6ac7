//! What strangers send, and what must hold whatever they send: each target takes any bytes and panics
//! when it does not.
//!
//! The corpus is replayed by the tests, with some changes to each entry; `dev/fuzz` looks further.

mod request;

use svc_client::{WebhookError, verify_webhook};
use svc_service::domain::{
    AdditionalInfo, ApplicationUuid, AttemptId, BankReference, Centimos, ClientId, EventId,
    ExternalTransactionId, Label, Login, PayerId, PhoneNumber, PublishableKey, ReferenceNumber,
    UrlRules, is_public_address, sign,
};

pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Changed entries that a test tries of each one in the corpus.
    pub changes: u64,
}

pub const TARGETS: [Target; 4] = [
    Target { name: "additional_info", run: additional_info, changes: 400 },
    Target { name: "texts", run: texts, changes: 400 },
    Target { name: "webhook", run: webhook, changes: 400 },
    Target { name: "request", run: request::send, changes: 12 },
];

/// Removes what the targets stored.
pub fn clean_up() {
    request::clean_up();
}

/// Whatever is accepted says the same when it is read again, and leads to no private place.
fn additional_info(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let strict = UrlRules {
        https_only: true,
        private_targets: false,
        own_host: Some("pay.example.ao".to_owned()),
    };
    for rules in [&strict, &UrlRules::default()] {
        let Ok(info) = AdditionalInfo::parse(text, rules) else { continue };
        // Written out it may be longer than it was given.
        if info.as_str().len() <= AdditionalInfo::BYTES_MAX {
            assert_eq!(AdditionalInfo::parse(info.as_str(), rules).as_ref(), Ok(&info));
        }
        for address in [info.return_url(), info.cancel_url(), info.webhook_url()] {
            let url = url::Url::parse(&address).expect("what is kept is a URL");
            assert!(matches!(url.scheme(), "http" | "https"), "{address}");
            assert!(url.username().is_empty() && url.password().is_none(), "{address}");
        }
    }
    if let Ok(info) = AdditionalInfo::parse(text, &strict) {
        let url = url::Url::parse(&info.webhook_url()).expect("what is kept is a URL");
        assert_eq!(url.scheme(), "https");
        let address = match url.host().expect("what is kept has a host") {
            url::Host::Domain(name) => return assert_ne!(name, "localhost"),
            url::Host::Ipv4(address) => address.into(),
            url::Host::Ipv6(address) => address.into(),
        };
        assert!(is_public_address(address), "{address}");
    }
}

/// What is accepted is kept as it was given, or in a form that is accepted as itself.
fn texts(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    macro_rules! stays {
        ($($kind:ty),+) => {$(
            if let Ok(read) = <$kind>::parse(text) {
                let again = <$kind>::parse(read.as_str()).expect("its own form is accepted");
                assert_eq!(again.as_str(), read.as_str());
            }
        )+};
    }
    stays!(
        ExternalTransactionId,
        ReferenceNumber,
        ApplicationUuid,
        ClientId,
        Label,
        PayerId,
        Login
    );
    if let Ok(phone) = PhoneNumber::parse(text) {
        let digits = text.chars().filter(char::is_ascii_digit).count();
        assert!(digits >= 9, "{text:?}");
        assert!(!phone.masked().contains(text), "{text:?} is shown");
    }
    if let Some(event) = EventId::parse(text) {
        assert_eq!(event.as_str(), text);
    }
    if let Some(attempt) = AttemptId::parse(text) {
        assert_eq!(attempt.as_str(), text);
    }
    if let Some(key) = PublishableKey::parse(text) {
        assert_eq!(key.to_string(), text);
    }
    if let Some(amount) = Centimos::parse(text) {
        assert!(amount.get() >= 0);
    }
    let (entity, number) = text.split_once(' ').unwrap_or((text, ""));
    if let Ok(reference) = BankReference::parse(entity, number) {
        let number = reference.number();
        assert!(number.bytes().all(|digit| digit.is_ascii_digit()), "{number}");
    }
}

/// First line: the secret. Second: the header. The rest: the body. Nothing is read that is not signed, and nothing
/// counts as signed with a secret that is too short to be one.
fn webhook(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let mut line = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (secret, header) = (line(), line());
    let body = parts.next().unwrap_or_default();
    let signature = sign(&secret, body);
    let told = verify_webhook(body, Some(&header), &secret);
    let short = secret.len() < 24;
    assert_eq!(told == Err(WebhookError::Signature), short || header != signature, "{told:?}");
    let told = verify_webhook(body, Some(&signature), &secret);
    assert_eq!(told == Err(WebhookError::Signature), short, "{told:?}");
    let wrong = verify_webhook(&[body, b" "].concat(), Some(&signature), &secret);
    assert_eq!(wrong, Err(WebhookError::Signature));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Small steps from a known input to one nobody thought of; the same ones in every run.
    struct Changes(u64);

    impl Changes {
        fn draw(&mut self, below: usize) -> usize {
            // xorshift64*
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below.max(1)
        }

        fn of(&mut self, known: &[u8], other: &[u8]) -> Vec<u8> {
            let mut bytes = known.to_vec();
            for _ in 0..=self.draw(4) {
                let at = self.draw(bytes.len() + 1);
                let end = (at + self.draw(16)).min(bytes.len());
                match self.draw(6) {
                    0 => bytes.insert(at, self.draw(256) as u8),
                    1 if at < bytes.len() => bytes[at] ^= 1 << self.draw(8),
                    2 => drop(bytes.drain(at..end)),
                    3 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
                    4 => {
                        let from = self.draw(other.len() + 1);
                        let to = (from + self.draw(32)).min(other.len());
                        bytes.splice(at..at, other[from..to].iter().copied());
                    }
                    _ => {
                        const ODD: [&[u8]; 8] = [
                            b"\0",
                            b"\r\n",
                            b"%00",
                            b"\"",
                            "\u{202e}".as_bytes(),
                            b"99999999999999999999",
                            b"-1",
                            b"\xff",
                        ];
                        bytes.splice(at..at, ODD[self.draw(ODD.len())].iter().copied());
                    }
                }
            }
            bytes
        }
    }

    #[test]
    fn the_corpus_holds_as_it_is_and_a_little_changed() {
        const SEED: u64 = 0x7376_6366_757a_7a31;
        for target in &TARGETS {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
            let mut files: Vec<_> =
                std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
            files.sort();
            assert!(files.len() >= 5, "{} is a corpus", folder.display());
            let corpus: Vec<Vec<u8>> =
                files.iter().map(|file| std::fs::read(file).unwrap()).collect();
            let mut changes = Changes(SEED);
            for (file, known) in files.iter().zip(&corpus) {
                try_one(target, known, file);
                for _ in 0..target.changes {
                    let other = &corpus[changes.draw(corpus.len())];
                    try_one(target, &changes.of(known, other), file);
                }
            }
        }
        clean_up();
    }

    fn try_one(target: &Target, bytes: &[u8], file: &Path) {
        let outcome = std::panic::catch_unwind(|| (target.run)(bytes));
        assert!(
            outcome.is_ok(),
            "{} fails on this, made of {}:\n{}",
            target.name,
            file.display(),
            bytes.escape_ascii()
        );
    }
}
