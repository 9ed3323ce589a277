//! Calls written down as lines, with paths and people instead of numbers.
//!
//! `alice mkdir /a 755` is one call; the tests' `check` says which calls there are.

use std::collections::BTreeMap;

use super::*;

/// A tree, and the names that a script gives to people and handles.
pub(super) struct Stage {
    pub(super) fs: FileSystem,
    now: u64,
    handles: BTreeMap<String, Handle>,
}

/// Alice and Bob share group 2000. Each has a group with the number of the user.
pub(super) fn actor(name: &str) -> Actor {
    match name {
        "root" => Actor::root(),
        "alice" => Actor { uid: 1001, gid: 1001, groups: vec![2000] },
        "bob" => Actor { uid: 1002, gid: 1002, groups: vec![2000] },
        "carol" => Actor { uid: 1003, gid: 1003, groups: vec![] },
        _ => panic!("nobody is called {name}"),
    }
}

impl Stage {
    /// A root that is open to all.
    pub(super) fn new(rules: Rules) -> Stage {
        Stage { fs: FileSystem::new(rules, 0o777), now: 0, handles: BTreeMap::new() }
    }

    /// Makes one call at the next moment, and says what it answered.
    pub(super) fn call(&mut self, line: &str) -> String {
        self.now += 1;
        let words: Vec<&str> = line.split_whitespace().collect();
        let (who, words) = words.split_first().expect("a line names who acts");
        self.perform(&actor(who), words).unwrap_or_else(|errno| errno.to_string())
    }

    fn perform(&mut self, by: &Actor, words: &[&str]) -> Answer<String> {
        let (now, root) = (self.now, Actor::root());
        let find = |fs: &FileSystem, path: &str| walk(fs, &root, path);
        let parent = |fs: &FileSystem, path: &str| {
            let (dir, _) = path.rsplit_once('/').expect("paths begin with a slash");
            walk(fs, by, dir)
        };
        let name = |path: &str| path.rsplit('/').next().expect("a split has parts").to_owned();
        let fs = &mut self.fs;
        match *words {
            ["mkdir", path, mode] => {
                let at = (parent(fs, path)?, name(path));
                fs.mkdir(by, now, At(at.0, at.1.as_bytes()), octal(mode))?;
            }
            ["create", path, mode] => {
                let at = (parent(fs, path)?, name(path));
                fs.create(by, now, At(at.0, at.1.as_bytes()), octal(mode))?;
            }
            ["create", path, mode, how, handle] => {
                let at = (parent(fs, path)?, name(path));
                let at = At(at.0, at.1.as_bytes());
                let (_, opened) = fs.create_open(by, now, at, octal(mode), how_of(how))?;
                self.handles.insert(handle.to_owned(), opened);
            }
            ["symlink", target, path] => {
                let at = (parent(fs, path)?, name(path));
                fs.symlink(by, now, At(at.0, at.1.as_bytes()), target.as_bytes())?;
            }
            ["readlink", path] => {
                return Ok(String::from_utf8_lossy(fs.readlink(find(fs, path)?)?).into());
            }
            ["link", old, path] => {
                let at = (parent(fs, path)?, name(path));
                fs.link(by, now, find(fs, old)?, At(at.0, at.1.as_bytes()))?;
            }
            ["unlink", path] => {
                fs.unlink(by, now, At(parent(fs, path)?, name(path).as_bytes()))?;
            }
            ["rmdir", path] => fs.rmdir(by, now, At(parent(fs, path)?, name(path).as_bytes()))?,
            [verb @ ("rename" | "rename-noreplace" | "exchange"), old, new] => {
                let flag = match verb {
                    "rename" => Flag::Replace,
                    "exchange" => Flag::Exchange,
                    _ => Flag::NoReplace,
                };
                let (from, to) = (parent(fs, old)?, parent(fs, new)?);
                let (old, new) = (name(old), name(new));
                fs.rename(by, now, At(from, old.as_bytes()), At(to, new.as_bytes()), flag)?;
            }
            ["chmod", path, mode] => {
                fs.setattr(by, now, find(fs, path)?, Change::Mode(octal(mode)))?;
            }
            ["chown", path, owner] => {
                let (uid, gid) = owner.split_once(':').expect("owner and group");
                let (uid, gid) = (uid.parse().ok(), gid.parse().ok());
                fs.setattr(by, now, find(fs, path)?, Change::Owner { uid, gid })?;
            }
            ["truncate", path, size] => {
                fs.setattr(by, now, find(fs, path)?, Change::Size(number(size)))?;
            }
            ["utimens", path, atime, mtime] => {
                let change = Change::Times { atime: stamp(atime), mtime: stamp(mtime) };
                fs.setattr(by, now, find(fs, path)?, change)?;
            }
            ["lookup", path] => {
                fs.lookup(by, At(parent(fs, path)?, name(path).as_bytes()))?;
            }
            ["access", path, bits] => {
                fs.access(by, find(fs, path)?, Permission::from_bits(octal(bits)))?;
            }
            ["setxattr", path, key, value, ref put @ ..] => {
                let put = match put {
                    ["create"] => Put::Create,
                    ["replace"] => Put::Replace,
                    _ => Put::Any,
                };
                let ino = find(fs, path)?;
                fs.setxattr(by, now, ino, key.as_bytes(), value.as_bytes(), put)?;
            }
            ["getxattr", path, key] => {
                let value = fs.getxattr(by, find(fs, path)?, key.as_bytes())?;
                return Ok(String::from_utf8_lossy(value).into());
            }
            ["removexattr", path, key] => {
                fs.removexattr(by, now, find(fs, path)?, key.as_bytes())?;
            }
            ["listxattr", path] => {
                let names = fs.listxattr(find(fs, path)?)?;
                return Ok(names.join(&b' ').escape_ascii().to_string());
            }
            ["readdir", path] => {
                let entries = fs.readdir(by, find(fs, path)?)?;
                let names: Vec<_> =
                    entries.iter().map(|e| e.name.escape_ascii().to_string()).collect();
                return Ok(names.join(" "));
            }
            ["open", path, how, handle] => {
                let opened = fs.open(by, now, find(fs, path)?, how_of(how))?;
                self.handles.insert(handle.to_owned(), opened);
            }
            ["stat", path] => {
                let attr = fs.getattr(find(fs, path)?)?;
                let Attr { mode, uid, gid, nlink, size, mtime, ctime, .. } = attr;
                return Ok(format!("{mode:o} {uid}:{gid} {nlink} {size} {mtime} {ctime}"));
            }
            _ => return self.perform_open(by, words),
        }
        Ok("ok".to_owned())
    }

    fn perform_open(&mut self, by: &Actor, words: &[&str]) -> Answer<String> {
        let now = self.now;
        let handle = self.handles.get(words[1]).copied().unwrap_or(Handle(0));
        let fs = &mut self.fs;
        let owner = Owner(u64::from(by.uid));
        match *words {
            ["close", _] => {
                fs.flush(handle, owner)?;
                fs.close(handle)?;
            }
            ["read", _, offset, len] => {
                let bytes = fs.read(handle, number(offset), number(len))?;
                return Ok(bytes.escape_ascii().to_string());
            }
            ["write", _, offset, text] => {
                return Ok(fs.write(by, now, handle, number(offset), text.as_bytes())?.to_string());
            }
            ["ftruncate", _, size] => fs.truncate_open(by, now, handle, number(size))?,
            ["lock", _, kind, range] => {
                fs.set_lock(handle, owner, range_of(range), lock_of(kind))?;
            }
            ["test", _, kind, range] => {
                let lock = lock_of(kind).expect("a test is for a lock");
                let spans = fs.test_lock(handle, owner, range_of(range), lock)?;
                let span = |span: &Span| {
                    let Span { range: Range { start, end }, owner: Owner(owner), lock } = span;
                    format!("{owner} {lock:?} {start}-{end}")
                };
                let spans: Vec<_> = spans.iter().map(span).collect();
                return Ok(if spans.is_empty() { "free".to_owned() } else { spans.join(", ") });
            }
            ["flock", _, kind] => fs.flock(handle, lock_of(kind))?,
            _ => panic!("no call is written {words:?}"),
        }
        Ok("ok".to_owned())
    }
}

fn walk(fs: &FileSystem, actor: &Actor, path: &str) -> Answer<Ino> {
    let names = path.split('/').filter(|name| !name.is_empty());
    names.into_iter().try_fold(Ino::ROOT, |dir, name| fs.lookup(actor, At(dir, name.as_bytes())))
}

fn octal(text: &str) -> u32 {
    u32::from_str_radix(text, 8).expect("an octal number")
}

fn number(text: &str) -> u64 {
    if text == "max" { i64::MAX as u64 } else { text.parse().expect("a number") }
}

fn stamp(text: &str) -> Stamp {
    match text {
        "omit" => Stamp::Omit,
        "now" => Stamp::Now,
        time => Stamp::At(number(time)),
    }
}

fn how_of(text: &str) -> How {
    let (access, options) = text.split_once('+').unwrap_or((text, ""));
    let how = match access {
        "r" => How::READ,
        "w" => How::WRITE,
        "rw" => How::BOTH,
        _ => panic!("nothing is opened {text}"),
    };
    How { append: options == "append", truncate: options == "truncate", ..how }
}

fn lock_of(text: &str) -> Option<Lock> {
    match text {
        "shared" => Some(Lock::Shared),
        "exclusive" => Some(Lock::Exclusive),
        "none" => None,
        _ => panic!("no lock is called {text}"),
    }
}

fn range_of(text: &str) -> Range {
    let (start, end) = text.split_once('-').expect("first and last byte");
    Range { start: number(start), end: number(end) }
}
