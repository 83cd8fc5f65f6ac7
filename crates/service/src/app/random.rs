//! The only place that rolls dice.

use std::sync::{Mutex, PoisonError};

use aws_lc_rs::rand::{SecureRandom, SystemRandom};

/// Drawn from the system's generator a page at a time: it charges per call, not per byte.
pub struct Random(Mutex<Pool>);

const POOL_BYTES: usize = 4_096;

struct Pool {
    source: SystemRandom,
    bytes: [u8; POOL_BYTES],
    used: usize,
}

impl Random {
    pub fn system() -> Self {
        Self(Mutex::new(Pool {
            source: SystemRandom::new(),
            bytes: [0; POOL_BYTES],
            used: POOL_BYTES,
        }))
    }

    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        const { assert!(N <= POOL_BYTES) };
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.used + N > POOL_BYTES {
            let Pool { source, bytes, used } = &mut *pool;
            source.fill(bytes).expect("the system gives random bytes once it has started");
            *used = 0;
        }
        let taken = pool.used..pool.used + N;
        pool.used += N;
        let mut out = [0; N];
        out.copy_from_slice(&pool.bytes[taken.clone()]);
        // What became a secret must not linger here.
        pool.bytes[taken].fill(0);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_are_given_twice() {
        let random = Random::system();
        let given: std::collections::HashSet<_> =
            (0..2_000).map(|_| random.bytes::<10>()).collect();
        assert_eq!(given.len(), 2_000);
        assert!(!given.contains(&[0; 10]));
    }
}
