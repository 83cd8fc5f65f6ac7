//! Arguments as people write them: lengths of time, moments, and texts that say something.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::civil::Date;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use svc_service::app::Clock;
use svc_service::domain::{Author, after, luanda_midnight};
use svc_service::store::Store;

/// Who does something that the history keeps.
#[derive(clap::Args)]
pub(crate) struct By {
    /// Who, for the record: written down as cli/NAME
    #[arg(long, value_name = "NAME", value_parser = name)]
    operator: Option<String>,
}

impl By {
    pub(crate) fn author(&self) -> Author {
        Author::command_line(self.operator.as_deref())
    }
}

fn name(text: &str) -> Result<String, &'static str> {
    const CHARS_MAX: usize = 64;
    let name = not_blank(text)?;
    let fits = name.chars().count() <= CHARS_MAX && !name.chars().any(char::is_control);
    if fits { Ok(name) } else { Err("a name of at most 64 characters, on one line") }
}

/// `90s`, `24h 10s`, `3d` or `2w`: here a day has 24 hours.
pub(crate) fn length(text: &str) -> Result<SignedDuration, String> {
    let example = "write it like 90s, 24h, 3d or 2w";
    let days = SpanRelativeTo::days_are_24_hours();
    let read = text.parse::<Span>().and_then(|span| span.to_duration(days));
    match read {
        Ok(length) if length.is_negative() => Err(format!("it cannot be negative: {example}")),
        Ok(length) => Ok(length),
        Err(_) => Err(example.to_owned()),
    }
}

/// When something was created.
#[derive(clap::Args)]
pub(crate) struct Between {
    /// Created since: a time (2026-11-15T08:00:00Z), a day of Luanda (2026-11-15) or how long ago (2h)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Moment>,
    /// Created before: a time, a day or how long ago
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Moment>,
}

impl Between {
    pub(crate) fn is_always(&self) -> bool {
        self.since.is_none() && self.until.is_none()
    }

    /// From when, and until when, by the clock of what is stored.
    pub(crate) async fn moments(
        &self,
        store: &Store,
    ) -> anyhow::Result<(Option<Timestamp>, Option<Timestamp>)> {
        let now = now(store).await?;
        let at = |moment: Option<Moment>| moment.map(|moment| moment.at(now)).transpose();
        Ok((at(self.since)?, at(self.until)?))
    }
}

/// The time of what is stored: a sandbox may be ahead of the machine.
pub(crate) async fn now(store: &Store) -> anyhow::Result<Timestamp> {
    Ok(after(Clock::system().now(), store.clock_ahead().await?))
}

#[derive(Clone, Copy)]
enum Moment {
    At(Timestamp),
    Ago(SignedDuration),
}

impl Moment {
    fn at(self, now: Timestamp) -> anyhow::Result<Timestamp> {
        match self {
            Self::At(at) => Ok(at),
            Self::Ago(ago) => Ok(now.checked_sub(ago)?),
        }
    }
}

fn moment(text: &str) -> Result<Moment, String> {
    if let Ok(at) = text.parse() {
        return Ok(Moment::At(at));
    }
    if let Some(at) = day(text).ok().and_then(luanda_midnight) {
        return Ok(Moment::At(at));
    }
    let ago = length(text).map(Moment::Ago);
    ago.map_err(|_| {
        "give a time like 2026-11-15T08:00:00Z, a day like 2026-11-15, or 2h".to_owned()
    })
}

/// Of Luanda.
pub(crate) fn day(text: &str) -> Result<Date, &'static str> {
    // Only so: a day with a time is another thing.
    const CHARS: usize = "2026-11-15".len();
    let day = (text.len() == CHARS).then(|| text.parse().ok()).flatten();
    day.ok_or("write a day like 2026-11-15")
}

pub(crate) fn whole(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "write a whole number like 15000, without dots and commas")
}

/// One of these, by its word.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let words = PossibleValuesParser::new(all.iter().map(|one| word(*one)));
    words.map(move |given| *all.iter().find(|one| word(**one) == given).expect("one of them"))
}

/// Without the space around it.
pub(crate) fn not_blank(text: &str) -> Result<String, &'static str> {
    match text.trim() {
        "" => Err("must not be empty"),
        given => Ok(given.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_in_luanda_and_nonsense_is_told_how_to_be_written() {
        let Ok(Moment::At(at)) = moment("2026-11-15") else { panic!("a day is a moment") };
        assert_eq!(at.to_string(), "2026-11-14T23:00:00Z");
        for wrong in ["2026-11-15T08:00", "15-11-2026", "2026-13-01", "yesterday"] {
            assert!(moment(wrong).is_err_and(|told| told.contains("2026-11-15")), "{wrong}");
        }
    }

    #[test]
    fn days_and_weeks_are_lengths_and_the_past_is_none() {
        let hours = |text| length(text).map(|length| length.as_hours());
        assert_eq!(hours("24h"), Ok(24));
        assert_eq!(hours("3d"), Ok(72));
        assert_eq!(hours("2w"), Ok(336));
        for wrong in ["-1h", "1h ago", "soon", "", "12", "1mo"] {
            assert!(hours(wrong).unwrap_err().contains("90s, 24h"), "{wrong}");
        }
    }
}
