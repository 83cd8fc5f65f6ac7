//! Lengths of time as people write them.

use jiff::{SignedDuration, Span, SpanRelativeTo};

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

#[cfg(test)]
mod tests {
    use super::*;

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
