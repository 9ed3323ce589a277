//! Which region an identifier lies in, by binary search (D14).
//!
//! A region is a prefix less the longer prefixes that have been delegated from it (D10); the longest
//! prefix of an identifier decides. Instead of trying prefixes one by one, the map lays all regions
//! out along the line of identifiers and keeps only the places where the answer changes: a region
//! begins at its prefix, and behind the last identifier below it the region around it goes on.
//!
//! ```text
//! regions      root → A    1 → B    1.3 → D
//! boundaries   root A | 1 B | 1.3 D | 1.4 B | 2 A
//! ```
//!
//! So n regions make at most 2n boundaries, and a look-up is one search among them. Changes are rare
//! (a delegation is an event, a look-up is every operation) and move the boundaries behind them.

use std::fmt;

use crate::FileId;

/// A map from identifier to the owner of the region that it lies in.
///
/// ```
/// # use base::{FileId, FileMap};
/// let id = |text: &str| text.parse::<FileId>().unwrap();
/// let mut map = FileMap::new("A");
/// map.delegate(&"A", id("1"), "B")?;
/// assert_eq!(map.owner(&id("1.7")), &"B");
/// assert_eq!(map.owner(&id("2")), &"A");
/// # Ok::<(), base::NotOwner>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileMap<V> {
    /// Sorted by `start`. The first starts at the root; neighbours never answer with the same region;
    /// each region has exactly one boundary that starts at its own prefix.
    boundaries: Vec<Boundary>,
    /// Addressed by the boundaries; `None` is a free place.
    regions: Vec<Option<Region<V>>>,
    /// The free places.
    free: Vec<u32>,
}

/// From `start` on, up to the next boundary, this region answers.
#[derive(Clone, Debug)]
struct Boundary {
    start: FileId,
    region: u32,
}

/// A prefix and who owns what lies below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region<V> {
    /// The identifier that all files of the region share as a prefix.
    pub prefix: FileId,
    /// Who manages it.
    pub owner: V,
}

/// Only the owner of an identifier can give it away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotOwner {
    /// What it tried to give away.
    pub prefix: FileId,
}

impl<V> FileMap<V> {
    /// The map in which everything belongs to one owner.
    pub fn new(owner: V) -> FileMap<V> {
        FileMap {
            boundaries: vec![Boundary { start: FileId::ROOT, region: 0 }],
            regions: vec![Some(Region { prefix: FileId::ROOT, owner })],
            free: Vec::new(),
        }
    }

    /// The map of many delegations at once, in any order; of equal prefixes the last one counts.
    /// Far cheaper than inserting them one by one.
    pub fn from_regions(owner: V, regions: impl IntoIterator<Item = Region<V>>) -> FileMap<V> {
        let mut sorted: Vec<Region<V>> = vec![Region { prefix: FileId::ROOT, owner }];
        sorted.extend(regions);
        sorted.sort_by(|a, b| a.prefix.cmp(&b.prefix));
        sorted.dedup_by(|later, kept| {
            let same = later.prefix == kept.prefix;
            if same {
                std::mem::swap(later, kept);
            }
            same
        });
        let mut boundaries: Vec<Boundary> = Vec::with_capacity(2 * sorted.len());
        // The regions around the present place, the innermost last, and where they end.
        let mut around: Vec<(Option<FileId>, u32)> = Vec::new();
        for (index, region) in sorted.iter().enumerate() {
            let index = slot_number(index);
            leave(&mut around, Some(&region.prefix), &mut boundaries);
            append(&mut boundaries, Boundary { start: region.prefix.clone(), region: index });
            around.push((region.prefix.region_end(), index));
        }
        leave(&mut around, None, &mut boundaries);
        FileMap { boundaries, regions: sorted.into_iter().map(Some).collect(), free: Vec::new() }
    }

    /// Who manages this file.
    pub fn owner(&self, id: &FileId) -> &V {
        &self.region(id).owner
    }

    /// The region that this file lies in: the one with the longest prefix of its identifier.
    pub fn region(&self, id: &FileId) -> &Region<V> {
        self.slot(self.boundaries[self.covering(id)].region)
    }

    /// The regions in the order of their prefixes, which is parents first.
    pub fn regions(&self) -> impl Iterator<Item = &Region<V>> {
        self.boundaries.iter().filter_map(|boundary| {
            let region = self.slot(boundary.region);
            (region.prefix == boundary.start).then_some(region)
        })
    }

    /// Records that the region with this prefix belongs to `owner`, whatever was known before.
    /// Answers the owner that the very same prefix had.
    pub fn insert(&mut self, prefix: FileId, owner: V) -> Option<V> {
        let outer = self.boundaries[self.covering(&prefix)].region;
        if self.slot(outer).prefix == prefix {
            let region = self.regions[outer as usize].as_mut().expect("boundaries name regions");
            return Some(std::mem::replace(&mut region.owner, owner));
        }
        let region = self.occupy(Region { prefix: prefix.clone(), owner });
        let end = prefix.region_end();
        let mut inside = self.replace(&prefix, end.as_ref(), outer, region);
        let starts_at = |index: usize, boundaries: &[Boundary], id: &FileId| {
            boundaries.get(index).is_some_and(|boundary| boundary.start == *id)
        };
        if !starts_at(inside.start, &self.boundaries, &prefix) {
            self.boundaries.insert(inside.start, Boundary { start: prefix, region });
            inside.end += 1;
        }
        if let Some(end) = end
            && !starts_at(inside.end, &self.boundaries, &end)
        {
            self.boundaries.insert(inside.end, Boundary { start: end, region: outer });
        }
        None
    }

    /// Moves the region with this prefix to another owner. What was delegated from it before stays
    /// where it is: longer prefixes decide.
    pub fn delegate(&mut self, from: &V, prefix: FileId, to: V) -> Result<(), NotOwner>
    where
        V: PartialEq,
    {
        if self.owner(&prefix) != from {
            return Err(NotOwner { prefix });
        }
        self.insert(prefix, to);
        Ok(())
    }

    /// Gives the region with this prefix back to the one around it, and answers who had it. There is
    /// none if the prefix was not delegated, and the root region has nothing around it.
    pub fn hand_back(&mut self, prefix: &FileId) -> Option<V> {
        let at = self.covering(prefix);
        let region = self.boundaries[at].region;
        if prefix.is_root() || self.slot(region).prefix != *prefix {
            return None;
        }
        let parent = prefix.parent().expect("only the root has none");
        let outer = self.boundaries[self.covering(&parent)].region;
        let inside = self.replace(prefix, prefix.region_end().as_ref(), region, outer);
        // The boundary behind the region first, so that the other index stays right.
        for index in [inside.end, inside.start] {
            let repeats = |boundary: &Boundary| {
                boundary.region == outer && self.boundaries[index - 1].region == outer
            };
            if self.boundaries.get(index).is_some_and(repeats) {
                self.boundaries.remove(index);
            }
        }
        self.free.push(region);
        self.regions[region as usize].take().map(|region| region.owner)
    }

    /// The boundary that answers for this identifier.
    fn covering(&self, id: &FileId) -> usize {
        // The first boundary starts at the root, before which there is nothing.
        self.boundaries.partition_point(|boundary| boundary.start <= *id) - 1
    }

    /// Lets one region answer for another from `start` up to `end`; answers which boundaries start
    /// there.
    fn replace(
        &mut self,
        start: &FileId,
        end: Option<&FileId>,
        before: u32,
        after: u32,
    ) -> std::ops::Range<usize> {
        let first = self.boundaries.partition_point(|boundary| boundary.start < *start);
        let behind = end.map_or(self.boundaries.len(), |end| {
            self.boundaries.partition_point(|boundary| boundary.start < *end)
        });
        for boundary in &mut self.boundaries[first..behind] {
            if boundary.region == before {
                boundary.region = after;
            }
        }
        first..behind
    }

    fn occupy(&mut self, region: Region<V>) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.regions[slot as usize] = Some(region);
            return slot;
        }
        self.regions.push(Some(region));
        slot_number(self.regions.len() - 1)
    }

    fn slot(&self, region: u32) -> &Region<V> {
        self.regions[region as usize].as_ref().expect("boundaries name regions")
    }
}

fn slot_number(index: usize) -> u32 {
    u32::try_from(index).expect("four billion regions do not fit in memory")
}

/// Leaves the regions that end at `next` or before it, the innermost first; all that end, if nothing
/// is next.
fn leave(
    around: &mut Vec<(Option<FileId>, u32)>,
    next: Option<&FileId>,
    boundaries: &mut Vec<Boundary>,
) {
    let ends = |(end, _): &mut (Option<FileId>, u32)| {
        end.as_ref().is_some_and(|end| next.is_none_or(|next| end <= next))
    };
    while let Some((Some(start), _)) = around.pop_if(ends) {
        let &(_, region) = around.last().expect("the root region does not end");
        append(boundaries, Boundary { start, region });
    }
}

/// Appends a boundary; where the last one starts at the same place it takes over.
fn append(boundaries: &mut Vec<Boundary>, boundary: Boundary) {
    boundaries.pop_if(|last| last.start == boundary.start);
    boundaries.push(boundary);
}

/// Equal maps have the same regions, however they came about.
impl<V: PartialEq> PartialEq for FileMap<V> {
    fn eq(&self, other: &FileMap<V>) -> bool {
        self.regions().eq(other.regions())
    }
}

impl<V: Eq> Eq for FileMap<V> {}

impl fmt::Display for NotOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} belongs to another: only its owner can delegate it", self.prefix)
    }
}

impl std::error::Error for NotOwner {}

#[cfg(test)]
mod tests;
