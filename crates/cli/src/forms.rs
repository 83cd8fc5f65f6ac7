//! The ways a signature goes wrong, each with what it would then be: `svc verify` looks a given
//! signature up among them, `svc check` tries which of them a handler accepts.

use aws_lc_rs::{digest, hmac};
use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::lang::Text;
use crate::reencode::{Style, reencode};

/// What was done differently from the contract (spec 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    LineBreakAdded,
    LineBreakRemoved,
    Reencoded(Style),
    SecretDecoded,
    SecretWithoutPrefix,
    SecretWithLineBreak,
    SecretQuoted,
    SecretEmpty,
    Sha1,
    Sha512,
    NotHmac,
}

/// How a digest is written into the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    Hex,
    UpperCase,
    Prefixed,
    Base64,
}

impl Notation {
    pub(crate) const WRONG: [Self; 3] = [Self::UpperCase, Self::Prefixed, Self::Base64];

    pub(crate) fn write(self, digest: &[u8]) -> String {
        match self {
            Self::Hex => hex::encode(digest),
            Self::UpperCase => hex::encode_upper(digest),
            Self::Prefixed => format!("sha256={}", hex::encode(digest)),
            Self::Base64 => STANDARD.encode(digest),
        }
    }

    /// Reads whatever looks like a digest, and says how it was written.
    pub(crate) fn read(text: &str) -> Option<(Self, Vec<u8>)> {
        let (prefixed, rest) = match text.strip_prefix("sha256=") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if let Ok(digest) = hex::decode(rest) {
            let upper = rest.bytes().any(|b| b.is_ascii_uppercase());
            let notation = match (prefixed, upper) {
                (true, _) => Self::Prefixed,
                (false, true) => Self::UpperCase,
                (false, false) => Self::Hex,
            };
            return Some((notation, digest));
        }
        STANDARD.decode(rest).ok().map(|digest| (Self::Base64, digest))
    }
}

/// The digest of the contract: HMAC-SHA256 of the raw bytes, keyed with the whole secret as text.
pub(crate) fn right(secret: &str, body: &[u8]) -> Vec<u8> {
    mac(hmac::HMAC_SHA256, secret.as_bytes(), body)
}

/// Every wrong digest that can be told from the right one, likeliest first.
pub(crate) fn wrong(secret: &str, body: &[u8]) -> Vec<(Form, Vec<u8>)> {
    let right = right(secret, body);
    let mut found = other_bytes(secret, body);
    found.extend(other_keys(secret, body));
    let secret = secret.as_bytes();
    found.extend([
        (Form::Sha1, mac(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret, body)),
        (Form::Sha512, mac(hmac::HMAC_SHA512, secret, body)),
        (Form::NotHmac, plain(&[secret, body])),
        (Form::NotHmac, plain(&[body, secret])),
        (Form::NotHmac, plain(&[body])),
    ]);
    // Re-encoding what is compact already changes nothing, and then it is no fault either.
    found.retain(|(_, digest)| *digest != right);
    found
}

fn other_bytes(secret: &str, body: &[u8]) -> Vec<(Form, Vec<u8>)> {
    let mut bodies = vec![
        (Form::LineBreakAdded, [body, b"\n"].concat()),
        (Form::LineBreakAdded, [body, b"\r\n"].concat()),
        (Form::LineBreakRemoved, body.trim_ascii_end().to_vec()),
    ];
    for style in Style::ALL {
        bodies.extend(reencode(body, style).map(|body| (Form::Reencoded(style), body)));
    }
    bodies.into_iter().map(|(form, body)| (form, right(secret, &body))).collect()
}

fn other_keys(secret: &str, body: &[u8]) -> Vec<(Form, Vec<u8>)> {
    let bare = secret.strip_prefix("whsec_");
    let mut keys = vec![
        (Form::SecretWithLineBreak, format!("{secret}\n").into_bytes()),
        (Form::SecretWithLineBreak, format!("{secret}\r\n").into_bytes()),
        (Form::SecretQuoted, format!("\"{secret}\"").into_bytes()),
        (Form::SecretQuoted, format!("'{secret}'").into_bytes()),
        (Form::SecretEmpty, Vec::new()),
    ];
    if let Some(bare) = bare {
        keys.push((Form::SecretWithoutPrefix, bare.as_bytes().to_vec()));
        keys.extend(STANDARD.decode(bare).ok().map(|key| (Form::SecretDecoded, key)));
    }
    keys.into_iter().map(|(form, key)| (form, mac(hmac::HMAC_SHA256, &key, body))).collect()
}

fn mac(algorithm: hmac::Algorithm, key: &[u8], body: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(algorithm, key), body).as_ref().to_vec()
}

fn plain(parts: &[&[u8]]) -> Vec<u8> {
    digest::digest(&digest::SHA256, &parts.concat()).as_ref().to_vec()
}

impl Form {
    /// For programs that read our JSON.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::LineBreakAdded => "line-break-added",
            Self::LineBreakRemoved => "line-break-removed",
            Self::Reencoded(_) => "re-encoded-json",
            Self::SecretDecoded => "secret-decoded",
            Self::SecretWithoutPrefix => "secret-without-prefix",
            Self::SecretWithLineBreak => "secret-with-line-break",
            Self::SecretQuoted => "secret-quoted",
            Self::SecretEmpty => "secret-empty",
            Self::Sha1 => "hmac-sha1",
            Self::Sha512 => "hmac-sha512",
            Self::NotHmac => "not-hmac",
        }
    }

    /// What happened and what to do, as a sentence about whoever computed the digest.
    pub(crate) fn text(self) -> Text {
        match self {
            Self::LineBreakAdded => [
                "foi calculada sobre o corpo com uma quebra de linha a mais no fim: use os bytes tal como chegaram",
                "it is computed over the body with a line break added at the end: use the bytes as they came",
                "elle est calculée sur le corps avec un saut de ligne de plus à la fin : prenez les octets tels quels",
            ],
            Self::LineBreakRemoved => [
                "foi calculada sobre o corpo sem os espaços do fim: não corte nada (trim)",
                "it is computed over the body without the white space at its end: do not trim it",
                "elle est calculée sur le corps sans les blancs de la fin : ne coupez rien (trim)",
            ],
            Self::Reencoded(style) => style.text(),
            Self::SecretDecoded => [
                "a chave foi descodificada de base64: a chave é o texto inteiro do segredo, com whsec_",
                "the key was decoded from base64: the key is the whole secret as text, whsec_ included",
                "la clé a été décodée de base64 : la clé est le texte entier du secret, whsec_ compris",
            ],
            Self::SecretWithoutPrefix => [
                "falta whsec_ na chave: a chave é o texto inteiro do segredo",
                "whsec_ was cut off the key: the key is the whole secret as text",
                "whsec_ manque à la clé : la clé est le texte entier du secret",
            ],
            Self::SecretWithLineBreak => [
                "a chave tem uma quebra de linha no fim: corte-a ao ler o segredo (trim)",
                "the key has a line break at its end: trim the secret when it is read",
                "la clé finit par un saut de ligne : coupez-le en lisant le secret (trim)",
            ],
            Self::SecretQuoted => [
                "a chave está entre aspas: tire-as do ficheiro de ambiente",
                "the key is in quotes: take them out of the environment file",
                "la clé est entre guillemets : enlevez-les du fichier d'environnement",
            ],
            Self::SecretEmpty => [
                "a chave está vazia: SVC_WEBHOOK_SECRET não está definido; recuse arrancar sem ele",
                "the key is empty: SVC_WEBHOOK_SECRET is not set there; refuse to start without it",
                "la clé est vide : SVC_WEBHOOK_SECRET n'est pas défini ; refusez de démarrer sans lui",
            ],
            Self::Sha1 => [
                "é HMAC-SHA1: use HMAC-SHA256",
                "it is HMAC-SHA1: use HMAC-SHA256",
                "c'est HMAC-SHA1 : prenez HMAC-SHA256",
            ],
            Self::Sha512 => [
                "é HMAC-SHA512: use HMAC-SHA256",
                "it is HMAC-SHA512: use HMAC-SHA256",
                "c'est HMAC-SHA512 : prenez HMAC-SHA256",
            ],
            Self::NotHmac => [
                "é um SHA-256 simples, não um HMAC: use a função HMAC da sua biblioteca",
                "it is a plain SHA-256, not an HMAC: use the HMAC function of your library",
                "c'est un simple SHA-256, pas un HMAC : prenez la fonction HMAC de votre bibliothèque",
            ],
        }
    }
}

impl Style {
    fn text(self) -> Text {
        match self {
            Self::Compact | Self::Typed => [
                "foi calculada sobre o JSON escrito de novo sem espaços (como JSON.stringify): use os bytes tal como chegaram",
                "it is computed over the JSON written again without spaces (as JSON.stringify does): use the bytes as they came",
                "elle est calculée sur le JSON réécrit sans espaces (comme JSON.stringify) : prenez les octets tels quels",
            ],
            Self::Spaced => [
                "foi calculada sobre o JSON escrito de novo com espaços (como json.dumps do Python): use os bytes tal como chegaram",
                "it is computed over the JSON written again with spaces (as Python's json.dumps does): use the bytes as they came",
                "elle est calculée sur le JSON réécrit avec espaces (comme json.dumps de Python) : prenez les octets tels quels",
            ],
            Self::Sorted | Self::SortedSpaced => [
                "foi calculada sobre o JSON escrito de novo com as chaves por ordem: use os bytes tal como chegaram",
                "it is computed over the JSON written again with its keys sorted: use the bytes as they came",
                "elle est calculée sur le JSON réécrit avec les clés triées : prenez les octets tels quels",
            ],
            Self::Indented2 | Self::Indented4 => [
                "foi calculada sobre o JSON escrito de novo em várias linhas: use os bytes tal como chegaram",
                "it is computed over the JSON written again on several lines: use the bytes as they came",
                "elle est calculée sur le JSON réécrit sur plusieurs lignes : prenez les octets tels quels",
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_c3ZjLWRvY3MtZXhhbXBsZS1rZXktMzItYnl0ZXMhISE=";
    const BODY: &[u8] = br#"{"event":"payment","data":{"amount":15000}}"#;

    #[test]
    fn the_right_digest_is_the_services() {
        let signed = svc_service::domain::sign(SECRET, BODY);
        assert_eq!(hex::encode(right(SECRET, BODY)), signed);
    }

    #[test]
    fn no_two_forms_that_read_alike_are_the_right_one() {
        let right = right(SECRET, BODY);
        let wrong = wrong(SECRET, BODY);
        assert!(wrong.len() > 15, "{}", wrong.len());
        assert!(wrong.iter().all(|(_, digest)| *digest != right));
        // The body is compact already: writing it so again is no fault.
        assert!(!wrong.iter().any(|(form, _)| *form == Form::Reencoded(Style::Compact)));
    }

    #[test]
    fn a_digest_is_read_as_it_was_written() {
        let digest = right(SECRET, BODY);
        for notation in [Notation::Hex].into_iter().chain(Notation::WRONG) {
            let read = Notation::read(&notation.write(&digest));
            assert_eq!(read, Some((notation, digest.clone())), "{notation:?}");
        }
        assert_eq!(Notation::read("not a digest!"), None);
    }
}
