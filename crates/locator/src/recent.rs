//! The first level of one group: paths that were used recently, in a filter that keeps up with them.

use base::Instant;
use load::{Spec, reservoir::Cache};

use crate::{Found, Print, bloom::Shape, counting::Counting};

/// How large the first level is, and how it grows (H10: start small, grow until a hit-rate goal).
#[derive(Clone, Copy, Debug)]
pub struct Sizing {
    /// Bits for each path.
    pub bits_per_file: u32,
    /// Paths to start with.
    pub files: u64,
    /// Paths at the most.
    pub files_max: u64,
    /// Of a thousand uses, how many the first level should have found.
    pub goal: u32,
    /// Of a thousand uses, how many more it must find after it has doubled; else it stays as it is.
    pub gain_min: u32,
    /// Uses between two looks at that, or eight for each path that there is room for, if those are more.
    pub window: u32,
}

impl Default for Sizing {
    fn default() -> Sizing {
        Sizing {
            bits_per_file: 20,
            files: 64,
            files_max: 16_384,
            goal: 900,
            gain_min: 10,
            window: 4_096,
        }
    }
}

impl Sizing {
    /// Always this many paths.
    pub fn fixed(files: u64) -> Sizing {
        Sizing { files, files_max: files, ..Sizing::default() }
    }
}

#[derive(Debug)]
pub(crate) struct Recent {
    sizing: Sizing,
    /// Least recently used first. Bounded by `Sizing::files_max`.
    list: Cache<Print>,
    pub(crate) filter: Counting,
    uses: u32,
    found: u32,
    /// Of a thousand uses, how many were found before the last doubling.
    share_before: Option<u32>,
    is_settled: bool,
}

impl Recent {
    pub(crate) fn new(sizing: Sizing) -> Recent {
        Recent {
            sizing,
            list: list(sizing.files),
            filter: Counting::new(Shape::for_files(sizing.files, sizing.bits_per_file)),
            uses: 0,
            found: 0,
            share_before: None,
            is_settled: false,
        }
    }

    /// A path was used. Answers whether the filter is another one now, of another size.
    pub(crate) fn use_path(&mut self, now: Instant, print: Print, found: Found) -> bool {
        if !self.list.touch(&print, now) {
            self.filter.add(print);
            let filter = &mut self.filter;
            // H6: whoever leaves the list leaves the filter.
            self.list.put(print, (), 1, now, |gone, ()| filter.remove(gone));
        }
        self.uses += 1;
        self.found += u32::from(found == Found::Recent);
        // Long enough that filling up after the last doubling hardly counts.
        let window = u64::from(self.sizing.window).max(8 * self.files_max());
        u64::from(self.uses) >= window && self.resize()
    }

    pub(crate) fn remove(&mut self, print: Print) {
        if self.list.remove(&print).is_some() {
            self.filter.remove(print);
        }
    }

    pub(crate) fn files_max(&self) -> u64 {
        self.list.spec().capacity
    }

    /// H10.
    fn resize(&mut self) -> bool {
        let share = (u64::from(self.found) * 1_000 / u64::from(self.uses.max(1))) as u32;
        (self.uses, self.found) = (0, 0);
        let was_in_vain =
            self.share_before.is_some_and(|before| share < before + self.sizing.gain_min);
        let files = (2 * self.files_max()).min(self.sizing.files_max);
        self.is_settled |= was_in_vain;
        if self.is_settled || share >= self.sizing.goal || files == self.files_max() {
            self.share_before = None;
            return false;
        }
        self.share_before = Some(share);
        let before = std::mem::replace(&mut self.list, list(files));
        self.filter = Counting::new(Shape::for_files(files, self.sizing.bits_per_file));
        for (used_at, &print) in before.iter() {
            self.filter.add(print);
            self.list.put(print, (), 1, used_at, |_, ()| ());
        }
        true
    }
}

fn list(files: u64) -> Cache<Print> {
    let capacity = files.max(1);
    Cache::new(Spec { label: "recent", name: "paths used recently", capacity, threshold: capacity })
}
