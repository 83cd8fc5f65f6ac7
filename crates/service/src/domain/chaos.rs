//! How a sandbox disturbs the webhooks of an application, the same way every time. Pure.

use aws_lc_rs::digest;
use jiff::{SignedDuration, Timestamp};

use super::after;

/// What a merchant asked to be tested with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chaos {
    /// Every event comes twice.
    pub duplicate: bool,
    /// After the last event of an order, the event before it is sent once more.
    pub reorder: bool,
    /// The first attempt waits so long.
    pub delay_ms: i64,
    /// How many attempts of every event are lost, counted from the first.
    pub drop_first: i64,
    /// Of a thousand attempts, so many more never arrive.
    pub failures_per_mille: i64,
    /// Decides which attempts are lost.
    pub seed: i64,
}

/// What happens to one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    None,
    Delayed { until: Timestamp },
    Lost,
}

impl Chaos {
    pub const DELAY_MS_MAX: i64 = 3_600_000;
    pub const DROP_FIRST_MAX: i64 = 20;
    pub const PER_MILLE: i64 = 1_000;

    pub fn is_calm(&self) -> bool {
        *self == Self { seed: self.seed, ..Self::default() }
    }

    /// `what` names the event by what the merchant gave us, so that a test that is run again loses
    /// the same attempts.
    pub fn disturb(
        &self,
        what: &str,
        attempt: u32,
        created_at: Timestamp,
        now: Timestamp,
    ) -> Disturbance {
        let delay = SignedDuration::from_millis(self.delay_ms);
        let until = after(created_at, delay);
        if now < until {
            return Disturbance::Delayed { until };
        }
        // A delayed event has used up an attempt by waiting, unless its first came after that.
        let made = i64::from(attempt) - i64::from(self.delay_ms > 0 && attempt > 1);
        if made <= self.drop_first || self.draw(what, attempt) < self.failures_per_mille {
            return Disturbance::Lost;
        }
        Disturbance::None
    }

    fn draw(&self, what: &str, attempt: u32) -> i64 {
        let text = format!("{}\n{what}\n{attempt}", self.seed);
        let hash = digest::digest(&digest::SHA256, text.as_bytes());
        let first = hash.as_ref().first_chunk::<4>().copied().unwrap_or_default();
        i64::from(u32::from_be_bytes(first)) % Self::PER_MILLE
    }

    /// As one column holds it.
    pub fn to_text(&self) -> String {
        let Self { duplicate, reorder, delay_ms, drop_first, failures_per_mille, seed } = self;
        let (duplicate, reorder) = (i64::from(*duplicate), i64::from(*reorder));
        format!("{duplicate} {reorder} {delay_ms} {drop_first} {failures_per_mille} {seed}")
    }

    pub fn from_text(text: &str) -> Option<Self> {
        let numbers: Vec<i64> = text.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [duplicate, reorder, delay_ms, drop_first, failures_per_mille, seed] =
            *numbers.first_chunk()?;
        Some(Self {
            duplicate: duplicate != 0,
            reorder: reorder != 0,
            delay_ms,
            drop_first,
            failures_per_mille,
            seed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(1_800_000_000_000 + ms).unwrap()
    }

    #[test]
    fn the_same_seed_loses_the_same_attempts() {
        let lost = |seed| -> Vec<bool> {
            let chaos = Chaos { failures_per_mille: 400, seed, ..Chaos::default() };
            (0..200)
                .map(|n| chaos.disturb(&format!("order_{n} CON"), 1, at(0), at(0)))
                .map(|disturbance| disturbance == Disturbance::Lost)
                .collect()
        };
        assert_eq!(lost(7), lost(7));
        assert_ne!(lost(7), lost(8));
        let count = lost(7).iter().filter(|lost| **lost).count();
        assert!((50..110).contains(&count), "{count} of 200 at 40 %");
    }

    #[test]
    fn a_delay_comes_first_and_then_the_losses() {
        let chaos = Chaos { delay_ms: 500, drop_first: 2, ..Chaos::default() };
        let at_attempt = |attempt, now| chaos.disturb("a", attempt, at(0), at(now));
        assert_eq!(at_attempt(1, 0), Disturbance::Delayed { until: at(500) });
        assert_eq!(at_attempt(2, 500), Disturbance::Lost);
        assert_eq!(at_attempt(3, 900), Disturbance::Lost);
        assert_eq!(at_attempt(4, 900), Disturbance::None);
    }

    #[test]
    fn it_reads_back() {
        let chaos = Chaos { duplicate: true, seed: -3, delay_ms: 10, ..Chaos::default() };
        assert_eq!(Chaos::from_text(&chaos.to_text()), Some(chaos));
        assert_eq!(Chaos::from_text("1 2"), None);
    }
}
