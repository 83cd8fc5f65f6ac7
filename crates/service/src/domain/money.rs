//! Money: whole kwanza, never a fraction, never a float (spec 2.2).

/// An amount a payer owes: an integer number of kwanza between 1 and `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kwanza(i64);

impl Kwanza {
    /// Below 2^53, so that every JSON reader in the field holds it exactly.
    pub const MAX: i64 = 999_999_999_999;

    pub fn parse(amount: i64) -> Result<Self, MoneyIssue> {
        in_range(amount, Self::MAX).map(Self)
    }

    pub fn get(self) -> i64 {
        self.0
    }
}

/// An amount as rails report it: centimos, because a rail may pay a fraction that we never ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Centimos(i64);

impl Centimos {
    const PER_KWANZA: i64 = 100;

    pub fn new(centimos: i64) -> Self {
        Self(centimos)
    }

    /// `15000`, `15000.5` or `15000.00`, exactly; rails send it as a text or as a number.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        // A third decimal that is not zero is no amount of money.
        let cents = part.get(..2).unwrap_or(part);
        let rest_is_zero = part[cents.len()..].bytes().all(|b| b == b'0');
        if !digits(whole) || !digits(part) || !rest_is_zero {
            return None;
        }
        let cents: i64 = format!("{cents:0<2}").parse().ok()?;
        let whole: i64 = whole.parse().ok()?;
        whole.checked_mul(Self::PER_KWANZA)?.checked_add(cents).map(Self)
    }

    /// As people write it, or as our pages show it: `6500`, `6.500,00 Kz`, `Kz 6,500`, `6 500`. A point or
    /// a comma before exactly three digits parts thousands.
    pub fn typed(text: &str) -> Option<Self> {
        let text: String = text.replace("Kz", "").split_whitespace().collect();
        let cut = text.rfind(['.', ',']).filter(|at| text.len() - at != ",000".len());
        let (whole, part) = cut.map_or((&*text, "0"), |at| (&text[..at], &text[at + 1..]));
        let mut groups = whole.split(['.', ',']);
        let first = groups.next().unwrap_or_default().len();
        let is_grouped =
            groups.clone().all(|group| group.len() == 3) && (groups.next().is_none() || first < 4);
        let whole = whole.replace(['.', ','], "");
        Self::parse(&format!("{whole}.{part}")).filter(|_| is_grouped)
    }

    pub fn get(self) -> i64 {
        self.0
    }

    /// Without a remainder.
    pub fn whole_kwanza(self) -> Option<i64> {
        (self.0 % Self::PER_KWANZA == 0).then_some(self.0 / Self::PER_KWANZA)
    }
}

impl From<Kwanza> for Centimos {
    fn from(amount: Kwanza) -> Self {
        Self(amount.0 * Self::PER_KWANZA)
    }
}

impl std::fmt::Display for Centimos {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:02}", self.0 / Self::PER_KWANZA, self.0 % Self::PER_KWANZA)
    }
}

/// How many things the label stands for. It never multiplies the amount, which is the total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity(i64);

impl Quantity {
    pub const MAX: i64 = 1_000_000;

    pub fn parse(quantity: i64) -> Result<Self, MoneyIssue> {
        in_range(quantity, Self::MAX).map(Self)
    }

    pub fn get(self) -> i64 {
        self.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneyIssue {
    #[error("must be at least 1")]
    TooSmall,
    #[error("must be at most {max}")]
    TooLarge { max: i64 },
}

fn in_range(value: i64, max: i64) -> Result<i64, MoneyIssue> {
    match value {
        ..=0 => Err(MoneyIssue::TooSmall),
        _ if value > max => Err(MoneyIssue::TooLarge { max }),
        _ => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rail_paid_is_read_exactly() {
        for (text, centimos) in
            [("15000", 1_500_000), ("15000.00", 1_500_000), ("15000.5", 1_500_050), ("0.010", 1)]
        {
            assert_eq!(Centimos::parse(text), Some(Centimos(centimos)), "{text}");
        }
        for text in
            ["", ".", "1.", ".5", "-1", "1e3", "1,5", "1.001", "1.0é", "99999999999999999999"]
        {
            assert_eq!(Centimos::parse(text), None, "{text}");
        }
        assert_eq!(Centimos(1_500_005).to_string(), "15000.05");
    }

    #[test]
    fn money_is_read_as_people_write_it() {
        let owed = Some(Centimos::new(650_000));
        let plain =
            ["6500", " 6500.00", "6500,00", "6.500", "6,500", "6.500,00", "6,500.00", "6 500,00"];
        let shown = ["6.500,00\u{a0}Kz", "Kz\u{a0}6,500", "6\u{202f}500\u{a0}Kz"];
        for typed in plain.into_iter().chain(shown) {
            assert_eq!(Centimos::typed(typed), owed, "{typed}");
        }
        assert_eq!(Centimos::typed("6.5"), Some(Centimos::new(650)));
        for wrong in
            ["", "Kz", "-6500", "6500,001", "6500,0010", "65,00.00", "6.50.000", "seis mil"]
        {
            assert_eq!(Centimos::typed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_positive_amounts_up_to_the_limit_are_money() {
        let cases = [
            (i64::MIN, Err(MoneyIssue::TooSmall)),
            (-1, Err(MoneyIssue::TooSmall)),
            (0, Err(MoneyIssue::TooSmall)),
            (1, Ok(1)),
            (15_000, Ok(15_000)),
            (Kwanza::MAX, Ok(Kwanza::MAX)),
            (Kwanza::MAX + 1, Err(MoneyIssue::TooLarge { max: Kwanza::MAX })),
            (9_007_199_254_740_993, Err(MoneyIssue::TooLarge { max: Kwanza::MAX })),
        ];
        for (given, expected) in cases {
            assert_eq!(Kwanza::parse(given).map(Kwanza::get), expected, "{given}");
        }
    }

    #[test]
    fn a_quantity_stops_at_a_million() {
        assert_eq!(Quantity::parse(1_000_000).map(Quantity::get), Ok(1_000_000));
        assert_eq!(Quantity::parse(1_000_001), Err(MoneyIssue::TooLarge { max: Quantity::MAX }));
        assert_eq!(Quantity::parse(0), Err(MoneyIssue::TooSmall));
    }
}
