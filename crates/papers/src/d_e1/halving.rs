//! The control: identifiers of a fixed size, handed out by greedy halving without foresight.
//!
//! A directory owns a region of the number space. Its files take numbers from the low end. Each new
//! subdirectory takes the upper half of what is left and its own number from there. The paper does
//! not say what happens at the edge; our reading: a subdirectory needs two free numbers to get a
//! region, else it takes a single number like a file and owns an empty region. What finds no number
//! at home takes one of the nearest ancestor that has one (it has spilled); if there is none it stays
//! without. The tree is made depth first.

use super::namespace::{Namespace, Order};

/// What became of the files and directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Have a number of their directory's region.
    pub inside: u64,
    /// Have a number of a farther ancestor's region.
    pub spilled: u64,
    /// Have none.
    pub unplaced: u64,
}

impl Placement {
    /// These as shares of everything: inside, spilled, unplaced.
    pub fn shares(self) -> [f64; 3] {
        let total = (self.inside + self.spilled + self.unplaced) as f64;
        [self.inside, self.spilled, self.unplaced].map(|count| count as f64 / total)
    }

    /// The share of what has a number that has it outside its directory's region.
    pub fn spilled_of_placed(self) -> f64 {
        self.spilled as f64 / (self.inside + self.spilled) as f64
    }
}

/// The free numbers of a directory: `low..high`.
#[derive(Clone, Copy)]
struct Region {
    low: u128,
    high: u128,
}

impl Region {
    const EMPTY: Region = Region { low: 0, high: 0 };

    fn free(self) -> u128 {
        self.high - self.low
    }
}

/// Hands out numbers of this many bits (below 128) to the whole namespace.
pub fn place(namespace: &Namespace, order: Order, bits: u32) -> Placement {
    let mut placement = Placement::default();
    // The root's own number is 0.
    let mut regions = vec![Region { low: 1, high: 1 << bits }];
    let mut walks = vec![namespace.numbered(0, order)];
    while let Some(walk) = walks.last_mut() {
        match walk.next() {
            None => {
                walks.pop();
                regions.pop();
            }
            Some((_, child)) => match child.dir() {
                None => take(&mut regions, &mut placement),
                Some(dir) => {
                    let region = halve(&mut regions, &mut placement);
                    regions.push(region);
                    walks.push(namespace.numbered(dir, order));
                }
            },
        }
    }
    placement
}

/// The same, but each directory is filled before anything below it is made.
pub fn place_level(namespace: &Namespace, order: Order, bits: u32) -> Placement {
    let mut placement = Placement::default();
    let mut regions = vec![Region { low: 1, high: 1 << bits }];
    let mut fill = |dir, regions: &mut Vec<Region>| {
        let mut below = Vec::new();
        for (_, child) in namespace.numbered(dir, order) {
            match child.dir() {
                None => take(regions, &mut placement),
                Some(dir) => below.push((dir, halve(regions, &mut placement))),
            }
        }
        below.into_iter()
    };
    let mut levels = vec![fill(0, &mut regions)];
    while let Some(level) = levels.last_mut() {
        match level.next() {
            None => {
                levels.pop();
                regions.pop();
            }
            Some((dir, region)) => {
                regions.push(region);
                levels.push(fill(dir, &mut regions));
            }
        }
    }
    placement
}

/// The region of a new subdirectory of the innermost directory, which takes its own number first.
fn halve(regions: &mut [Region], placement: &mut Placement) -> Region {
    let parent = regions.last_mut().expect("each walk has a region");
    if parent.free() < 2 {
        take(regions, placement);
        return Region::EMPTY;
    }
    let middle = parent.low + parent.free() / 2;
    let upper = Region { low: middle + 1, high: parent.high };
    parent.high = middle;
    placement.inside += 1;
    upper
}

/// Gives one number to a child of the innermost directory.
fn take(regions: &mut [Region], placement: &mut Placement) {
    match regions.iter_mut().rev().enumerate().find(|(_, region)| region.free() > 0) {
        None => placement.unplaced += 1,
        Some((distance, region)) => {
            region.low += 1;
            if distance == 0 {
                placement.inside += 1;
            } else {
                placement.spilled += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::namespace::Builder;
    use super::*;

    #[track_caller]
    fn check(namespace: &Namespace, bits: u32, inside: u64, spilled: u64, unplaced: u64) {
        let placement = place(namespace, Order::Name, bits);
        assert_eq!(placement, Placement { inside, spilled, unplaced });
    }

    #[test]
    fn files_fill_their_directory_and_then_nothing() {
        let mut builder = Builder::new();
        (0..5).for_each(|_| builder.file(0));
        let namespace = builder.finish();
        check(&namespace, 3, 5, 0, 0);
        check(&namespace, 2, 3, 0, 2); // the root's own number is the fourth
    }

    #[test]
    fn a_subdirectory_takes_the_upper_half_and_spills_to_its_ancestors() {
        let mut builder = Builder::new();
        let dir = builder.dir(0);
        (0..6).for_each(|_| builder.file(dir));
        // Of 1 to 7 the directory takes 4 to 7 (4 for itself), so three files lie inside and three
        // take 1 to 3 of the root.
        check(&builder.finish(), 3, 4, 3, 0);
    }

    #[test]
    fn a_chain_exhausts_the_bits() {
        let mut builder = Builder::new();
        let mut dir = 0;
        for _ in 0..4 {
            dir = builder.dir(dir);
        }
        // 4 to 7, then 6 and 7; the region behind 6 is 7 alone: the next takes it without a region
        // of its own, so the last one spills.
        check(&builder.finish(), 3, 3, 1, 0);
    }

    #[test]
    fn filling_a_directory_first_leaves_nothing_for_what_spills() {
        let mut builder = Builder::new();
        let dir = builder.dir(0);
        (0..6).for_each(|_| builder.file(dir));
        (0..2).for_each(|_| builder.file(0));
        // Of 1 to 7 the directory takes 4 to 7, and then the root's own files 1 and 2.
        let filled = Placement { inside: 6, spilled: 1, unplaced: 2 };
        assert_eq!(place_level(&builder.finish(), Order::Name, 3), filled);
    }

    #[test]
    fn shares_are_of_everything_and_of_the_placed() {
        let placement = Placement { inside: 1, spilled: 3, unplaced: 4 };
        assert_eq!(placement.shares(), [0.125, 0.375, 0.5]);
        assert_eq!(placement.spilled_of_placed(), 0.75);
    }
}
