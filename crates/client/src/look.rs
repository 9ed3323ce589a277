//! What programs look at without changing anything.

use base::FileId;
use directory::{Actor, File, Refusal, Sort, Stop, Use, View, operation::conflicting};
use lease::{Field, Kind, message::Want};
use triomphe::Arc;

use crate::{
    call::{Call, Modes, Reply},
    view::Sight,
};

/// What a call that changes nothing returns.
pub(crate) fn answer(sight: &mut Sight<'_>, actor: &Actor, call: &Call) -> Result<Reply, Stop> {
    match call {
        Call::Lookup { directory, name } => {
            let record = known(sight, directory, &[Field::Access])?;
            is_directory(&record)?;
            actor.must(&record.access, Use::Search)?;
            if !sight.sees_all(directory) {
                sight.know(&[read(Field::Child(name.clone()), directory)])?;
            }
            let entry = sight.entry(directory, name)?.ok_or(Refusal::NotFound)?;
            let record = sight.sees_all(&entry.file).then(|| sight.file(&entry.file));
            Ok(Reply::Entry(entry, record.transpose()?))
        }
        Call::GetAttr { file } => {
            let fields = [Field::Access, Field::Times, Field::Content, Field::Parent];
            Ok(Reply::File(known(sight, file, &fields)?))
        }
        Call::Hold { file, writes: false } => {
            Ok(Reply::File(known(sight, file, &[Field::Content])?))
        }
        Call::Hold { file, writes: true } => {
            // What it takes to say that the content has changed.
            let write = |field: Field| Want { scope: field.of(file), kind: Kind::Write };
            let wants = [read(Field::Access, file), write(Field::Times), write(Field::Content)];
            sight.know(&wants)?;
            Ok(Reply::File(sight.file(file)?))
        }
        Call::List { directory, after, count } => {
            let record = known(sight, directory, &[Field::Access])?;
            is_directory(&record)?;
            actor.must(&record.access, Use::Read)?;
            sight.know(&[read(Field::Children, directory)])?;
            let (entries, is_all) = sight.page(directory, after.as_ref(), *count)?;
            Ok(Reply::Names { entries, is_all })
        }
        Call::ReadLink { file } => {
            let record = known(sight, file, &[Field::Content])?;
            if record.sort != Sort::Symlink {
                return Err(Refusal::Senseless.into());
            }
            let target = record.rare.as_ref().map(|rare| rare.target.clone());
            Ok(Reply::Bytes(target.unwrap_or_default()))
        }
        Call::GetXattr { file, name } => {
            let record = known(sight, file, &[Field::Access, Field::Extended])?;
            actor.must(&record.access, Use::Read)?;
            let mut attributes = record.attributes().iter();
            let found = attributes.find(|(known, _)| known == name);
            Ok(Reply::Bytes(found.ok_or(Refusal::NoAttribute)?.1.clone()))
        }
        Call::ListXattr { file } => {
            let record = known(sight, file, &[Field::Extended])?;
            let names = record.attributes().iter().map(|(name, _)| name.clone());
            Ok(Reply::Attributes(names.collect()))
        }
        Call::TestLock { file, owner, start, end, is_exclusive } => {
            let record = known(sight, file, &[Field::Locks])?;
            let who = (sight.client(), *owner);
            let lock = conflicting(record.locks(), who, (*start, *end), *is_exclusive);
            Ok(Reply::Lock(lock.cloned()))
        }
        Call::Do(_)
        | Call::Open { .. }
        | Call::Close { .. }
        | Call::Reserve { .. }
        | Call::Account { .. }
        | Call::Sync { .. }
        | Call::Settle => Err(Refusal::Senseless.into()),
    }
}

/// What is known of a directory, with the times that were known last.
pub(crate) fn late(sight: &mut Sight<'_>, directory: &FileId) -> Result<Reply, Stop> {
    let fields = [Field::Access, Field::Content, Field::Parent];
    Ok(Reply::File(known(sight, directory, &fields)?))
}

/// Goes on only if a file may be opened, as far as it alone decides.
pub(crate) fn may_open(
    sight: &mut Sight<'_>,
    actor: &Actor,
    file: &FileId,
    modes: Modes,
    is_open: bool,
) -> Result<(), Stop> {
    let record = sight.file(file)?;
    // Whoever has not opened a file while it had a name has no way to it.
    if !record.has_name() && !is_open {
        return Err(Refusal::Gone.into());
    }
    match record.sort {
        Sort::Symlink => return Err(Refusal::IsSymlink.into()),
        Sort::Directory if modes.access.write => return Err(Refusal::IsDirectory.into()),
        Sort::Directory | Sort::Regular | Sort::Special(_) => {}
    }
    for (is_wanted, usage) in [(modes.access.read, Use::Read), (modes.access.write, Use::Write)] {
        if is_wanted {
            actor.must(&record.access, usage)?;
        }
    }
    Ok(())
}

fn read(field: Field, file: &FileId) -> Want {
    Want { scope: field.of(file), kind: Kind::Read }
}

/// A record of which these fields are known.
fn known(sight: &mut Sight<'_>, file: &FileId, fields: &[Field]) -> Result<Arc<File>, Stop> {
    if sight.sees_all(file) {
        return sight.file(file);
    }
    let wants: Vec<Want> = fields.iter().map(|field| read(field.clone(), file)).collect();
    sight.know(&wants)?;
    sight.file(file)
}

fn is_directory(record: &File) -> Result<(), Refusal> {
    if record.sort == Sort::Directory { Ok(()) } else { Err(Refusal::NotDirectory) }
}
