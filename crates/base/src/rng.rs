//! Seeded chance: the only randomness that pure code may use, and it is handed in.
//!
//! The generator is xoshiro256++ (Blackman and Vigna), seeded through SplitMix64. It is written out
//! here because pinned tables and failing seeds must mean the same in ten years, whatever a
//! dependency does to its distributions. It is not for keys.

/// A stream of reproducible chance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Rng {
        let mut mix = seed;
        Rng { state: std::array::from_fn(|_| split_mix(&mut mix)) }
    }

    /// An independent stream, for a part that must not shift when another part draws more.
    pub fn fork(&mut self) -> Rng {
        Rng::new(self.next_u64())
    }

    /// 64 fair bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A fair number below `bound`, which must be positive.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing lies below zero");
        // Lemire's method: the high half of a product, redrawn in the short biased stretch.
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// A fair index into a collection of `len` things, which must not be empty.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A fair number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True this often.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// One of these, fairly; they must not be none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Puts these in a fair order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_xoshiro256_plus_plus_as_published() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn a_seed_is_a_stream_for_ever() {
        let mut rng = Rng::new(42);
        assert_eq!(
            [rng.next_u64(), rng.below(1_000), rng.index(7) as u64],
            [15021278609987233951, 318, 6]
        );
    }

    #[test]
    fn draws_below_a_bound_are_fair() {
        let mut rng = Rng::new(1);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[rng.index(7)] += 1;
        }
        assert!(counts.iter().all(|&n| (9_600..10_400).contains(&n)), "{counts:?}");
    }

    #[test]
    fn a_shuffle_loses_nothing_and_moves_something() {
        let mut rng = Rng::new(2);
        let mut items: Vec<u32> = (0..100).collect();
        rng.shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn a_fork_does_not_follow_its_source() {
        let mut rng = Rng::new(3);
        let mut fork = rng.fork();
        assert_ne!(rng.next_u64(), fork.next_u64());
    }
}
