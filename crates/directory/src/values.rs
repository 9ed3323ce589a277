//! What is so: what goes with a grant, and what is fetched and listed under one.
//!
//! A message has room for so much and no more. What does not fit is left out, or a listing is cut
//! short; the client sees that it lacks something and asks for it.

use base::FileId;
use lease::{Client, Field, Grantor, Kind, Name, message::Grant};
use overlay::Users;

use crate::{
    message::{KEYS_MAX, NAMES_MAX, Value},
    record::{File, Key, Sort},
    records::{Absent, Records},
    users,
};

/// The most bytes of values in one message, but for the last value.
pub const VALUES_BYTES_MAX: usize = 1 << 20;

/// The room that is left in a message.
struct Room(usize);

impl Room {
    fn new() -> Room {
        Room(VALUES_BYTES_MAX)
    }

    fn take(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes);
    }

    fn is_full(&self) -> bool {
        self.0 == 0
    }
}

/// What is so under each grant.
pub(crate) fn of_grants(
    records: &Records,
    who: (Client, &Users),
    grants: &[Grant],
) -> Result<Vec<Vec<Value>>, Absent> {
    let mut room = Room::new();
    let mut absent = Absent::default();
    let mut all = Vec::with_capacity(grants.len());
    for grant in grants {
        match of_grant(records, who, grant, &mut room) {
            Ok(values) => all.push(values),
            Err(more) => absent.join(more),
        }
    }
    if absent.is_empty() { Ok(all) } else { Err(absent) }
}

fn of_grant(
    records: &Records,
    who: (Client, &Users),
    grant: &Grant,
    room: &mut Room,
) -> Result<Vec<Value>, Absent> {
    let (file, (_, users)) = (&grant.scope.file, who);
    let mut values = Vec::new();
    if room.is_full() {
        return Ok(values);
    }
    match &grant.scope.field {
        Field::Child(_) | Field::Children if is_secret(records, users, file)? => {}
        Field::Child(name) => values.push(entry(records, file, name, room)?),
        Field::Children => values.push(names(records, file, None, room)?),
        Field::Whole | Field::Tree => {
            let record = records.file(file)?;
            let is_directory = record.is_some_and(|record| record.sort == Sort::Directory);
            values.push(self::file(records, who, file, room)?);
            if is_directory && !is_secret(records, users, file)? {
                values.push(names(records, file, None, room)?);
            }
        }
        _ => values.push(self::file(records, who, file, room)?),
    }
    Ok(values)
}

/// Whether names in a directory are none of these users' business.
fn is_secret(records: &Records, users: &Users, directory: &FileId) -> Result<bool, Absent> {
    if users::may_see_all(users) {
        return Ok(false);
    }
    Ok(records.file(directory)?.is_some_and(|record| users::is_secret(users, record)))
}

/// What is so under each of these keys that the client was promised.
pub(crate) fn fetched(
    records: &Records,
    grantor: &Grantor,
    (client, users): (Client, &Users),
    keys: &[Key],
) -> Result<Vec<Value>, Absent> {
    let mut room = Room::new();
    let mut absent = Absent::default();
    let mut values = Vec::new();
    for key in keys.iter().take(KEYS_MAX) {
        if room.is_full() {
            break;
        }
        let promises = |field: Field| {
            let kind = if field.is_disjunctive() { Kind::OtherRead } else { Kind::Read };
            grantor.promises(client, &field.of(&key.file), kind)
        };
        let value = match &key.name {
            None if File::FIELDS.into_iter().any(promises) => {
                file(records, (client, users), &key.file, &mut room)
            }
            Some(name) if promises(Field::Child(name.clone())) => {
                match is_secret(records, users, &key.file) {
                    Ok(true) => continue,
                    Ok(false) => entry(records, &key.file, name, &mut room),
                    Err(more) => Err(more),
                }
            }
            _ => continue,
        };
        match value {
            Ok(value) => values.push(value),
            Err(more) => absent.join(more),
        }
    }
    if absent.is_empty() { Ok(values) } else { Err(absent) }
}

/// The names in a directory after one, if the client was promised all of them.
pub(crate) fn listed(
    records: &Records,
    grantor: &Grantor,
    (client, users): (Client, &Users),
    directory: &FileId,
    after: Option<&Name>,
) -> Result<Option<Value>, Absent> {
    // Names that it was not promised are in there too: it sees which.
    let is_promised = grantor.promises_most(client, &Field::Children.of(directory));
    if !is_promised || is_secret(records, users, directory)? {
        return Ok(None);
    }
    names(records, directory, after, &mut Room::new()).map(Some)
}

fn file(
    records: &Records,
    (client, users): (Client, &Users),
    file: &FileId,
    room: &mut Room,
) -> Result<Value, Absent> {
    let mut record = records.file(file)?.map(|record| File::clone(record));
    if let Some(record) = &mut record {
        users::hide(users, client, record);
    }
    let rare = record.as_ref().and_then(|record| record.rare.as_ref());
    let rare = rare.map_or(0, |rare| {
        let attributes = rare.attributes.iter().map(|(name, value)| name.len() + value.len() + 8);
        rare.target.len() + attributes.sum::<usize>() + 32 * rare.locks.len()
    });
    room.take(size_of::<File>() + rare);
    Ok(Value::File { file: file.clone(), record })
}

fn entry(
    records: &Records,
    directory: &FileId,
    name: &Name,
    room: &mut Room,
) -> Result<Value, Absent> {
    let entry = records.entry(directory, name)?.cloned();
    room.take(64 + name.as_bytes().len());
    Ok(Value::Entry { directory: directory.clone(), name: name.clone(), entry })
}

fn names(
    records: &Records,
    directory: &FileId,
    after: Option<&Name>,
    room: &mut Room,
) -> Result<Value, Absent> {
    // Cut by count alone, so that a page of the store is as good as another.
    let count_max = if room.is_full() { 0 } else { NAMES_MAX };
    let (entries, is_all) = match count_max {
        0 => (Vec::new(), false),
        _ => records.names(directory, after, count_max)?,
    };
    room.take(entries.iter().map(|(name, _)| 32 + name.as_bytes().len()).sum());
    Ok(Value::Names { directory: directory.clone(), after: after.cloned(), entries, is_all })
}
