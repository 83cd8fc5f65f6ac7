//! The language of what a person reads: by `--lang`, else by the locale, else English.

/// The three languages of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Lang {
    Pt,
    En,
    Fr,
}

/// One text in Portuguese, English and French.
pub(crate) type Text = [&'static str; 3];

impl Lang {
    /// What was asked for, or what the terminal speaks.
    pub(crate) fn pick(given: Option<Self>) -> Self {
        let locale = || {
            // POSIX: the first that is set and not empty decides.
            let names = ["LC_ALL", "LC_MESSAGES", "LANG"];
            names.iter().filter_map(|name| std::env::var(name).ok()).find(|text| !text.is_empty())
        };
        given.unwrap_or_else(|| Self::of_locale(&locale().unwrap_or_default()))
    }

    fn of_locale(locale: &str) -> Self {
        match locale.get(..2) {
            Some("pt") => Self::Pt,
            Some("fr") => Self::Fr,
            _ => Self::En,
        }
    }

    pub(crate) fn of(self, [pt, en, fr]: Text) -> &'static str {
        match self {
            Self::Pt => pt,
            Self::En => en,
            Self::Fr => fr,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_names_a_language_and_any_other_means_english() {
        for (locale, lang) in [
            ("pt_AO.UTF-8", Lang::Pt),
            ("pt", Lang::Pt),
            ("fr_FR", Lang::Fr),
            ("en_US.UTF-8", Lang::En),
            ("C", Lang::En),
            ("", Lang::En),
            ("ção", Lang::En),
        ] {
            assert_eq!(Lang::of_locale(locale), lang, "{locale}");
        }
    }
}
