//! A group as the locator calls it, and how one was found.

/// A group, by the number that whoever runs the locator has given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group(pub u32);

/// How somebody came to the group of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// By the first level.
    Recent,
    /// By the second.
    All,
    /// By walking the file map.
    Walk,
}
