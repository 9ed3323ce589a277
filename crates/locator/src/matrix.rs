//! Many filters of one shape side by side, so that one fetch shows a position of all of them.
//!
//! A row is a position, a lane is a filter: a bit of a row for a Bloom filter, a byte for a fuse filter. A
//! row is as narrow as the number of filters allows, so a filter that is alone takes no more room than its
//! own bits.

/// Rows of lanes, each lane one bit or one byte wide.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    rows: usize,
    /// 1 or 8.
    lane_bits: usize,
    /// A power of two up to 128, then a multiple of 128.
    row_bits: usize,
    words: Vec<u64>,
}

impl Matrix {
    pub(crate) fn new(rows: usize, lane_bits: usize) -> Matrix {
        debug_assert!(lane_bits == 1 || lane_bits == 8);
        let words = vec![0; (rows * lane_bits).div_ceil(64)];
        Matrix { rows, lane_bits, row_bits: lane_bits, words }
    }

    /// How many lanes there are.
    pub(crate) fn lanes(&self) -> usize {
        self.row_bits / self.lane_bits
    }

    /// How many words a row has; a narrow row is a part of one.
    pub(crate) fn row_words(&self) -> usize {
        self.row_bits.div_ceil(64)
    }

    /// How many lanes a word shows.
    pub(crate) fn word_lanes(&self) -> usize {
        self.row_bits.min(64) / self.lane_bits
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// How many bytes there would be with another lane, if all that are there are taken.
    pub(crate) fn bytes_widened(&self) -> u64 {
        (self.rows as u64 * wider(self.row_bits) as u64).div_ceil(64) * 8
    }

    /// One word of a row, the first lanes lowest. Narrow rows have zeros above.
    #[inline]
    pub(crate) fn word(&self, row: usize, index: usize) -> u64 {
        if self.row_bits >= 64 {
            return self.words[row * (self.row_bits / 64) + index];
        }
        let at = row * self.row_bits;
        self.words[at / 64] >> (at % 64) & ((1 << self.row_bits) - 1)
    }

    pub(crate) fn get(&self, row: usize, lane: usize) -> u8 {
        let at = row * self.row_bits + lane * self.lane_bits;
        (self.words[at / 64] >> (at % 64)) as u8 & self.lane_mask()
    }

    pub(crate) fn set(&mut self, row: usize, lane: usize, value: u8) {
        let at = row * self.row_bits + lane * self.lane_bits;
        let (mask, value) = (u64::from(self.lane_mask()), u64::from(value));
        let word = &mut self.words[at / 64];
        *word = *word & !(mask << (at % 64)) | (value & mask) << (at % 64);
    }

    /// Makes a bit what it was not.
    pub(crate) fn flip(&mut self, row: usize, lane: usize) {
        let at = row * self.row_bits + lane * self.lane_bits;
        self.words[at / 64] ^= 1 << (at % 64);
    }

    /// Makes room for more lanes.
    pub(crate) fn widen(&mut self) {
        let lanes = self.lanes();
        let row_bits = wider(self.row_bits);
        let words = vec![0; (self.rows * row_bits).div_ceil(64)];
        let narrow = std::mem::replace(self, Matrix { row_bits, words, ..*self });
        if narrow.row_bits >= 64 {
            let (from, to) = (narrow.row_bits / 64, row_bits / 64);
            for (old, new) in narrow.words.chunks_exact(from).zip(self.words.chunks_exact_mut(to)) {
                new[..from].copy_from_slice(old);
            }
            return;
        }
        for row in 0..self.rows {
            for lane in 0..lanes {
                self.set(row, lane, narrow.get(row, lane));
            }
        }
    }

    /// Empties a lane.
    pub(crate) fn clear(&mut self, lane: usize) {
        (0..self.rows).for_each(|row| self.set(row, lane, 0));
    }

    fn lane_mask(&self) -> u8 {
        if self.lane_bits == 1 { 1 } else { 0xff }
    }
}

fn wider(row_bits: usize) -> usize {
    if row_bits < 128 { 2 * row_bits } else { row_bits + 128 }
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;

    #[test]
    fn lanes_keep_what_they_have_while_rows_grow_wider() {
        for (lane_bits, most) in [(1, 300), (8, 50)] {
            let mut rng = Rng::new(1);
            let mut matrix = Matrix::new(37, lane_bits);
            let mut model: Vec<Vec<u8>> = Vec::new();
            while model.len() < most {
                if model.len() == matrix.lanes() {
                    let expected = matrix.bytes_widened();
                    matrix.widen();
                    assert_eq!(matrix.bytes(), expected);
                }
                let mask = if lane_bits == 1 { 1 } else { 0xff };
                let lane: Vec<u8> = (0..37).map(|_| rng.next_u64() as u8 & mask).collect();
                for (row, value) in lane.iter().enumerate() {
                    matrix.set(row, model.len(), *value);
                }
                model.push(lane);
                if model.len().is_multiple_of(7) {
                    let gone = rng.index(model.len());
                    matrix.clear(gone);
                    model[gone].fill(0);
                }
                for (index, lane) in model.iter().enumerate() {
                    assert!((0..37).all(|row| matrix.get(row, index) == lane[row]));
                }
            }
            for row in 0..37 {
                for (index, lane) in model.iter().enumerate() {
                    let (word, place) = (index / matrix.word_lanes(), index % matrix.word_lanes());
                    let shown = matrix.word(row, word) >> (place * lane_bits);
                    assert_eq!(shown as u8 & matrix.lane_mask(), lane[row]);
                }
            }
        }
    }

    #[test]
    fn a_filter_that_is_alone_takes_no_more_than_its_own_bits() {
        assert_eq!(Matrix::new(6_400, 1).bytes(), 800);
        assert_eq!(Matrix::new(6_400, 8).bytes(), 6_400);
    }
}
