//! Steps as the product is asked for them, and what it answers as programs see it.

use client::{Call, Failure, Reply};
use directory::{Act, Birth, File, Refusal, record::Content};

use super::step::{Held, Outcome, Seen, Stat, Step, digest};

/// What the product is asked for.
pub(crate) fn asked(step: &Step) -> Call {
    let birth = Birth::default;
    match step.clone() {
        Step::Lookup { directory, name } => Call::Lookup { directory, name },
        Step::Stat { file } => Call::GetAttr { file },
        Step::List { directory, after, count } => Call::List { directory, after, count },
        Step::ReadLink { file } => Call::ReadLink { file },
        Step::Create { directory, name, mode } => {
            Call::Do(Act::Create { directory, name, mode, birth: birth() })
        }
        Step::Mkdir { directory, name, mode } => {
            Call::Do(Act::Mkdir { directory, name, mode, birth: birth() })
        }
        Step::Symlink { directory, name, target } => {
            Call::Do(Act::Symlink { directory, name, target, birth: birth() })
        }
        Step::Link { file, directory, name } => Call::Do(Act::Link { file, directory, name }),
        Step::Unlink { directory, name } => {
            Call::Do(Act::Unlink { directory, name, is_open: false })
        }
        Step::Rmdir { directory, name } => Call::Do(Act::Rmdir { directory, name }),
        Step::Rename { from, from_name, to, to_name, over } => {
            Call::Do(Act::Rename { from, from_name, to, to_name, over, is_open: false })
        }
        Step::SetAttr { file, changes } => Call::Do(Act::SetAttr { file, changes }),
        Step::SetXattr { file, name, value, when } => {
            Call::Do(Act::SetXattr { file, name, value, when })
        }
        Step::GetXattr { file, name } => Call::GetXattr { file, name },
        Step::ListXattr { file } => Call::ListXattr { file },
        Step::Write { file, bytes, size } => {
            let (digest, allocated) = (digest(&bytes, size), bytes.len() as u64);
            let content = Content { size, allocated, digest, ..Content::default() };
            Call::Do(Act::SetContent { file, content })
        }
        Step::Open { file, modes } => Call::Open { file, modes },
        Step::Close { handle } => Call::Close { handle },
        Step::Lock { file, owner, start, end, hold, .. } => {
            Call::Do(Act::Lock { file, owner, start, end, hold })
        }
        Step::TestLock { file, owner, start, end, is_exclusive, .. } => {
            Call::TestLock { file, owner, start, end, is_exclusive }
        }
        Step::Sync => Call::Sync { handle: None },
    }
}

/// What a program is told.
pub(crate) fn outcome(result: Result<Reply, Failure>) -> Outcome {
    let reply = match result {
        Ok(reply) => reply,
        // The reference forgets what is gone.
        Err(Failure::Refused(Refusal::Gone)) => return Outcome::Refused("ENOENT"),
        Err(Failure::Refused(refusal)) => return Outcome::Refused(refusal.errno()),
        Err(Failure::Lost) => return Outcome::Lost,
        Err(Failure::Busy | Failure::TooManyOpen) => return Outcome::Busy,
        Err(Failure::Cancelled) => return Outcome::Cancelled,
    };
    Outcome::Seen(match reply {
        Reply::Done | Reply::Gone(_) | Reply::Nameless(_) | Reply::Changed(_) => Seen::Nothing,
        Reply::Entry(entry, _) => Seen::File(entry.file),
        Reply::File(file) => Seen::Stat(stat(&file)),
        Reply::Names { entries, is_all } => {
            let names = entries.into_iter().map(|(name, entry)| (name, entry.file));
            Seen::Names(names.collect(), is_all)
        }
        Reply::Bytes(bytes) => Seen::Bytes(bytes),
        Reply::Attributes(mut names) => {
            names.sort();
            Seen::Attributes(names)
        }
        Reply::Lock(lock) => Seen::Lock(lock.map(|lock| Held {
            client: lock.client,
            owner: lock.owner,
            start: lock.start,
            end: lock.end,
            is_exclusive: lock.is_exclusive,
        })),
        Reply::Handle(handle) => Seen::Handle(handle),
        Reply::Room(_) | Reply::Account(_) => Seen::Nothing,
    })
}

/// What a program sees of a record.
pub(crate) fn stat(file: &File) -> Stat {
    use directory::Sort;
    let is_directory = file.sort == Sort::Directory;
    let is_regular = file.sort == Sort::Regular;
    let content = (file.content.size, file.content.digest);
    Stat {
        sort: file.sort,
        mode: file.access.mode,
        uid: file.access.uid,
        gid: file.access.gid,
        links: (!is_directory).then_some(file.links),
        content: is_regular.then_some(content),
        times: is_regular.then_some((file.times.accessed, file.times.modified)),
    }
}
