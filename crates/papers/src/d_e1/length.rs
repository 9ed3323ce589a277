//! The bit lengths of all identifiers of a namespace.

use base::{FileId, TooLong};

use super::namespace::{Namespace, Order};

/// How many identifiers have each length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Indexed by bits.
    counts: Vec<u64>,
}

impl Lengths {
    fn new() -> Lengths {
        Lengths { counts: Vec::new() }
    }

    fn add(&mut self, bits: usize) {
        if bits >= self.counts.len() {
            self.counts.resize(bits + 1, 0);
        }
        self.counts[bits] += 1;
    }

    /// The lengths of the production identifiers of all files and directories but the root.
    pub fn measure(namespace: &Namespace, order: Order) -> Result<Lengths, TooLong> {
        let mut lengths = Lengths::new();
        let mut ids = vec![FileId::ROOT; namespace.dir_count()];
        for dir in 0..namespace.dir_count() {
            let id = std::mem::replace(&mut ids[dir], FileId::ROOT);
            for (number, child) in namespace.numbered(dir, order) {
                let child_id = id.child(number)?;
                lengths.add(child_id.bit_len());
                if let Some(child) = child.dir() {
                    ids[child] = child_id;
                }
            }
        }
        Ok(lengths)
    }

    /// The same by the code's definition, 2 * floor(log2 n) + 1 bits for each integer: the
    /// independent count against which the production identifiers are checked.
    pub fn by_formula(namespace: &Namespace, order: Order) -> Lengths {
        let mut lengths = Lengths::new();
        let mut bits = vec![0; namespace.dir_count()];
        for dir in 0..namespace.dir_count() {
            for (number, child) in namespace.numbered(dir, order) {
                let child_bits = bits[dir] + 2 * number.ilog2() as usize + 1;
                lengths.add(child_bits);
                if let Some(child) = child.dir() {
                    bits[child] = child_bits;
                }
            }
        }
        lengths
    }

    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The mean length in bits.
    pub fn mean(&self) -> f64 {
        let bits: u64 = (0..).zip(&self.counts).map(|(bits, count)| bits * count).sum();
        bits as f64 / self.total() as f64
    }

    /// The least length that this share of the identifiers does not exceed; zero if there are
    /// none.
    pub fn percentile(&self, percent: u64) -> usize {
        let mut below = 0;
        let reached = |&count: &u64| {
            below += count;
            below * 100 >= self.total() * percent
        };
        self.counts.iter().position(reached).unwrap_or(0)
    }

    /// The length of the longest.
    pub fn max(&self) -> usize {
        self.counts.len().saturating_sub(1)
    }

    /// The share of identifiers of at most this many bits.
    pub fn share_within(&self, bits: usize) -> f64 {
        self.counts.iter().take(bits + 1).sum::<u64>() as f64 / self.total() as f64
    }
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::super::{desktop::Model, namespace::Builder};
    use super::*;

    #[test]
    fn production_identifiers_are_as_long_as_the_formula_says() {
        let model = Model { dirs: 2_000, offset: 2.36, files_max: 5_000, parents_max: usize::MAX };
        let namespace = model.generate(&mut Rng::new(1));
        for (order, name) in Order::ALL {
            let measured = Lengths::measure(&namespace, order).unwrap();
            assert_eq!(measured, Lengths::by_formula(&namespace, order), "{name}");
            assert_eq!(measured.total(), (namespace.file_count() + 1_999) as u64);
        }
    }

    #[test]
    fn a_small_tree_counted_by_hand() {
        let mut builder = Builder::new();
        (0..3).for_each(|_| builder.file(0)); // 1, 2, 3: one, three and three bits
        let dir = builder.dir(0); // 4: five bits
        builder.file(dir); // 4.1: six bits
        let namespace = builder.finish();
        let lengths = Lengths::measure(&namespace, Order::Name).unwrap();
        assert_eq!(lengths.counts, [0, 1, 0, 2, 0, 1, 1]);
        assert_eq!((lengths.mean(), lengths.max()), (18.0 / 5.0, 6));
        assert_eq!([20, 21, 60, 61, 99, 100].map(|p| lengths.percentile(p)), [1, 3, 3, 5, 6, 6]);
        assert_eq!(
            [0, 1, 3, 4, 48].map(|bits| lengths.share_within(bits)),
            [0.0, 0.2, 0.6, 0.6, 1.0]
        );
    }
}
