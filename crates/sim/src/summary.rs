//! What a run of many seeds came to.

use base::{Digest, Domain, Duration, Hasher};

use crate::{Counts, Longest, Marks, Outcome, Violation};

const PURPOSE: Domain = Domain::new("simulated worlds v1");

/// Many outcomes in one.
#[derive(Clone)]
pub struct Summary {
    /// How many seeds were run.
    pub seeds: u64,
    /// How long their worlds lasted, in their own time.
    pub simulated: Duration,
    /// How often each kind of thing happened.
    pub counts: Counts,
    /// Which marks were passed.
    pub marks: Marks,
    /// How long things took at the most.
    pub longest: Longest,
    /// The first seed in which something was broken: what, and the digest up to there.
    pub failure: Option<(u64, Violation, Digest)>,
    digests: Hasher,
}

impl Default for Summary {
    fn default() -> Summary {
        Summary {
            seeds: 0,
            simulated: Duration::ZERO,
            counts: Counts::default(),
            marks: Marks::default(),
            longest: Longest::default(),
            failure: None,
            digests: Hasher::new(PURPOSE),
        }
    }
}

impl Summary {
    /// Adds a seed's outcome.
    pub fn add(&mut self, seed: u64, outcome: &Outcome) {
        self.seeds += 1;
        self.simulated += outcome.simulated;
        self.counts.merge(&outcome.counts);
        self.marks.merge(&outcome.marks);
        self.longest.merge(&outcome.longest);
        self.digests.update(outcome.digest.as_bytes());
        if let (None, Some(violation)) = (&self.failure, &outcome.violation) {
            self.failure = Some((seed, violation.clone(), outcome.digest));
        }
    }

    /// Whether nothing was broken.
    pub fn is_clean(&self) -> bool {
        self.failure.is_none()
    }

    /// Everything that happened in all of them, in one number.
    pub fn digest(&self) -> Digest {
        self.digests.finish()
    }
}

#[cfg(test)]
mod tests {
    use base::Instant;

    use super::*;
    use crate::Broken;

    fn outcome(digest: u8, violation: Option<Violation>) -> Outcome {
        Outcome {
            digest: Digest::from_bytes([digest; 32]),
            simulated: Duration::from_secs(60),
            counts: Counts::default(),
            marks: Marks::new(&["rain"]),
            longest: Longest::default(),
            violation,
            trace: Vec::new(),
        }
    }

    #[test]
    fn the_first_failure_is_kept_and_every_seed_counts() {
        let broken = |at| {
            let broken = Broken::new("inv-X1", "it broke");
            Some(Violation { broken, at: Instant::from_secs(at) })
        };
        let mut summary = Summary::default();
        let empty = summary.digest();
        summary.add(7, &outcome(1, None));
        assert!(summary.is_clean() && summary.digest() != empty);
        summary.add(8, &outcome(2, broken(5)));
        summary.add(9, &outcome(3, broken(6)));
        assert_eq!((summary.seeds, summary.simulated), (3, Duration::from_secs(180)));
        let (seed, violation, digest) = summary.failure.unwrap();
        assert_eq!((seed, digest), (8, Digest::from_bytes([2; 32])));
        assert_eq!(violation.to_string(), "inv-X1 at 5s: it broke");
    }
}
