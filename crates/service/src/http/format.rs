//! Money and time as payers write them. `Intl` knows Brazil and Portugal, not the shops of Luanda.

use fast_qr::QRBuilder;
use jiff::Timestamp;

use super::Language;
use crate::domain::{Kwanza, luanda};

/// `15.000,00 Kz`, `Kz 15,000`, `15 000 Kz`.
pub(crate) fn money(amount: Kwanza, language: Language) -> String {
    centimos(amount.get().saturating_mul(100), language)
}

/// The same for sums, and for what rails report to the cent.
pub(crate) fn centimos(centimos: i64, language: Language) -> String {
    let (whole, cents) = (centimos / 100, centimos % 100);
    let grouped = |separator: char| {
        let digits = whole.to_string();
        let mut out = String::new();
        for (place, digit) in digits.chars().enumerate() {
            if place > 0 && (digits.len() - place).is_multiple_of(3) {
                out.push(separator);
            }
            out.push(digit);
        }
        out
    };
    match (language, cents) {
        (Language::Pt, _) => format!("{},{cents:02}\u{a0}Kz", grouped('.')),
        (Language::En, 0) => format!("Kz\u{a0}{}", grouped(',')),
        (Language::En, _) => format!("Kz\u{a0}{}.{cents:02}", grouped(',')),
        (Language::Fr, 0) => format!("{}\u{a0}Kz", grouped('\u{202f}')),
        (Language::Fr, _) => format!("{},{cents:02}\u{a0}Kz", grouped('\u{202f}')),
    }
}

/// A moment as payers and operators read it.
pub(crate) fn luanda_time(at: Timestamp, language: Language) -> String {
    let pattern = match language {
        Language::Pt | Language::Fr => "%d/%m/%Y %H:%M",
        Language::En => "%-d %b %Y, %H:%M",
    };
    luanda(at).strftime(pattern).to_string()
}

/// A QR code as one path; the colours are the style's.
pub(crate) fn qr(text: &str) -> String {
    const QUIET: usize = 2;
    let Ok(code) = QRBuilder::new(text).build() else { return String::new() };
    let mut path = String::new();
    for y in 0..code.size {
        for x in 0..code.size {
            if code[y][x].value() {
                path.push_str(&format!("M{} {}h1v1h-1z", x + QUIET, y + QUIET));
            }
        }
    }
    let side = code.size + 2 * QUIET;
    format!(
        "<svg viewBox=\"0 0 {side} {side}\" shape-rendering=\"crispEdges\" aria-hidden=\"true\">\
         <path d=\"{path}\"/></svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_written_as_in_luanda() {
        let written = |amount, language| money(Kwanza::parse(amount).unwrap(), language);
        assert_eq!(written(15_000, Language::Pt), "15.000,00\u{a0}Kz");
        assert_eq!(written(15_000, Language::En), "Kz\u{a0}15,000");
        assert_eq!(written(1_500_000, Language::Fr), "1\u{202f}500\u{202f}000\u{a0}Kz");
        assert_eq!(written(999, Language::Pt), "999,00\u{a0}Kz");
        assert_eq!(centimos(0, Language::Pt), "0,00\u{a0}Kz");
        assert_eq!(centimos(900_250, Language::Pt), "9.002,50\u{a0}Kz");
        assert_eq!(centimos(900_205, Language::En), "Kz\u{a0}9,002.05");
        assert_eq!(centimos(900_250, Language::Fr), "9\u{202f}002,50\u{a0}Kz");
    }

    #[test]
    fn time_is_that_of_luanda() {
        let at: Timestamp = "2026-12-31T23:30:00Z".parse().unwrap();
        assert_eq!(luanda_time(at, Language::Pt), "01/01/2027 00:30");
        assert_eq!(luanda_time(at, Language::En), "1 Jan 2027, 00:30");
    }

    #[test]
    fn a_code_is_a_picture_without_colours_or_scripts() {
        let svg = qr("https://example.ao/w/ABCD");
        assert!(svg.starts_with("<svg viewBox="));
        assert!(!svg.contains("style") && !svg.contains("fill"));
    }
}
