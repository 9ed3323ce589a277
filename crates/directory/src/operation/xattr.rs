//! Extended attributes: small values under names of a program's choice.

use base::FileId;
use borsh::{BorshDeserialize, BorshSerialize};
use lease::Field;

use crate::{
    actor::{Actor, Use},
    record::Sort,
    refusal::Refusal,
    view::{Stop, View},
};

use super::{read, write};

/// The longest name of an attribute, in bytes.
pub const ATTRIBUTE_NAME_MAX: usize = 255;
/// The most that all attributes of a file take up, names and values, in bytes.
pub const ATTRIBUTES_BYTES_MAX: usize = 65_536;

/// In which case an attribute is set.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum When {
    /// In any.
    Always,
    /// If there is none of that name.
    Absent,
    /// If there is one of that name.
    Present,
}

pub(super) fn perform(
    view: &mut impl View,
    actor: &Actor,
    time: i64,
    file: &FileId,
    name: &[u8],
    value: Option<&[u8]>,
    when: When,
) -> Result<(), Stop> {
    if name.is_empty() || name.len() > ATTRIBUTE_NAME_MAX || name.contains(&0) {
        return Err(Refusal::Senseless.into());
    }
    view.know(&[read(Field::Access.of(file)), write(Field::Extended.of(file))])?;
    let mut record = (*view.file(file)?).clone();
    if record.sort == Sort::Symlink {
        return Err(Refusal::NotOwner.into());
    }
    if record.sort == Sort::Directory && record.access.is_sticky() && !actor.owns(&record.access) {
        return Err(Refusal::NotOwner.into());
    }
    actor.must(&record.access, Use::Write)?;
    let mut attributes = record.attributes().to_vec();
    let at = attributes.binary_search_by(|(known, _)| known.as_slice().cmp(name));
    match (at, value) {
        (Ok(_), Some(_)) if when == When::Absent => return Err(Refusal::NameTaken.into()),
        (Err(_), Some(_)) if when == When::Present => return Err(Refusal::NoAttribute.into()),
        (Err(_), None) => return Err(Refusal::NoAttribute.into()),
        (Ok(at), Some(value)) => attributes[at].1 = value.to_vec(),
        (Err(at), Some(value)) => attributes.insert(at, (name.to_vec(), value.to_vec())),
        (Ok(at), None) => drop(attributes.remove(at)),
    }
    let size: usize = attributes.iter().map(|(name, value)| name.len() + value.len()).sum();
    if size > ATTRIBUTES_BYTES_MAX {
        return Err(Refusal::AttributeTooLarge.into());
    }
    record.set_attributes(attributes);
    record.times.changed = time;
    view.set_file(file, record);
    Ok(())
}
