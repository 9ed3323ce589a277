//! What a mount shows, written down in the way of the model.

use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt, path::Path};

/// A tree: what is at each path.
#[derive(Default)]
pub struct Found {
    pub names: BTreeMap<String, Thing>,
}

pub struct Thing {
    /// All but bytes, and the first path of whatever has several.
    pub what: String,
    /// A file's.
    pub bytes: Option<Vec<u8>>,
}

impl Found {
    pub fn list(&self) -> String {
        let line = |(path, thing): (&String, &Thing)| format!("{path} {}\n", thing.what);
        self.names.iter().map(line).collect()
    }
}

/// Looks at everything below.
pub fn look(root: &Path) -> Found {
    let mut found = Found::default();
    walk(root, "", &mut BTreeMap::new(), &mut found);
    found
}

fn walk(root: &Path, path: &str, firsts: &mut BTreeMap<u64, String>, found: &mut Found) {
    let full = root.join(path);
    let meta = fs::symlink_metadata(&full).unwrap();
    let mode = meta.mode() & 0o7777;
    let first = firsts.entry(meta.ino()).or_insert_with(|| path.to_owned()).clone();
    let nlink = meta.nlink();
    let mut bytes = None;
    let what = if meta.is_dir() {
        format!("directory {mode:o} {nlink}")
    } else if meta.is_symlink() {
        format!("link {nlink} -> {}", fs::read_link(&full).unwrap().display())
    } else {
        let content = fs::read(&full).unwrap();
        assert_eq!(content.len() as u64, meta.len(), "{path}: its size is that of its bytes");
        bytes = Some(content);
        format!("file {mode:o} {nlink} is {first}")
    };
    found.names.insert(path.to_owned(), Thing { what, bytes });
    if meta.is_dir() {
        let mut names: Vec<String> = fs::read_dir(&full)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        for name in names {
            let below = if path.is_empty() { name } else { format!("{path}/{name}") };
            walk(root, &below, firsts, found);
        }
    }
}
