//! Debian's namespaces, from the Contents lists: who ships which path.
//!
//! A line is a path, white space, and the packages that ship it, with commas between. Paths may hold
//! spaces. Parts of a list are parts of the archive: whole packages in a seeded order.

use std::collections::{BTreeMap, BTreeSet};

use base::Rng;

use super::{contents::Lines, namespace::Namespace, paths::Paths};
use crate::Failure;

/// How packages share the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All are unpacked in the root, as on an installed machine.
    Merged,
    /// Each has its own directory, letter/package, as on a server of projects.
    Apart,
}

/// The packages of a list.
#[derive(Debug)]
pub struct Archive<L> {
    lines: L,
    layout: Layout,
    /// In a seeded order, each with the number of its files.
    packages: Vec<(Box<[u8]>, u64)>,
}

impl<L: Lines> Archive<L> {
    /// Counts what a list holds.
    pub fn new(lines: L, layout: Layout, rng: &mut Rng) -> Result<Archive<L>, Failure> {
        let mut counts: BTreeMap<Box<[u8]>, u64> = BTreeMap::new();
        lines.each(&mut |line| {
            for (_, package) in entries(line) {
                match counts.get_mut(package) {
                    Some(count) => *count += 1,
                    None => drop(counts.insert(package.into(), 1)),
                }
            }
        })?;
        let mut packages: Vec<(Box<[u8]>, u64)> = counts.into_iter().collect();
        rng.shuffle(&mut packages);
        Ok(Archive { lines, layout, packages })
    }

    /// The files of all packages; one that two of them ship counts twice.
    pub fn file_count(&self) -> u64 {
        self.packages.iter().map(|(_, count)| count).sum()
    }

    /// The namespace of the first packages in the seeded order that have this many files together. A
    /// smaller part lies within a larger one.
    pub fn part(&self, files: u64) -> Result<Namespace, Failure> {
        let mut sum = 0;
        let is_short = |(_, count): &&(Box<[u8]>, u64)| {
            let is_short = sum < files;
            sum += count;
            is_short
        };
        let chosen: BTreeSet<&[u8]> =
            self.packages.iter().take_while(is_short).map(|(package, _)| &**package).collect();
        let mut paths = Paths::default();
        let mut buffer = Vec::new();
        self.lines.each(&mut |line| {
            for (path, package) in entries(line).filter(|(_, package)| chosen.contains(package)) {
                match self.layout {
                    Layout::Merged => paths.add(path),
                    Layout::Apart => {
                        buffer.clear();
                        buffer.extend_from_slice(&package[..1]);
                        buffer.push(b'/');
                        buffer.extend_from_slice(package);
                        buffer.push(b'/');
                        buffer.extend_from_slice(path);
                        paths.add(&buffer);
                    }
                }
            }
        })?;
        Ok(paths.into_namespace())
    }
}

/// The (path, package) pairs of a line. Lines of another form have none.
fn entries(line: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let cut = line.iter().rposition(u8::is_ascii_whitespace).unwrap_or(0);
    let path = line[..cut].trim_ascii_end();
    let packages = line[cut..].trim_ascii_start().split(|&byte| byte == b',');
    // Binary lists name the section before the package.
    let packages = packages.filter_map(|package| package.rsplit(|&byte| byte == b'/').next());
    packages
        .filter(|package| !package.is_empty())
        .map(move |package| (path, package))
        .filter(|(path, _)| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
bin/abpoa                         science/abpoa
etc/options/00 Black on White.css web/shellinabox,non-free/web/fork
usr/share/doc/abpoa/copyright\tscience/abpoa
usr/share/doc/fork/copyright\tnon-free/web/fork
";

    impl Lines for &str {
        fn each(&self, line: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
            self.lines().for_each(|text| line(text.as_bytes()));
            Ok(())
        }
    }

    #[track_caller]
    fn check(line: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|&(p, q)| (p.as_bytes(), q.as_bytes())).collect();
        assert_eq!(entries(line.as_bytes()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_line_is_a_path_and_its_packages() {
        check("bin/abpoa     science/abpoa", &[("bin/abpoa", "abpoa")]);
        check("#/chain.js\tnode-es6-iterator", &[("#/chain.js", "node-es6-iterator")]);
        check("a/b c  d.css web/x,non-free/web/y", &[("a/b c  d.css", "x"), ("a/b c  d.css", "y")]);
        check("", &[]);
        check("nothing-but-a-path", &[]);
        check("path ", &[]);
    }

    #[test]
    fn merged_packages_share_their_paths() {
        let archive = Archive::new(LIST, Layout::Merged, &mut Rng::new(1)).unwrap();
        assert_eq!(archive.file_count(), 5);
        let namespace = archive.part(5).unwrap();
        // bin, etc/options, usr/share/doc with two, and the root.
        assert_eq!((namespace.file_count(), namespace.dir_count()), (4, 9));
    }

    #[test]
    fn packages_apart_share_only_their_letter() {
        let archive = Archive::new(LIST, Layout::Apart, &mut Rng::new(1)).unwrap();
        let namespace = archive.part(5).unwrap();
        assert_eq!(namespace.file_count(), 5);
        // Letters a, f, s; three packages; in abpoa bin and usr/share/doc/abpoa, in fork etc/options
        // and usr/share/doc/fork, in shellinabox etc/options; and the root.
        assert_eq!(namespace.dir_count(), 3 + 3 + 5 + 6 + 2 + 1);
    }

    #[test]
    fn a_part_is_of_whole_packages_and_a_seed_decides_which() {
        let files = |seed, part| {
            let archive = Archive::new(LIST, Layout::Apart, &mut Rng::new(seed)).unwrap();
            archive.part(part).unwrap().file_count()
        };
        assert_eq!(files(1, 0), 0);
        let ones: BTreeSet<usize> = (0..20).map(|seed| files(seed, 1)).collect();
        assert_eq!(ones, BTreeSet::from([1, 2]), "shellinabox has one file, the others two");
        assert!((0..20).all(|seed| files(seed, 1) < files(seed, 3)));
    }
}
