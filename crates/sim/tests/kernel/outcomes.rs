//! What a run must have seen, so that an operation that never gets anywhere shows.

use crate::duel::Tally;

/// Each operation, and what it must have answered at least once.
const WANTED: &[(&str, &str)] = &[
    ("lookup", "ok ENOENT ENOTDIR EACCES ENAMETOOLONG"),
    ("create", "ok ENOENT ENOTDIR EACCES ENAMETOOLONG EEXIST"),
    ("create+open", "ok EACCES EEXIST"),
    ("mkdir", "ok ENOENT ENOTDIR EACCES ENAMETOOLONG EEXIST"),
    ("symlink", "ok ENOENT ENOTDIR EACCES ENAMETOOLONG EEXIST"),
    ("readlink", "ok ENOENT EACCES EINVAL"),
    ("link", "ok ENOENT ENOTDIR EACCES EEXIST EPERM"),
    ("unlink", "ok ENOENT ENOTDIR EACCES EISDIR EPERM"),
    ("rmdir", "ok ENOENT ENOTDIR EACCES EINVAL ENOTEMPTY EPERM"),
    ("rename", "ok ENOENT ENOTDIR EACCES EBUSY EINVAL EISDIR ENOTEMPTY EPERM"),
    ("rename-noreplace", "ok ENOENT ENOTDIR EACCES EBUSY EEXIST EINVAL EPERM"),
    ("rename-exchange", "ok ENOENT ENOTDIR EACCES EBUSY EINVAL EPERM"),
    ("chmod", "ok EPERM EOPNOTSUPP"),
    ("chown", "ok EPERM"),
    ("truncate", "ok EACCES EINVAL EISDIR"),
    ("utimens", "ok EACCES EPERM"),
    ("readdir", "ok EACCES ENOTDIR"),
    ("access", "ok EACCES"),
    ("open", "ok EACCES EISDIR ELOOP"),
    ("close", "ok"),
    ("read", "ok EBADF EINVAL EISDIR"),
    ("write", "ok EBADF EINVAL"),
    ("ftruncate", "ok EINVAL"),
    ("setlk", "ok EAGAIN EBADF"),
    ("getlk", "ok"),
    ("flock", "ok EAGAIN"),
];

/// The same for attributes, where there are any.
const XATTRS_WANTED: &[(&str, &str)] = &[
    ("getxattr", "ok EACCES ENODATA ERANGE"),
    ("setxattr", "ok EACCES ENODATA EPERM EEXIST E2BIG"),
    ("removexattr", "ok EACCES ENODATA EPERM"),
    ("listxattr", "ok"),
];

/// What never happened although it should have.
pub fn missing(tally: &Tally, has_xattrs: bool) -> Vec<String> {
    let xattrs = if has_xattrs { XATTRS_WANTED } else { &[] };
    let wanted = WANTED.iter().chain(xattrs).flat_map(|(verb, outcomes)| {
        outcomes.split(' ').map(|outcome| (*verb, outcome.to_owned()))
    });
    let missing = wanted.filter(|key| !tally.contains_key(key));
    missing.map(|(verb, outcome)| format!("{verb} {outcome}")).collect()
}

#[test]
fn what_never_happened_is_named() {
    let mut tally = Tally::new();
    for (verb, outcomes) in WANTED {
        for outcome in outcomes.split(' ') {
            tally.insert((verb, outcome.to_owned()), 1);
        }
    }
    assert_eq!(missing(&tally, false), Vec::<String>::new());
    tally.remove(&("flock", "EAGAIN".to_owned()));
    assert_eq!(missing(&tally, false), ["flock EAGAIN"]);
    assert_eq!(missing(&tally, true).len(), 16);
}
