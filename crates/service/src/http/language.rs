//! The reader's language: `Accept-Language`, or Portuguese (spec 2.2).

use axum::http::{HeaderMap, HeaderValue, header::ACCEPT_LANGUAGE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Pt,
    En,
    Fr,
}

/// What a part of the service says, in three languages side by side, so that none falls behind. One line a
/// text: its name, then Portuguese, English, French.
macro_rules! texts {
    ($($name:ident: $pt:literal, $en:literal, $fr:literal;)*) => {
        pub(super) struct Texts { $(pub $name: &'static str,)* }
        static PT: Texts = Texts { $($name: $pt,)* };
        static EN: Texts = Texts { $($name: $en,)* };
        static FR: Texts = Texts { $($name: $fr,)* };

        impl Texts {
            pub(super) fn of(language: $crate::http::Language) -> &'static Self {
                match language {
                    $crate::http::Language::Pt => &PT,
                    $crate::http::Language::En => &EN,
                    $crate::http::Language::Fr => &FR,
                }
            }
        }
    };
}
pub(crate) use texts;

/// A longer header is nobody's list of languages.
const HEADER_BYTES_MAX: usize = 1_024;

impl Language {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Pt => "pt",
            Self::En => "en",
            Self::Fr => "fr",
        }
    }

    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self::wanted(headers.get(ACCEPT_LANGUAGE))
    }

    /// By the value of `Accept-Language`.
    pub(crate) fn wanted(header: Option<&HeaderValue>) -> Self {
        let wanted = header.and_then(|value| value.to_str().ok());
        wanted.filter(|text| text.len() <= HEADER_BYTES_MAX).map_or(Self::Pt, Self::preferred)
    }

    /// One of the codes, as an option of the SDK gives it.
    pub(crate) fn from_code(code: &str) -> Option<Self> {
        [Self::Pt, Self::En, Self::Fr].into_iter().find(|language| language.code() == code)
    }

    fn preferred(wanted: &str) -> Self {
        accept_language::parse_with_quality(wanted)
            .into_iter()
            .filter(|(_, quality)| *quality > 0.0)
            .find_map(|(tag, _)| Self::from_tag(&tag))
            .unwrap_or(Self::Pt)
    }

    /// `pt-AO`, `pt-PT` and `pt` are all Portuguese.
    pub(super) fn from_tag(tag: &str) -> Option<Self> {
        Self::from_code(&tag.split('-').next()?.to_ascii_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_language_we_speak_is_chosen() {
        let cases = [
            ("pt", Language::Pt),
            ("pt-AO", Language::Pt),
            ("EN-gb", Language::En),
            ("fr;q=0.9,en", Language::En),
            ("fr;q=0.9, en;q=0.5", Language::Fr),
            ("de, fr;q=0.2", Language::Fr),
            ("en;q=0, fr;q=0.1", Language::Fr),
            ("xx", Language::Pt),
            ("*", Language::Pt),
            ("", Language::Pt),
            (";;;,,q=", Language::Pt),
        ];
        for (header, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_LANGUAGE, header.parse().unwrap());
            assert_eq!(Language::of(&headers), expected, "{header}");
        }
        assert_eq!(Language::of(&HeaderMap::new()), Language::Pt);
    }
}
