//! The words in braces that the data files use.
//!
//! | word | stands for |
//! |---|---|
//! | `{clientId}` `{clientSecret}` `{basic}` | the partner's credentials; `{basic}` is the base64 of both |
//! | `{applicationUUID}` `{publishableKey}` | its application |
//! | `{token}` `{claims}` | a valid access token, and its middle part |
//! | `{uuid}` | a new UUID each time |
//! | `{value}` | the one of `values` this case is about |
//! | `{order}` | the right order with the case's changes |
//! | `{repeat:a:129}` | 129 times `a` |
//! | `{pad:TEXT:65537}` | TEXT and spaces, 65,537 bytes in all |
//! | `{byte:ff}` | one byte |
//! | `{base64:TEXT}` `{base64url:TEXT}` `{upper:TEXT}` `{utf16:TEXT}` `{chunked:TEXT}` | TEXT in that form |
//!
//! A brace that no lower-case letter follows is a brace. TEXT may hold words itself.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::merchant::fresh_uuid;
use super::running::Credentials;

#[derive(Clone)]
pub(crate) struct Words<'a> {
    pub credentials: &'a Credentials,
    pub token: &'a str,
    pub value: &'a str,
    pub order: &'a [u8],
}

impl Words<'_> {
    pub(crate) fn text(&self, text: &str) -> String {
        String::from_utf8(self.expand(text)).expect("this place holds text, not bytes")
    }

    pub(crate) fn expand(&self, text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = text;
        while let Some(start) = opening(rest) {
            let end = start + closing(&rest[start..]);
            out.extend(rest[..start].bytes());
            out.extend(self.word(&rest[start + 1..end]));
            rest = &rest[end + 1..];
        }
        out.extend(rest.bytes());
        out
    }

    fn word(&self, word: &str) -> Vec<u8> {
        let Credentials { client_id, client_secret, .. } = self.credentials;
        let (name, argument) = word.split_once(':').unwrap_or((word, ""));
        match name {
            "clientId" => client_id.clone().into(),
            "clientSecret" => client_secret.clone().into(),
            "basic" => STANDARD.encode(format!("{client_id}:{client_secret}")).into(),
            "applicationUUID" => self.credentials.application_uuid.clone().into(),
            "publishableKey" => self.credentials.publishable_key.clone().into(),
            "token" => self.token.into(),
            "claims" => self.token.split('.').nth(1).expect("a token has three parts").into(),
            "uuid" => fresh_uuid().into(),
            "value" => self.expand(self.value),
            "order" => self.order.to_vec(),
            "repeat" => {
                let (text, times) = counted(argument);
                self.expand(text).repeat(times)
            }
            "pad" => {
                let (text, bytes) = counted(argument);
                let mut padded = self.expand(text);
                padded.resize(bytes, b' ');
                padded
            }
            "byte" => vec![u8::from_str_radix(argument, 16).expect("two hex digits")],
            "base64" => STANDARD.encode(self.expand(argument)).into(),
            "base64url" => URL_SAFE_NO_PAD.encode(self.expand(argument)).into(),
            "upper" => self.expand(argument).to_ascii_uppercase(),
            "utf16" => self.text(argument).encode_utf16().flat_map(u16::to_le_bytes).collect(),
            "chunked" => {
                let text = self.expand(argument);
                let size = format!("{:x}\r\n", text.len());
                [size.as_bytes(), &text, b"\r\n0\r\n\r\n"].concat()
            }
            unknown => panic!("{{{unknown}}} is no word of the data files"),
        }
    }
}

/// Where the next word begins.
fn opening(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    bytes.windows(2).position(|pair| pair[0] == b'{' && pair[1].is_ascii_lowercase())
}

/// Where the word that begins this text ends; braces inside it come in pairs.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    let end = text.bytes().position(|byte| {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    end.unwrap_or_else(|| panic!("a word is not closed: {text}"))
}

fn counted(argument: &str) -> (&str, usize) {
    let (text, count) = argument.rsplit_once(':').expect("TEXT:COUNT");
    (text, count.parse().expect("a count"))
}
