//! A tree in canonical form, to compare two of them.

use std::{collections::BTreeMap, fmt::Write};

use base::{Digest, Domain, Hasher};

use super::{FileSystem, Ino, inode::Body, inode::Inode};

const CONTENT: Domain = Domain::new("reference file content v1");
const TREE: Domain = Domain::new("reference file tree v1");

impl FileSystem {
    /// One line for each name, in order: mode, owner, group, links, size, path and what is there.
    ///
    /// Times and inode numbers are left out; a second name of an inode refers to the first.
    pub fn dump(&self) -> String {
        let mut text = String::new();
        let mut paths = BTreeMap::new();
        let mut todo = vec![(String::from("/"), Ino::ROOT)];
        while let Some((path, ino)) = todo.pop() {
            let Ok(inode) = self.inode(ino) else { continue };
            let line = match paths.get(&ino) {
                Some(first) => format!("{path} = {first}"),
                None => format!("{path} {}", describe(inode)),
            };
            text.push_str(&line);
            text.push('\n');
            if let Body::Directory(directory) = &inode.body {
                let base = path.trim_end_matches('/');
                let child = |(name, ino): (&Vec<u8>, &Ino)| {
                    (format!("{base}/{}", name.escape_ascii()), *ino)
                };
                todo.extend(directory.entries.iter().rev().map(child));
            }
            paths.entry(ino).or_insert(path);
        }
        text
    }

    /// The digest of [`FileSystem::dump`].
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new(TREE);
        hasher.update(self.dump().as_bytes());
        hasher.finish()
    }

    /// What is not zero in a file: an offset and bytes each, the same for equal contents.
    pub fn runs(&self, ino: Ino) -> Vec<(u64, &[u8])> {
        match self.inode(ino).map(|inode| &inode.body) {
            Ok(Body::File(content)) => content.runs().collect(),
            _ => Vec::new(),
        }
    }
}

fn describe(inode: &Inode) -> String {
    let Inode { mode, uid, gid, nlink, .. } = inode;
    let mut line = format!("{mode:04o} {uid}:{gid} {nlink}");
    let written = match &inode.body {
        Body::Directory(_) => write!(line, " directory"),
        Body::Symlink(target) => write!(line, " -> {}", target.escape_ascii()),
        Body::File(content) => {
            let mut hasher = Hasher::new(CONTENT);
            for (offset, bytes) in content.runs() {
                hasher.update(&offset.to_le_bytes());
                hasher.update(bytes);
            }
            write!(line, " file {} {}", content.size(), hasher.finish())
        }
    };
    written.expect("a string takes any text");
    for (name, value) in &inode.xattrs {
        let (name, value) = (name.escape_ascii(), value.escape_ascii());
        write!(line, " {name}={value}").expect("a string takes any text");
    }
    line
}
