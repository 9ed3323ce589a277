//! A world in memory that knows everything, and the words in which tests speak of it.

use std::collections::{BTreeMap, BTreeSet};

use base::FileId;
use lease::{Client, Name, Scope, message::Want};
use triomphe::Arc;

use crate::{
    actor::Actor,
    operation::{Act, Changes, Moment, Operation, Over, When},
    record::{Access, Content, Entry, File, Key, Numbering, Sort, Times},
    refusal::Refusal,
    view::{Birth, Stop, View},
};

struct Plain {
    files: BTreeMap<FileId, Arc<File>>,
    entries: BTreeMap<Key, Entry>,
    open: BTreeSet<FileId>,
    /// What paths of opened files stood for.
    handles: BTreeMap<String, FileId>,
    born: u64,
    /// The machine that acts: 1, unless the user's name says `@2`.
    client: Client,
}

const USERS: [(&str, u32); 4] = [("root", 0), ("ann", 1), ("bob", 2), ("cat", 3)];

fn user(name: &str) -> u32 {
    USERS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("who is {name}?")).1
}

fn actor(name: &str) -> Actor {
    let uid = user(name);
    Actor { uid, gid: uid, groups: if name == "cat" { vec![2] } else { Vec::new() } }
}

/// Plays a script, of which each line ends well unless it says how it is refused; then the tree is this.
#[track_caller]
pub(super) fn check(script: &str, expected: &str) {
    let mut plain = Plain::new();
    for (time, line) in script.lines().enumerate() {
        let (line, expected) = match line.split_once(" = ") {
            Some((line, refusal)) => (line.trim(), refusal.trim()),
            None => (line.trim(), ""),
        };
        let before = plain.show();
        let refusal = match plain.play(line, 1 + time as i64) {
            Ok(()) => String::new(),
            Err(refusal) => format!("{refusal:?}"),
        };
        assert_eq!(refusal, expected, "{line}");
        if !refusal.is_empty() {
            assert_eq!(plain.show(), before, "{line} is refused and changes nothing");
        }
    }
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    assert_eq!(plain.show(), expected);
    for (file, record) in plain.files.iter().filter(|(_, file)| file.sort == Sort::Directory) {
        let entries = plain.entries.iter().filter(|(key, _)| key.file == *file);
        let directories = entries.filter(|(_, entry)| entry.sort == Sort::Directory).count();
        assert_eq!(record.links as usize, 2 + directories, "the links of {file}");
    }
}

impl Plain {
    fn new() -> Plain {
        let root = File {
            serial: 1,
            sort: Sort::Directory,
            access: Access { mode: 0o755, uid: 0, gid: 0 },
            times: Times::default(),
            content: Content::default(),
            links: 2,
            parent: FileId::ROOT,
            numbering: Numbering::of(Client::GROUP),
            rare: None,
        };
        Plain {
            files: BTreeMap::from([(FileId::ROOT, Arc::new(root))]),
            entries: BTreeMap::new(),
            open: BTreeSet::new(),
            handles: BTreeMap::new(),
            born: 0,
            client: Client(1),
        }
    }

    /// A path's directory and last name.
    fn split(&self, path: &str) -> (FileId, Name) {
        let (directory, name) = path.rsplit_once('/').unwrap();
        (self.find(directory), Name::new(name.as_bytes()).unwrap())
    }

    /// What a path stands for; `#/a` what `/a` stood for when it was opened.
    fn find(&self, path: &str) -> FileId {
        if let Some(handle) = path.strip_prefix('#') {
            return self.handles[handle].clone();
        }
        let names = path.split('/').filter(|name| !name.is_empty());
        names.fold(FileId::ROOT, |directory, name| {
            let key = Key::entry(&directory, &Name::new(name.as_bytes()).unwrap());
            self.entries.get(&key).unwrap_or_else(|| panic!("no {path}")).file.clone()
        })
    }

    fn play(&mut self, line: &str, time: i64) -> Result<(), Refusal> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (who, verb, path) = (words[0], words[1], words[2]);
        let (who, machine) = who.split_once('@').unwrap_or((who, "1"));
        self.client = Client(machine.parse().unwrap());
        let word = |at: usize| words.get(at).copied().unwrap_or("");
        let mode = |at: usize| u16::from_str_radix(word(at), 8).unwrap();
        let birth = Birth::default();
        let set = |changes| Act::SetAttr { file: self.find(path), changes };
        let act = match verb {
            "create" => {
                let (directory, name) = self.split(path);
                Act::Create { directory, name, mode: mode(3), birth }
            }
            "mkdir" => {
                let (directory, name) = self.split(path);
                Act::Mkdir { directory, name, mode: mode(3), birth }
            }
            "symlink" => {
                let (directory, name) = self.split(path);
                let target = match word(3).strip_suffix('*') {
                    Some(count) => vec![b'x'; count.parse().unwrap()],
                    None => word(3).replace('-', "").into_bytes(),
                };
                Act::Symlink { directory, name, target, birth }
            }
            "link" => {
                let (directory, name) = self.split(word(3));
                Act::Link { file: self.find(path), directory, name }
            }
            "unlink" => {
                let (directory, name) = self.split(path);
                Act::Unlink { directory, name, is_open: false }
            }
            "rmdir" => {
                let (directory, name) = self.split(path);
                Act::Rmdir { directory, name }
            }
            "rename" => {
                let ((from, from_name), (to, to_name)) = (self.split(path), self.split(word(3)));
                let over = match word(4) {
                    "noreplace" => Over::Refuse,
                    "exchange" => Over::Exchange,
                    _ => Over::Replace,
                };
                Act::Rename { from, from_name, to, to_name, over, is_open: false }
            }
            "chmod" => set(Changes { mode: Some(mode(3)), ..Changes::default() }),
            "chown" => {
                let (uid, gid) = word(3).split_once(':').unwrap_or((word(3), ""));
                let some = |name: &str| (!name.is_empty()).then(|| user(name));
                set(Changes { uid: some(uid), gid: some(gid), ..Changes::default() })
            }
            "touch" => {
                let now = Some(Moment::Now);
                set(Changes { accessed: now, modified: now, ..Changes::default() })
            }
            "date" => {
                let at = Some(Moment::At(word(3).parse().unwrap()));
                set(Changes { modified: at, ..Changes::default() })
            }
            "xattr" | "xattr-new" | "xattr-old" => Act::SetXattr {
                file: self.find(path),
                name: word(3).as_bytes().to_vec(),
                value: Some(vec![b'x'; word(4).parse().unwrap()]),
                when: match verb {
                    "xattr-new" => When::Absent,
                    "xattr-old" => When::Present,
                    _ => When::Always,
                },
            },
            "unxattr" => Act::SetXattr {
                file: self.find(path),
                name: word(3).as_bytes().to_vec(),
                value: None,
                when: When::Always,
            },
            "write" => {
                let (size, is_live) = (word(3).parse().unwrap(), word(4) == "live");
                let content = Content { size, is_live, ..Content::default() };
                Act::SetContent { file: self.find(path), content }
            }
            "keep" | "leave" => {
                let (file, is_live) = (self.find(path), verb == "keep");
                Act::Keep { file, version: 1, is_live, digest: None }
            }
            "lock" | "unlock" => {
                let (mark, range) = word(3).split_at(1);
                let (start, end) = range.split_once('-').unwrap();
                Act::Lock {
                    file: self.find(path),
                    owner: u64::from(user(who)),
                    start: start.parse().unwrap(),
                    end: end.parse().unwrap(),
                    hold: (verb == "lock").then_some(mark == "x"),
                }
            }
            "open" => {
                let file = self.find(path);
                self.handles.insert(path.to_owned(), file.clone());
                self.open.insert(file);
                return Ok(());
            }
            "close" => {
                self.open.remove(&self.handles[path]);
                return Ok(());
            }
            "reap" => Act::Reap { file: self.find(path) },
            other => panic!("{other}"),
        };
        match (Operation { actor: actor(who), time, act }).perform(self) {
            Ok(()) => Ok(()),
            Err(Stop::Refused(refusal)) => Err(refusal),
            Err(Stop::Missing(missing)) => panic!("it knows everything, but {missing:?}"),
        }
    }

    fn show(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.show_below(&FileId::ROOT, "", &mut lines);
        let nameless = self.files.values().filter(|file| file.links == 0);
        lines.extend(nameless.map(|file| format!("(no name){}", show(file))));
        lines
    }

    fn show_below(&self, directory: &FileId, path: &str, lines: &mut Vec<String>) {
        for (key, entry) in self.entries.iter().filter(|(key, _)| key.file == *directory) {
            let path = format!("{path}{}", key.name.as_ref().unwrap());
            let file = &self.files[&entry.file];
            assert_eq!(file.sort, entry.sort);
            lines.push(format!("{path}{}", show(file)));
            if file.sort == Sort::Directory {
                assert_eq!(file.parent, *directory, "{path} knows where it lies");
                self.show_below(&entry.file, &format!("{path}/"), lines);
            }
        }
    }
}

fn show(file: &File) -> String {
    let who = |uid: u32| USERS.iter().find(|(_, known)| *known == uid).unwrap().0;
    let Access { mode, uid, gid } = file.access;
    let mut line = format!(" {mode:o} {}:{}", who(uid), who(gid));
    if file.links != 1 && file.sort != Sort::Directory {
        line += &format!(" x{}", file.links);
    }
    if file.sort == Sort::Regular && file.content.size > 0 {
        line += &format!(" {} bytes", file.content.size);
    }
    if file.content.is_live {
        line += " live";
    }
    if let Some(rare) = &file.rare {
        if !rare.target.is_empty() {
            line += &format!(" -> {}", rare.target.escape_ascii());
        }
        for (name, value) in &rare.attributes {
            line += &format!(" {}={}", name.escape_ascii(), value.len());
        }
        for lock in &rare.locks {
            let mark = if lock.is_exclusive { "x" } else { "s" };
            line += &format!(" {mark}{}-{}", lock.start, lock.end);
        }
    }
    line
}

impl View for Plain {
    fn know(&mut self, wants: &[Want]) -> Result<(), Stop> {
        assert!(wants.iter().all(|want| want.kind.fits(&want.scope.field)));
        Ok(())
    }

    fn knows_value(&self, _: &Scope) -> bool {
        true
    }

    fn file(&mut self, file: &FileId) -> Result<Arc<File>, Stop> {
        self.files.get(file).cloned().ok_or(Refusal::Gone.into())
    }

    fn entry(&mut self, directory: &FileId, name: &Name) -> Result<Option<Entry>, Stop> {
        Ok(self.entries.get(&Key::entry(directory, name)).cloned())
    }

    fn is_empty(&mut self, directory: &FileId) -> Result<bool, Stop> {
        Ok(!self.entries.keys().any(|key| key.file == *directory))
    }

    fn set_file(&mut self, file: &FileId, record: File) {
        self.files.insert(file.clone(), Arc::new(record));
    }

    fn set_entry(&mut self, directory: &FileId, name: &Name, entry: Option<Entry>) {
        let key = Key::entry(directory, name);
        match entry {
            Some(entry) => drop(self.entries.insert(key, entry)),
            None => drop(self.entries.remove(&key)),
        }
    }

    fn bear(&mut self, directory: &FileId, _: Sort, birth: &mut Birth) -> Result<(), Stop> {
        self.born += 1;
        let number = self.born.try_into().unwrap();
        birth.file = directory.child(number).map_err(|_| Refusal::TooDeep)?;
        birth.serial = 1 + self.born;
        Ok(())
    }

    fn bury(&mut self, file: &FileId) {
        assert!(self.files.remove(file).is_some(), "what is buried was alive");
    }

    fn is_open(&mut self, file: &FileId, is_open: &mut bool) -> Result<(), Stop> {
        *is_open = self.open.contains(file);
        Ok(())
    }

    fn is_open_elsewhere(&mut self, file: &FileId) -> Result<bool, Stop> {
        Ok(self.open.contains(file))
    }

    fn has_others(&self) -> bool {
        false
    }

    fn client(&self) -> Client {
        self.client
    }
}
