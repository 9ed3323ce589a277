//! The filters of many groups, those of equal shape side by side in one matrix.

use std::collections::BTreeMap;

use crate::{
    Group, Print,
    bloom::{Bits, Shape},
    fuse::{Fuse, Grid},
    matrix::Matrix,
};

/// H2: a hit is exactly one group that seems to have the path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sighting {
    first: Option<Group>,
    is_several: bool,
}

impl Sighting {
    /// The one group that was seen.
    pub(crate) fn only(self) -> Option<Group> {
        self.first.filter(|_| !self.is_several)
    }

    fn see(&mut self, group: Group) {
        self.is_several |= self.first.is_some_and(|first| first != group);
        self.first = Some(group);
    }
}

/// A kind of filter that can lie in a matrix.
pub(crate) trait Filter {
    /// What filters must share to lie side by side.
    type Form: Copy + Ord;
    /// How wide a lane is.
    const LANE_BITS: usize;
    fn form(&self) -> Self::Form;
    fn rows(form: Self::Form) -> usize;
    fn value(&self, row: usize) -> u8;
}

impl Filter for Bits {
    type Form = Shape;
    const LANE_BITS: usize = 1;

    fn form(&self) -> Shape {
        self.shape()
    }

    fn rows(form: Shape) -> usize {
        form.bits() as usize
    }

    fn value(&self, row: usize) -> u8 {
        self.get(row as u32).into()
    }
}

impl Filter for Fuse {
    type Form = Grid;
    const LANE_BITS: usize = 8;

    fn form(&self) -> Grid {
        self.grid()
    }

    fn rows(form: Grid) -> usize {
        form.cells() as usize
    }

    fn value(&self, row: usize) -> u8 {
        self.cells()[row]
    }
}

/// Filters of one form.
#[derive(Debug)]
struct Slab {
    matrix: Matrix,
    /// Whose each lane is. A lane that is nobody's is zero.
    owners: Vec<Option<Group>>,
}

impl Slab {
    fn owner(&self, word: usize, place: usize) -> Option<Group> {
        self.owners.get(word * self.matrix.word_lanes() + place).copied().flatten()
    }
}

/// The filters of one kind, at most one for each group.
#[derive(Debug)]
pub(crate) struct Shelf<F: Filter> {
    /// No slab is without an owner, so there are no more slabs than groups.
    slabs: Vec<(F::Form, Slab)>,
    places: BTreeMap<Group, (F::Form, usize)>,
}

impl<F: Filter> Default for Shelf<F> {
    fn default() -> Self {
        Shelf { slabs: Vec::new(), places: BTreeMap::new() }
    }
}

impl<F: Filter> Shelf<F> {
    /// Puts a group's filter in place of the one it had.
    pub(crate) fn put(&mut self, group: Group, filter: &F) {
        let form = filter.form();
        if self.places.get(&group).is_none_or(|(known, _)| *known != form) {
            self.remove(group);
            let lane = self.take_lane(form, group);
            self.places.insert(group, (form, lane));
        }
        let (_, lane) = self.places[&group];
        let slab = self.slab_mut(form);
        (0..F::rows(form)).for_each(|row| slab.matrix.set(row, lane, filter.value(row)));
    }

    /// H4: whoever leaves takes one filter along.
    pub(crate) fn remove(&mut self, group: Group) {
        let Some((form, lane)) = self.places.remove(&group) else { return };
        let at = self.position(form).expect("a place is in a slab");
        let slab = &mut self.slabs[at].1;
        slab.owners[lane] = None;
        if slab.owners.iter().all(Option::is_none) {
            self.slabs.remove(at);
        } else {
            slab.matrix.clear(lane);
        }
    }

    /// Bytes that all filters take.
    pub(crate) fn bytes(&self) -> u64 {
        self.slabs.iter().map(|(_, slab)| slab.matrix.bytes()).sum()
    }

    /// How many more bytes it could take to put a filter of this form for this group.
    pub(crate) fn bytes_more(&self, group: Group, form: F::Form) -> u64 {
        if self.places.get(&group).is_some_and(|(known, _)| *known == form) {
            return 0;
        }
        match self.position(form) {
            None => (F::rows(form) * F::LANE_BITS).div_ceil(64) as u64 * 8,
            Some(at) => {
                let slab = &self.slabs[at].1;
                let is_full = slab.owners.iter().flatten().count() == slab.matrix.lanes();
                if is_full { slab.matrix.bytes_widened() - slab.matrix.bytes() } else { 0 }
            }
        }
    }

    /// How many slabs there are: each costs as many fetches as one filter.
    pub(crate) fn slabs(&self) -> usize {
        self.slabs.len()
    }

    fn take_lane(&mut self, form: F::Form, group: Group) -> usize {
        if self.position(form).is_none() {
            let matrix = Matrix::new(F::rows(form), F::LANE_BITS);
            self.slabs.push((form, Slab { matrix, owners: Vec::new() }));
        }
        let slab = self.slab_mut(form);
        let free = slab.owners.iter().position(Option::is_none);
        let lane = free.unwrap_or_else(|| {
            slab.owners.push(None);
            slab.owners.len() - 1
        });
        if lane == slab.matrix.lanes() {
            slab.matrix.widen();
        }
        slab.owners[lane] = Some(group);
        lane
    }

    fn position(&self, form: F::Form) -> Option<usize> {
        self.slabs.iter().position(|(known, _)| *known == form)
    }

    fn slab_mut(&mut self, form: F::Form) -> &mut Slab {
        let at = self.position(form).expect("a place is in a slab");
        &mut self.slabs[at].1
    }
}

impl Shelf<Bits> {
    /// The shape of a group's filter.
    pub(crate) fn shape(&self, group: Group) -> Option<Shape> {
        self.places.get(&group).map(|(shape, _)| *shape)
    }

    /// Flips bits of a group's filter, all of them below its length; answers how many more are set now.
    pub(crate) fn flip(&mut self, group: Group, rows: impl Iterator<Item = u32>) -> i64 {
        let Some(&(shape, lane)) = self.places.get(&group) else { return 0 };
        let slab = self.slab_mut(shape);
        rows.fold(0, |more, row| {
            slab.matrix.flip(row as usize, lane);
            more + 2 * i64::from(slab.matrix.get(row as usize, lane)) - 1
        })
    }

    /// Notes every group whose filter seems to have the path.
    pub(crate) fn look(&self, print: Print, sighting: &mut Sighting) {
        for (shape, slab) in &self.slabs {
            for index in 0..slab.matrix.row_words() {
                // Most filters say no at their first bit, and all of them after a few.
                let mut word = u64::MAX;
                for row in shape.positions(print) {
                    word &= slab.matrix.word(row as usize, index);
                    if word == 0 {
                        break;
                    }
                }
                while word != 0 {
                    let place = word.trailing_zeros() as usize;
                    word &= word - 1;
                    slab.owner(index, place).into_iter().for_each(|group| sighting.see(group));
                }
            }
        }
    }
}

impl Shelf<Fuse> {
    /// Notes every group whose filter seems to have the path.
    pub(crate) fn look(&self, print: Print, sighting: &mut Sighting) {
        for (grid, slab) in &self.slabs {
            let ([a, b, c, d], mark) = grid.cells_of(print);
            let marks = u64::from(mark) * BYTES;
            for index in 0..slab.matrix.row_words() {
                let word = |row: u32| slab.matrix.word(row as usize, index);
                let mut zeros = zero_bytes(word(a) ^ word(b) ^ word(c) ^ word(d) ^ marks);
                while zeros != 0 {
                    let place = zeros.trailing_zeros() as usize / 8;
                    zeros &= zeros - 1;
                    slab.owner(index, place).into_iter().for_each(|group| sighting.see(group));
                }
            }
        }
    }
}

const BYTES: u64 = 0x0101_0101_0101_0101;

/// The highest bit of every byte that is zero, and no other.
fn zero_bytes(word: u64) -> u64 {
    let low = 0x7f * BYTES;
    !(((word & low) + low) | word | low)
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;
    use crate::counting::Counting;

    #[test]
    fn zero_bytes_are_found_and_no_others() {
        let mut rng = Rng::new(1);
        for _ in 0..100_000 {
            let bytes: [u8; 8] =
                std::array::from_fn(|_| [0, 1, 0x80, 0xff, rng.next_u64() as u8][rng.index(5)]);
            let expected = bytes.map(|byte| if byte == 0 { 0x80 } else { 0 });
            assert_eq!(zero_bytes(u64::from_le_bytes(bytes)), u64::from_le_bytes(expected));
        }
    }

    /// Puts, changes and removes filters at random; every look-up is that of the filters one by one.
    fn agrees<F: Filter>(
        make: impl Fn(&mut Rng) -> F,
        contains: impl Fn(&F, Print) -> bool,
        look: impl Fn(&Shelf<F>, Print, &mut Sighting),
    ) {
        let mut rng = Rng::new(2);
        let (mut shelf, mut model) = (Shelf::<F>::default(), BTreeMap::new());
        for _ in 0..400 {
            let group = Group(rng.below(90) as u32);
            if rng.chance(0.3) {
                shelf.remove(group);
                model.remove(&group);
            } else {
                let filter = make(&mut rng);
                let expected = shelf.bytes() + shelf.bytes_more(group, filter.form());
                shelf.put(group, &filter);
                assert!(shelf.bytes() <= expected, "more bytes than foretold");
                model.insert(group, filter);
            }
            for _ in 0..20 {
                let print = small_print(&mut rng);
                let mut sighting = Sighting::default();
                look(&shelf, print, &mut sighting);
                let mut seen = model.iter().filter(|(_, filter)| contains(filter, print));
                let (first, second) = (seen.next(), seen.next());
                let expected = first.filter(|_| second.is_none()).map(|(group, _)| *group);
                assert_eq!(sighting.only(), expected);
            }
        }
        model.keys().for_each(|group| shelf.remove(*group));
        assert_eq!((shelf.bytes(), shelf.slabs()), (0, 0), "who leaves leaves nothing behind");
    }

    /// One of few, so that several groups have it.
    fn small_print(rng: &mut Rng) -> Print {
        let mut chance = Rng::new(rng.below(500));
        Print::from_words(chance.next_u64(), chance.next_u64())
    }

    #[test]
    fn side_by_side_bloom_filters_answer_as_they_do_one_by_one() {
        let make = |rng: &mut Rng| {
            let mut counting = Counting::new(Shape::for_files(10 * (1 + rng.below(3)), 8));
            (0..10).for_each(|_| counting.add(small_print(rng)));
            counting.take_changes();
            counting.told().clone()
        };
        agrees(make, Bits::contains, Shelf::<Bits>::look);
    }

    #[test]
    fn side_by_side_fuse_filters_answer_as_they_do_one_by_one() {
        let make = |rng: &mut Rng| {
            let mut prints: Vec<Print> = (0..10).map(|_| small_print(rng)).collect();
            prints.sort_unstable();
            prints.dedup();
            Fuse::build(&prints, 10 * (1 + rng.below(3))).unwrap()
        };
        agrees(make, Fuse::contains, Shelf::<Fuse>::look);
    }
}
