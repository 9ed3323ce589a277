//! How long to wait before a peer that can't be reached is called again.

use std::time::Duration;

use base::{Domain, Hasher, PublicKey, Rng};

const CHANCE: Domain = Domain::new("pauses between calls v1");

/// Pauses that double up to a longest one, each between a half and the whole of that by chance, so that
/// machines which lost each other at one moment do not call at one moment. The chance follows from both keys.
pub(crate) struct Backoff {
    rng: Rng,
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(from: &PublicKey, to: &PublicKey, pause: (Duration, Duration)) -> Backoff {
        let mut hasher = Hasher::new(CHANCE);
        hasher.update(from.as_bytes());
        hasher.update(to.as_bytes());
        let mut seed = [0; 8];
        hasher.fill(&mut seed);
        let rng = Rng::new(u64::from_le_bytes(seed));
        Backoff { rng, first: pause.0, longest: pause.1, failures: 0 }
    }

    /// The peer was reached.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// It was not: how long to wait.
    pub(crate) fn pause(&mut self) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.failures.min(16));
        self.failures += 1;
        doubled.min(self.longest).mul_f64(0.5 + self.rng.unit() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(from: u8, to: u8) -> Vec<u64> {
        let [from, to] = [from, to].map(|byte| PublicKey::from_bytes([byte; 32]));
        let limits = (Duration::from_millis(100), Duration::from_millis(1_000));
        let mut backoff = Backoff::new(&from, &to, limits);
        (0..100).map(|_| backoff.pause().as_millis() as u64).collect()
    }

    #[test]
    fn pauses_double_up_to_the_longest_with_a_chance_that_differs_between_machines() {
        let one = pauses(1, 2);
        assert_eq!(one, pauses(1, 2));
        assert_ne!(one, pauses(2, 1));
        for (index, pause) in one.iter().enumerate() {
            let whole = (100 << index.min(10)).min(1_000);
            assert!((whole / 2..=whole).contains(pause), "{pause} of {whole}");
        }
    }
}
