//! A binary fuse filter (Graf and Lemire 2022): static, 8 bits a file and an eighth on top, 1/256 wrong.
//!
//! A file has four cells, in four neighbouring segments; they are chosen such that their exclusive or is
//! the file's mark. Four and not three: it takes a twentieth less room, for one fetch more.
//!
//! Whatever cells somebody hostile sends, of all paths that are not there about 1/256 seem to be; and it
//! can make up its mind about no more paths than it has cells.

use std::io::{self, Read};

use base::Malformed;
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{Print, print::below};

/// Cells of each file.
const ARITY: usize = 4;
/// Seeds that are tried before the filter is made larger.
const SEEDS: u8 = 8;

/// How the cells lie: segments of equal length, a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize)]
pub struct Grid {
    segments: u32,
    segment_log2: u8,
    seed: u8,
}

/// Three shifts within a segment and the mark come from one word.
const SEGMENT_LOG2_MAX: u8 = 18;
const _: () = assert!(SEGMENT_LOG2_MAX as u32 * (ARITY as u32 - 1) + 8 <= u64::BITS);

impl Grid {
    /// The most cells: 4 MiB, which with the rest of a message fits into a frame.
    pub const CELLS_MAX: u32 = 1 << 22;
    /// The most files that surely fit.
    pub const FILES_MAX: u64 = Grid::CELLS_MAX as u64 * 8 / 10;

    /// The grid for this many files; `None` if they are too many.
    ///
    /// Segment length and spare room follow the paper's formulas for four cells a file, in whole numbers
    /// so that every machine comes to the same.
    pub fn for_files(files: u64, seed: u8) -> Option<Grid> {
        if files > Grid::FILES_MAX {
            return None;
        }
        let log2 = log2_thousandths(files.max(2));
        // floor(ln n / ln 2.91 - 0.5), and longer ones for few files, where knots are not rare.
        let longer = u64::from(log2 < 13_000);
        let segment_log2 = (log2 * 1_000 / 1_541).saturating_sub(500) / 1_000 + longer;
        let segment_log2 = segment_log2.clamp(2, u64::from(SEGMENT_LOG2_MAX)) as u8;
        // max(1.075, 0.77 + 0.305 ln 600,000 / ln n)
        let factor = (770 + 305 * 19_194 / log2).max(1_075);
        let length = 1 << segment_log2;
        let segments = (files.max(1) * factor).div_ceil(1_000).div_ceil(length);
        let segments = segments.saturating_sub(ARITY as u64 - 1).max(1);
        Grid::new(u32::try_from(segments).ok()?, segment_log2, seed)
    }

    fn new(segments: u32, segment_log2: u8, seed: u8) -> Option<Grid> {
        let may_be = segments > 0 && segment_log2 <= SEGMENT_LOG2_MAX && seed < SEEDS;
        let cells = (u64::from(segments) + ARITY as u64 - 1) << segment_log2.min(SEGMENT_LOG2_MAX);
        (may_be && cells <= u64::from(Grid::CELLS_MAX)).then_some(Grid {
            segments,
            segment_log2,
            seed,
        })
    }

    /// How many cells there are.
    pub const fn cells(self) -> u32 {
        (self.segments + ARITY as u32 - 1) << self.segment_log2
    }

    /// A path's cells, all below [`Grid::cells`], and its mark.
    #[inline]
    pub(crate) fn cells_of(self, print: Print) -> ([u32; ARITY], u8) {
        let Print { first, second } = print.seeded(self.seed);
        let start = below(first, self.segments << self.segment_log2);
        let length = 1u32 << self.segment_log2;
        let mask = length - 1;
        let shift = |index: u32| (second >> (u32::from(SEGMENT_LOG2_MAX) * index)) as u32 & mask;
        let cells = [
            start,
            (start + length) ^ shift(0),
            (start + 2 * length) ^ shift(1),
            (start + 3 * length) ^ shift(2),
        ];
        (cells, (second >> 56) as u8)
    }
}

/// log2 of a positive number in thousandths, rounded down to an eighth of an octave.
fn log2_thousandths(number: u64) -> u64 {
    const EIGHTHS: [u64; 8] = [0, 170, 322, 459, 585, 700, 807, 907];
    let log2 = number.ilog2();
    let eighth = if log2 >= 3 { number >> (log2 - 3) } else { number << (3 - log2) };
    u64::from(log2) * 1_000 + EIGHTHS[eighth as usize & 7]
}

/// A filter: a grid and its cells.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize)]
pub struct Fuse {
    grid: Grid,
    cells: Vec<u8>,
}

impl Fuse {
    /// The filter of these paths, none of which comes twice, with room as for `files` of them. `None` if
    /// they are too many.
    pub fn build(prints: &[Print], files: u64) -> Option<Fuse> {
        let mut files = files.max(prints.len() as u64);
        loop {
            for seed in 0..SEEDS {
                let grid = Grid::for_files(files, seed)?;
                if let Some(cells) = solve(grid, prints) {
                    return Some(Fuse { grid, cells });
                }
            }
            files += files / 4 + 8;
        }
    }

    /// How its cells lie.
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Its cells.
    pub fn cells(&self) -> &[u8] {
        &self.cells
    }

    /// Whether it knows the path, or takes it for one that it knows.
    pub fn contains(&self, print: Print) -> bool {
        let (cells, mark) = self.grid.cells_of(print);
        cells.iter().fold(mark, |mark, &cell| mark ^ self.cells[cell as usize]) == 0
    }
}

/// What cells hold so that those of each path together are its mark; `None` if this seed ties paths in a
/// knot.
///
/// A cell that only one path uses can be set last, whatever the others are. Taking such paths away frees
/// further cells; in the reverse order each path finds a cell that nobody after it looks at.
fn solve(grid: Grid, prints: &[Print]) -> Option<Vec<u8>> {
    let count = grid.cells() as usize;
    // For each cell, how many paths use it and the exclusive or of which they are.
    let mut users = vec![(0u32, 0u32); count];
    for (index, &print) in (0u32..).zip(prints) {
        for cell in grid.cells_of(print).0 {
            let (users, which) = &mut users[cell as usize];
            *users += 1;
            *which ^= index;
        }
    }
    let mut lonely: Vec<u32> = (0..grid.cells()).filter(|&at| users[at as usize].0 == 1).collect();
    let mut order = Vec::with_capacity(prints.len());
    while let Some(cell) = lonely.pop() {
        let (1, index) = users[cell as usize] else { continue };
        order.push((index, cell));
        for cell in grid.cells_of(prints[index as usize]).0 {
            let (users, which) = &mut users[cell as usize];
            *users -= 1;
            *which ^= index;
            if *users == 1 {
                lonely.push(cell);
            }
        }
    }
    if order.len() < prints.len() {
        return None;
    }
    let mut values = vec![0u8; count];
    for &(index, own) in order.iter().rev() {
        let (cells, mark) = grid.cells_of(prints[index as usize]);
        // Its own cell is still zero, so it can take part.
        let value = cells.iter().fold(mark, |mark, &cell| mark ^ values[cell as usize]);
        values[own as usize] = value;
    }
    Some(values)
}

impl BorshDeserialize for Grid {
    fn deserialize_reader<R: Read>(reader: &mut R) -> io::Result<Grid> {
        let segments = u32::deserialize_reader(reader)?;
        let segment_log2 = u8::deserialize_reader(reader)?;
        let seed = u8::deserialize_reader(reader)?;
        let grid = Grid::new(segments, segment_log2, seed);
        Ok(grid.ok_or(Malformed::new("a filter with a grid that no filter has"))?)
    }
}

impl BorshDeserialize for Fuse {
    fn deserialize_reader<R: Read>(reader: &mut R) -> io::Result<Fuse> {
        let grid = Grid::deserialize_reader(reader)?;
        let cells = Vec::<u8>::deserialize_reader(reader)?;
        if cells.len() != grid.cells() as usize {
            return Err(Malformed::new("a filter has as many cells as its grid says").into());
        }
        Ok(Fuse { grid, cells })
    }
}

#[cfg(test)]
mod tests {
    use base::{Rng, decode, encode};

    use super::*;

    fn prints(seed: u64, count: usize) -> Vec<Print> {
        let mut rng = Rng::new(seed);
        (0..count).map(|_| Print::from_words(rng.next_u64(), rng.next_u64())).collect()
    }

    #[test]
    fn whatever_is_in_is_found_at_every_size() {
        for count in (0..300).chain([1_000, 4_096, 10_000, 50_000]) {
            let prints = prints(count as u64, count);
            let fuse = Fuse::build(&prints, 0).unwrap();
            assert!(prints.iter().all(|&print| fuse.contains(print)), "{count} paths");
        }
    }

    #[test]
    fn one_in_256_of_the_others_seems_to_be_in_and_the_room_is_as_published() {
        let fuse = Fuse::build(&prints(1, 100_000), 0).unwrap();
        let wrong = prints(2, 200_000).into_iter().filter(|&print| fuse.contains(print)).count();
        assert!((680..880).contains(&wrong), "{wrong} of 200,000");
        let bits = fuse.cells().len() as f64 * 8.0 / 100_000.0;
        assert!((8.9..9.2).contains(&bits), "{bits} bits a file");
    }

    #[test]
    fn every_seed_can_be_the_one() {
        let prints = prints(3, 10_000);
        for seed in 0..SEEDS {
            let grid = Grid::for_files(10_000, seed).unwrap();
            let fuse = Fuse { grid, cells: solve(grid, &prints).unwrap() };
            assert!(prints.iter().all(|&print| fuse.contains(print)), "seed {seed}");
        }
    }

    #[test]
    fn a_path_that_comes_twice_is_a_knot_under_every_seed() {
        let twice = [prints(4, 100), prints(4, 1)].concat();
        assert!(
            (0..SEEDS).all(|seed| solve(Grid::for_files(200, seed).unwrap(), &twice).is_none())
        );
    }

    #[test]
    fn too_many_files_are_refused_and_the_most_fit() {
        assert!(Grid::for_files(Grid::FILES_MAX, 0).is_some());
        assert_eq!(Grid::for_files(Grid::FILES_MAX + 1, 0), None);
    }

    #[test]
    fn cells_that_do_not_fit_the_grid_are_refused() {
        let mut fuse = Fuse::build(&prints(5, 50), 0).unwrap();
        assert_eq!(decode::<Fuse>(&encode(&fuse), 1_000).as_ref(), Ok(&fuse));
        fuse.cells.pop();
        assert!(decode::<Fuse>(&encode(&fuse), 1_000).is_err());
        for (segments, segment_log2, seed) in
            [(0, 4, 0), (1, 19, 0), (1, 255, 0), (1, 4, 8), (u32::MAX, 18, 0), (1 << 22, 0, 0)]
        {
            assert_eq!(Grid::new(segments, segment_log2, seed), None, "{segments} {segment_log2}");
        }
    }

    #[test]
    fn every_path_has_its_cells_within_any_grid_that_may_be() {
        let mut rng = Rng::new(6);
        for _ in 0..20_000 {
            let grid =
                Grid::new(1 + rng.below(1 << 11) as u32, rng.below(11) as u8, rng.below(8) as u8);
            let grid = grid.unwrap();
            let print = Print::from_words(rng.next_u64(), rng.next_u64());
            let (cells, _) = grid.cells_of(print);
            assert!(cells.iter().all(|&cell| cell < grid.cells()));
        }
    }
}
