//! How long things took at the most.

use base::Duration;

/// Named things and the longest that each took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Longest(Vec<(&'static str, Duration)>);

impl Longest {
    /// It took this long once.
    pub fn note(&mut self, name: &'static str, took: Duration) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, longest)) => *longest = took.max(*longest),
            None => self.0.push((name, took)),
        }
    }

    /// Adds what another run saw.
    pub fn merge(&mut self, other: &Longest) {
        for &(name, took) in &other.0 {
            self.note(name, took);
        }
    }

    /// Each and how long it took, in the order in which they came up.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_the_longest_is_kept() {
        let (mut one, mut other) = (Longest::default(), Longest::default());
        one.note("rain", Duration::from_secs(3));
        one.note("rain", Duration::from_secs(2));
        other.note("sun", Duration::from_secs(1));
        other.note("rain", Duration::from_secs(5));
        one.merge(&other);
        let seconds: Vec<_> = one.iter().map(|(name, took)| (name, took.as_secs())).collect();
        assert_eq!(seconds, [("rain", 5), ("sun", 1)]);
    }
}
