//! A namespace as arrays: millions of files cost four bytes each.
//!
//! Directories are numbered so that a parent comes before its children; number 0 is the root. Files
//! have no number: nothing here asks which file it is, only where it lies.

use std::num::NonZeroU64;

/// The order in which the children of a directory are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By name, files and subdirectories mixed.
    Name,
    /// All files, then all subdirectories; by name within each.
    FilesFirst,
    /// All subdirectories, then all files; by name within each.
    SubdirsFirst,
}

impl Order {
    /// Every order, with its name in a plan.
    pub const ALL: [(Order, &str); 3] = [
        (Order::Name, "name-order"),
        (Order::FilesFirst, "files-first"),
        (Order::SubdirsFirst, "subdirs-first"),
    ];

    fn is_early(self, child: Child) -> bool {
        match self {
            Order::Name => true,
            Order::FilesFirst => child.is_file(),
            Order::SubdirsFirst => !child.is_file(),
        }
    }
}

/// What stands in a directory: a file, or the directory of some number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child(u32);

impl Child {
    const FILE: Child = Child(u32::MAX);

    /// Whether this is a file.
    pub fn is_file(self) -> bool {
        self == Child::FILE
    }

    /// The directory's number, if this is one.
    pub fn dir(self) -> Option<usize> {
        (!self.is_file()).then_some(self.0 as usize)
    }
}

/// A tree of directories and files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// The children of directory `d`, by name, are `children[starts[d]..starts[d + 1]]`.
    starts: Vec<usize>,
    children: Vec<Child>,
}

impl Namespace {
    /// How many directories there are, with the root.
    pub fn dir_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many files there are.
    pub fn file_count(&self) -> usize {
        self.children.len() - (self.dir_count() - 1)
    }

    /// The children of a directory with their numbers, in this order.
    pub fn numbered(
        &self,
        dir: usize,
        order: Order,
    ) -> impl Iterator<Item = (NonZeroU64, Child)> + '_ {
        let children = &self.children[self.starts[dir]..self.starts[dir + 1]];
        let part =
            move |early| children.iter().copied().filter(move |&c| order.is_early(c) == early);
        let numbers = (1..).map(|n| NonZeroU64::new(n).expect("numbers start at one"));
        numbers.zip(part(true).chain(part(false)))
    }

    /// Renames: gives the children of each directory a new order by name.
    pub fn rearrange(&mut self, mut arrange: impl FnMut(&mut [Child])) {
        for span in self.starts.windows(2) {
            arrange(&mut self.children[span[0]..span[1]]);
        }
    }
}

/// A namespace that is being made. Children are listed in the order in which they were added.
#[derive(Debug)]
pub struct Builder {
    dir_count: u32,
    /// Parent and child, in the order of arrival.
    entries: Vec<(u32, Child)>,
}

impl Builder {
    /// The root alone.
    pub fn new() -> Builder {
        Builder { dir_count: 1, entries: Vec::new() }
    }

    /// Adds a directory and tells its number.
    pub fn dir(&mut self, parent: usize) -> usize {
        let dir = self.dir_count;
        assert!((parent as u64) < u64::from(dir), "a parent comes before its children");
        assert!(dir < Child::FILE.0, "too many directories to number");
        self.dir_count += 1;
        self.entries.push((parent as u32, Child(dir)));
        dir as usize
    }

    /// Adds a file.
    pub fn file(&mut self, parent: usize) {
        assert!((parent as u64) < u64::from(self.dir_count), "the parent exists");
        self.entries.push((parent as u32, Child::FILE));
    }

    /// The namespace, its children in the order of arrival.
    pub fn finish(self) -> Namespace {
        let mut starts = vec![0; self.dir_count as usize + 1];
        for &(parent, _) in &self.entries {
            starts[parent as usize + 1] += 1;
        }
        for dir in 1..starts.len() {
            starts[dir] += starts[dir - 1];
        }
        let mut next = starts.clone();
        let mut children = vec![Child::FILE; self.entries.len()];
        for (parent, child) in self.entries {
            let slot = &mut next[parent as usize];
            children[*slot] = child;
            *slot += 1;
        }
        Namespace { starts, children }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root holds a file, a directory with one file, and a file.
    fn small() -> Namespace {
        let mut builder = Builder::new();
        builder.file(0);
        let dir = builder.dir(0);
        builder.file(dir);
        builder.file(0);
        builder.finish()
    }

    #[test]
    fn children_are_numbered_from_one_in_each_order() {
        let namespace = small();
        let kinds = |order| {
            let numbered: Vec<_> = namespace.numbered(0, order).collect();
            assert!(numbered.iter().map(|(n, _)| n.get()).eq(1..=3));
            numbered.into_iter().map(|(_, child)| child).collect::<Vec<_>>()
        };
        let (file, dir) = (Child::FILE, Child(1));
        assert_eq!(kinds(Order::Name), [file, dir, file]);
        assert_eq!(kinds(Order::FilesFirst), [file, file, dir]);
        assert_eq!(kinds(Order::SubdirsFirst), [dir, file, file]);
    }

    #[test]
    fn files_and_directories_are_counted_apart() {
        assert_eq!((small().dir_count(), small().file_count()), (2, 3));
        let root = Builder::new().finish();
        assert_eq!((root.dir_count(), root.file_count()), (1, 0));
    }

    #[test]
    fn children_are_rearranged_within_their_directory() {
        let mut namespace = small();
        namespace.rearrange(|children| children.rotate_right(1));
        let root: Vec<Child> = namespace.numbered(0, Order::Name).map(|(_, child)| child).collect();
        assert_eq!(root, [Child::FILE, Child::FILE, Child(1)]);
        assert_eq!(namespace.numbered(1, Order::Name).count(), 1);
    }
}
