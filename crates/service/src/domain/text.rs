//! Free text that people will read on a page or in a log, made harmless at the door.

/// What is bought, as the payer sees it: 1–255 characters (spec 4.2 `name`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label(String);

/// The end user's id in the merchant's system: 1–128 characters (spec 4.2 `clientId`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayerId(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextIssue {
    #[error("must not be empty")]
    Empty,
    #[error("must have at most {max} characters")]
    TooLong { max: usize },
    #[error("must not contain control or text-direction characters")]
    Control,
}

impl Label {
    pub const CHARS_MAX: usize = 255;

    pub fn parse(text: impl Into<String>) -> Result<Self, TextIssue> {
        readable(text.into(), Self::CHARS_MAX).map(Self)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PayerId {
    pub const CHARS_MAX: usize = 128;

    pub fn parse(text: impl Into<String>) -> Result<Self, TextIssue> {
        readable(text.into(), Self::CHARS_MAX).map(Self)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn readable(text: String, max: usize) -> Result<String, TextIssue> {
    if text.chars().all(|c| c.is_whitespace() || is_invisible(c)) {
        return Err(TextIssue::Empty);
    }
    // Bytes first: a text of few bytes cannot have too many characters, and most are short.
    if text.len() > max && text.chars().count() > max {
        return Err(TextIssue::TooLong { max });
    }
    if text.chars().any(is_unreadable) {
        return Err(TextIssue::Control);
    }
    Ok(text)
}

/// What nobody sees, although it is no space.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{00AD}' | '\u{115F}' | '\u{1160}' | '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{2800}'
    ) || matches!(c, '\u{3164}' | '\u{FFA0}')
}

/// Control characters break logs; direction overrides make a page show something else than was stored.
fn is_unreadable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{2028}' | '\u{2029}')
        || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn labels_keep_accents_and_emoji_and_refuse_what_deceives() {
        for good in ["Café", "Bolo de aniversário 🎂", "<script>alert(1)</script>", "{{7*7}}"] {
            assert_eq!(Label::parse(good).map(|l| l.as_str().to_owned()), Ok(good.to_owned()));
        }
        assert_eq!(Label::parse(""), Err(TextIssue::Empty));
        for unseen in ["  ", "\u{200B}", "\u{2800} \u{3164}", "\u{00AD}"] {
            assert_eq!(Label::parse(unseen), Err(TextIssue::Empty), "{unseen:?}");
        }
        assert!(Label::parse("👩\u{200D}🍳").is_ok(), "within a name it joins what is seen");
        for bad in ["a\u{0}b", "a\r\nb", "a\tb", "abc\u{202E}cod", "\u{2066}x", "a\u{85}b"] {
            assert_eq!(Label::parse(bad), Err(TextIssue::Control), "{bad:?}");
        }
    }

    #[test]
    fn length_is_counted_in_characters_not_bytes() {
        assert!(Label::parse("é".repeat(255)).is_ok());
        assert_eq!(Label::parse("é".repeat(256)), Err(TextIssue::TooLong { max: 255 }));
        assert!(PayerId::parse("x".repeat(128)).is_ok());
        assert_eq!(PayerId::parse("x".repeat(129)), Err(TextIssue::TooLong { max: 128 }));
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_kept_unchanged(text in "\\PC{0,300}") {
            if let Ok(label) = Label::parse(text.clone()) {
                prop_assert_eq!(label.as_str(), text.as_str());
                prop_assert!(text.chars().count() <= Label::CHARS_MAX);
            }
        }
    }
}
