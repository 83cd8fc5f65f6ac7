//! Chance that can be repeated.

use svc_service::app::App;

/// SplitMix64: the same seed, the same throws.
#[derive(Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// By `SVC_TEST_SEED`, or by chance; the test that fails tells it.
    #[expect(clippy::print_stderr, reason = "whoever sees this test fail wants to repeat it")]
    pub(crate) fn of_this_run(app: &App) -> Self {
        let seed = std::env::var("SVC_TEST_SEED").map_or_else(
            |_| u64::from_be_bytes(app.random.bytes()),
            |seed| seed.parse().expect("SVC_TEST_SEED is a number"),
        );
        eprintln!("SVC_TEST_SEED={seed}");
        Self(seed)
    }

    /// The same throws in every run: a failure cannot come and go.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Other dice, the same ones for the same name.
    pub(crate) fn named(&self, name: &str) -> Self {
        name.bytes().fold(self.clone(), |dice, byte| {
            let mut next = Self(dice.0 ^ u64::from(byte));
            Self(next.next())
        })
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    /// True in so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
