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
