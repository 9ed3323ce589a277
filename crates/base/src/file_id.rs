//! The identifier of a file: a sequence of positive integers that never changes (D9 to D13).
//!
//! A new file takes its parent's identifier and one more integer, never used before; a rename changes
//! nothing. A set of files that share a prefix is a *region*, and since identifiers compare as
//! sequences, a region is one contiguous range: from its prefix up to [`FileId::region_end`].

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    num::NonZeroU64,
    str::FromStr,
};

use crate::{
    bits::{BITS_MAX, Bits, Builder, placed},
    gamma,
    word::{SHORT_MAX, Word},
};

/// The identifier of a file or directory: ⟨⟩ is the root, ⟨1.3⟩ the third child of its first child.
///
/// It takes one machine word. Up to [`FileId::SHORT_MAX`] bits, nothing is on the heap; longer ones
/// share one counted allocation. The order is that of sequences: parents before their children.
///
/// ```
/// # use base::FileId;
/// let id: FileId = "1.3".parse()?;
/// assert_eq!(id.next_sibling(), Some("1.4".parse()?));
/// assert_eq!(id.parent(), Some("1".parse()?));
/// assert!(id.is_prefix_of(&"1.3.7".parse()?));
/// # Ok::<(), base::BadId>(())
/// ```
#[derive(Clone)]
pub struct FileId(Word);

/// The identifier would be longer than [`FileId::BITS_MAX`].
///
/// Not an error of the user's: an identifier promises that near files have near names, not that it
/// spells a path. Whoever creates the file gives it a child identifier of a shorter ancestor instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// A text that is not an identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadId(String);

impl FileId {
    /// The empty sequence.
    pub const ROOT: FileId = FileId(Word::EMPTY);
    /// The longest identifier. The longest seen in millions of real files has 144 bits; this leaves
    /// room for a chain of about 700 directories, and a key never exceeds 513 bytes.
    pub const BITS_MAX: usize = BITS_MAX;
    /// Up to this length nothing is on the heap.
    pub const SHORT_MAX: usize = SHORT_MAX;

    /// The identifier of this file's child number `n`.
    pub fn child(&self, n: NonZeroU64) -> Result<FileId, TooLong> {
        let (code, count) = gamma::code(n);
        let bits = self.0.bits();
        let len = bits.len + count;
        if len > BITS_MAX {
            return Err(TooLong);
        }
        Ok(FileId(Word::new(len, |index| bits.word(index) | placed(code, count, bits.len, index))))
    }

    /// All but the last integer; the root has no parent.
    pub fn parent(&self) -> Option<FileId> {
        self.split_last().map(|(parent, _)| parent)
    }

    /// The last integer: which child of its parent it is.
    pub fn number(&self) -> Option<NonZeroU64> {
        self.split_last().map(|(_, number)| number)
    }

    /// The parent's next child, if a number is left for it.
    pub fn next_sibling(&self) -> Option<FileId> {
        let (parent, number) = self.split_last()?;
        parent.child(number.checked_add(1)?).ok()
    }

    /// The first identifier behind this one and everything below it; none if there is nothing behind.
    ///
    /// So the region of `id` is every identifier from `id` on, up to but not including this one.
    pub fn region_end(&self) -> Option<FileId> {
        let mut id = self.clone();
        loop {
            if let Some(next) = id.next_sibling() {
                return Some(next);
            }
            id = id.parent()?;
        }
    }

    /// Whether the other identifier is this one or lies below it.
    pub fn is_prefix_of(&self, other: &FileId) -> bool {
        self.0.bits().is_prefix_of(&other.0.bits())
    }

    /// The length of the γ′ code in bits.
    pub fn bit_len(&self) -> usize {
        self.0.bits().len
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.bit_len() == 0
    }

    /// The integers, from the root down.
    pub fn components(&self) -> Components<'_> {
        Components { bits: self.0.bits(), position: 0 }
    }

    /// This identifier's prefixes, from the root to itself.
    pub fn prefixes(&self) -> impl Iterator<Item = FileId> {
        let mut components = self.components();
        std::iter::once(FileId::ROOT).chain(std::iter::from_fn(move || {
            components.next()?;
            Some(truncated(&components.bits, components.position))
        }))
    }

    fn split_last(&self) -> Option<(FileId, NonZeroU64)> {
        let mut components = self.components();
        let mut last = None;
        loop {
            let start = components.position;
            match components.next() {
                Some(number) => last = Some((start, number)),
                None => break,
            }
        }
        last.map(|(start, number)| (truncated(&self.0.bits(), start), number))
    }

    pub(crate) fn from_builder(builder: &Builder) -> FileId {
        let bits = builder.bits();
        FileId(Word::new(bits.len, |index| bits.word(index)))
    }
}

fn truncated(bits: &Bits<'_>, len: usize) -> FileId {
    FileId(Word::new(len, |index| {
        let kept = len.saturating_sub(64 * index).min(64) as u32;
        bits.word(index) & u64::MAX.checked_shl(64 - kept).unwrap_or(0)
    }))
}

impl TryFrom<&[NonZeroU64]> for FileId {
    type Error = TooLong;

    fn try_from(components: &[NonZeroU64]) -> Result<FileId, TooLong> {
        let mut builder = Builder::new();
        for &n in components {
            let (code, count) = gamma::code(n);
            if !builder.push(code, count) {
                return Err(TooLong);
            }
        }
        Ok(FileId::from_builder(&builder))
    }
}

/// The integers of an identifier, from the root down.
#[derive(Clone)]
pub struct Components<'a> {
    bits: Bits<'a>,
    position: usize,
}

impl Iterator for Components<'_> {
    type Item = NonZeroU64;

    fn next(&mut self) -> Option<NonZeroU64> {
        if self.position == self.bits.len {
            return None;
        }
        let ones = self.bits.window(self.position).leading_ones();
        let below = self.bits.window(self.position + ones as usize + 1);
        self.position += 2 * ones as usize + 1;
        Some(gamma::integer(ones, below.checked_shr(64 - ones).unwrap_or(0)))
    }
}

impl PartialEq for FileId {
    #[inline]
    fn eq(&self, other: &FileId) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for FileId {}

impl Ord for FileId {
    // Searches in maps of identifiers do little else, so what is usual has to be in place there.
    #[inline]
    fn cmp(&self, other: &FileId) -> Ordering {
        match (self.0.as_short(), other.0.as_short()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => cmp_long(self, other),
        }
    }
}

#[cold]
fn cmp_long(a: &FileId, b: &FileId) -> Ordering {
    a.0.bits().cmp(&b.0.bits())
}

impl PartialOrd for FileId {
    #[inline]
    fn partial_cmp(&self, other: &FileId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for FileId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.bits().hash(state);
    }
}

impl Default for FileId {
    fn default() -> FileId {
        FileId::ROOT
    }
}

/// Integers with dots between them; the empty sequence is `root`.
impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut components = self.components();
        match components.next() {
            None => f.write_str("root"),
            Some(first) => {
                write!(f, "{first}")?;
                components.try_for_each(|n| write!(f, ".{n}"))
            }
        }
    }
}

impl fmt::Debug for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "⟨{self}⟩")
    }
}

impl FromStr for FileId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<FileId, BadId> {
        if text == "root" {
            return Ok(FileId::ROOT);
        }
        let mut builder = Builder::new();
        for part in text.split('.') {
            let plain = part.starts_with(|c: char| ('1'..='9').contains(&c));
            let n = part.parse::<NonZeroU64>().ok().filter(|_| plain);
            let n = n.ok_or_else(|| {
                BadId(format!("`{part}` in `{text}` is not an integer from 1 to 2^64 - 1"))
            })?;
            let (code, count) = gamma::code(n);
            if !builder.push(code, count) {
                return Err(BadId(format!("`{text}` {TooLong}")));
            }
        }
        Ok(FileId::from_builder(&builder))
    }
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "is longer than {} bits", FileId::BITS_MAX)
    }
}

impl std::error::Error for TooLong {}

impl fmt::Display for BadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an identifier: {}; write it like 1.3.5, or root", self.0)
    }
}

impl std::error::Error for BadId {}

#[cfg(test)]
mod tests;
