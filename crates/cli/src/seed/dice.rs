//! Dice that fall the same way for the same number: stories must be repeatable, not secret.

/// SplitMix64, which passes the usual tests and fits on a screen.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(number: u64) -> Self {
        Self(number)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From `low` up to and without `high`.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        let width = u64::try_from(high - low).expect("low is below high");
        low + i64::try_from(self.next() % width).expect("less than the width")
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = self.between(0, i64::try_from(from.len()).expect("a short list"));
        &from[usize::try_from(index).expect("not negative")]
    }

    /// An index, each as likely as its weight says.
    pub(super) fn weighted(&mut self, weights: &[i64]) -> usize {
        let mut rest = self.between(0, weights.iter().sum());
        let falls = |weight: &i64| {
            rest -= weight;
            rest < 0
        };
        weights.iter().position(falls).unwrap_or_default()
    }

    pub(super) fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        let hex = format!("{a:016x}{b:016x}");
        let (variant, rest) = (&hex[17..20], &hex[20..]);
        format!("{}-{}-4{}-8{variant}-{rest}", &hex[..8], &hex[8..12], &hex[13..16])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_falls_the_same_way_and_another_does_not() {
        let throw = |number| {
            let mut dice = Dice::new(number);
            (dice.between(0, 1_000_000), dice.uuid(), dice.weighted(&[1, 1, 1]))
        };
        assert_eq!(throw(7), throw(7));
        assert_ne!(throw(7), throw(8));
    }

    #[test]
    fn weights_and_bounds_are_kept() {
        let mut dice = Dice::new(1);
        for _ in 0..1_000 {
            assert!((3..9).contains(&dice.between(3, 9)));
            assert_ne!(dice.weighted(&[1, 0, 5]), 1);
        }
        assert_eq!(dice.uuid().len(), 36);
    }
}
