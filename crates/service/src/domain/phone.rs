//! A mobile number of Angola: nine digits that begin with 9.

#[derive(Clone, PartialEq, Eq)]
pub struct PhoneNumber(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be nine digits that begin with 9")]
pub struct NotAPhone;

impl PhoneNumber {
    const DIGITS: usize = 9;
    /// Longer than any way people write one.
    const CHARS_MAX: usize = 32;
    /// What address books put into a number they copy: spaces and hyphens that do not break, and marks that it
    /// runs from left to right. Nothing that turns it round.
    const UNSEEN: [char; 10] = [
        '\u{a0}', '\u{2007}', '\u{202f}', '\u{2011}', '\u{200e}', '\u{202a}', '\u{202c}',
        '\u{2066}', '\u{2068}', '\u{2069}',
    ];

    /// As people write it: with spaces, with `+244` or `00244` before it, or without.
    pub fn parse(text: &str) -> Result<Self, NotAPhone> {
        let text = text.replace(Self::UNSEEN, "");
        let written = text.len() <= Self::CHARS_MAX
            && text.chars().all(|c| c.is_ascii_digit() || " +-.()".contains(c));
        if !written {
            return Err(NotAPhone);
        }
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        let digits = digits.strip_prefix("00").unwrap_or(&digits);
        let national = match digits.strip_prefix("244") {
            Some(rest) if rest.len() == Self::DIGITS => rest,
            _ => digits,
        };
        // The second digit tells the operator, and operators are added: it is not checked.
        if national.len() == Self::DIGITS && national.starts_with('9') {
            Ok(Self(national.to_owned()))
        } else {
            Err(NotAPhone)
        }
    }

    pub fn national(&self) -> &str {
        &self.0
    }

    pub fn e164(&self) -> String {
        format!("+244{}", self.0)
    }

    /// What a page or a log may show.
    pub fn masked(&self) -> String {
        format!("9•• ••• {}", &self.0[Self::DIGITS - 3..])
    }
}

/// A phone number is personal data: a debug print shows as much as a page does.
impl std::fmt::Debug for PhoneNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.masked())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_spelling_is_the_same_number() {
        for text in
            ["923456678", "923 456 678", "+244 923-456-678", "00244923456678", "(923)456678"]
                .into_iter()
                .chain([
                    "\u{202a}+244\u{a0}923\u{2011}456\u{2011}678\u{202c}",
                    "\u{2066}923\u{202f}456678\u{2069}",
                ])
        {
            let phone = PhoneNumber::parse(text).unwrap();
            assert_eq!(phone.e164(), "+244923456678", "{text}");
            assert_eq!(phone.masked(), "9•• ••• 678");
            assert_eq!(format!("{phone:?}"), "9•• ••• 678");
        }
        // 244 may also be the beginning of a national number's rest, never of one.
        assert_eq!(PhoneNumber::parse("924412345").unwrap().national(), "924412345");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "9",
            "92345667",
            "9234566789",
            "823456678",
            "+244 92345667",
            "+351923456678",
            "92345667a",
            "٩٢٣٤٥٦٦٧٨",
            "９２３４５６６７８",
            "923456678\n",
            "923456678; drop table",
        ] {
            assert_eq!(PhoneNumber::parse(text), Err(NotAPhone), "{text}");
        }
    }
}
