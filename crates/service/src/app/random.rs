//! The only place that rolls dice.

use aws_lc_rs::rand::{SecureRandom, SystemRandom};

pub struct Random(SystemRandom);

impl Random {
    pub fn system() -> Self {
        Self(SystemRandom::new())
    }

    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill(&mut bytes).expect("the system gives random bytes once it has started");
        bytes
    }
}
