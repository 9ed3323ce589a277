//! A namespace from a list of paths.

use super::namespace::{Builder, Namespace};

/// Between the names of a stored path. No name holds it, and it sorts before all that names hold, so
/// the plain order of stored paths is the order of their names one by one.
const SEPARATOR: u8 = 0;

/// Paths of files, in any order and any number of times.
#[derive(Debug, Default)]
pub struct Paths {
    text: Vec<u8>,
    /// Where each path ends in `text`.
    ends: Vec<usize>,
}

impl Paths {
    /// Adds the path of a file, relative to the root. Empty names are left out.
    pub fn add(&mut self, path: &[u8]) {
        let start = self.text.len();
        for name in path.split(|&byte| byte == b'/' || byte == SEPARATOR) {
            if !name.is_empty() {
                if self.text.len() > start {
                    self.text.push(SEPARATOR);
                }
                self.text.extend_from_slice(name);
            }
        }
        if self.text.len() > start {
            self.ends.push(self.text.len());
        }
    }

    /// The tree of these files, children in the order of the bytes of their names. What is a file
    /// here and a directory there is a directory.
    pub fn into_namespace(self) -> Namespace {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let mut paths: Vec<&[u8]> =
            starts.zip(&self.ends).map(|(start, &end)| &self.text[start..end]).collect();
        paths.sort_unstable();
        paths.dedup();
        build(&paths)
    }
}

/// The tree of these sorted paths.
fn build(paths: &[&[u8]]) -> Namespace {
    let mut builder = Builder::new();
    // The directories from the root to where the last path led: number, and the length of the
    // path with its separator.
    let mut open = vec![(0, 0)];
    let mut last: &[u8] = b"";
    for (index, path) in paths.iter().enumerate() {
        while !path.starts_with(&last[..open.last().expect("the root stays open").1]) {
            open.pop();
        }
        let &(mut dir, mut depth) = open.last().expect("every path is in the root");
        while let Some(name) = path[depth..].iter().position(|&byte| byte == SEPARATOR) {
            depth += name + 1;
            dir = builder.dir(dir);
            open.push((dir, depth));
        }
        let is_dir = paths
            .get(index + 1)
            .is_some_and(|next| next.get(path.len()) == Some(&SEPARATOR) && next.starts_with(path));
        if !is_dir {
            builder.file(dir);
        }
        last = path;
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::super::namespace::Order;
    use super::*;

    /// Draws the tree of these paths: a directory is what it holds, in brackets.
    fn draw(paths: &[&str]) -> String {
        fn dir(namespace: &Namespace, number: usize) -> String {
            let children = namespace.numbered(number, Order::Name).map(|(_, child)| {
                child.dir().map_or("f".to_owned(), |number| dir(namespace, number))
            });
            format!("[{}]", children.collect::<String>())
        }
        let mut list = Paths::default();
        paths.iter().for_each(|path| list.add(path.as_bytes()));
        dir(&list.into_namespace(), 0)
    }

    #[test]
    fn paths_become_a_tree() {
        assert_eq!(draw(&[]), "[]");
        assert_eq!(draw(&["a", "b/c", "b/d/e", "f"]), "[f[f[f]]f]");
        assert_eq!(draw(&["a/b/c", "d/b/c"]), "[[[f]][[f]]]");
        assert_eq!(draw(&["a/b/c", "a/bc/c", "ab"]), "[[[f][f]]f]");
    }

    #[test]
    fn order_is_by_names_not_by_bytes_of_the_path() {
        // As bytes of a path, "a-b/…" would stand between "a" and "a/…".
        assert_eq!(draw(&["a-b/x", "a/y", "a/z"]), "[[ff][f]]");
        assert_eq!(draw(&["z", "b/x", "a"]), "[f[f]f]");
    }

    #[test]
    fn a_path_counts_once_and_a_directory_is_no_file() {
        assert_eq!(draw(&["a", "a", "/a", "a/"]), "[f]");
        assert_eq!(draw(&["lib", "lib/x", "lib/x", "libs"]), "[[f]f]");
        assert_eq!(draw(&["", "/", "//"]), "[]");
    }
}
