//! Keep: the bytes of a file begin or cease to change where they are without a word.
//!
//! Whoever lets programs write past itself can't take that back: so others have to know before, and ask there. It
//! changes nothing that `stat` tells.

use base::{Digest, FileId};
use lease::{Field, Kind, message::Want};

use crate::{
    actor::{Actor, Use},
    record::{Content, Sort},
    refusal::Refusal,
    view::{Stop, View},
};

use super::{read, write};

pub(super) fn perform(
    view: &mut impl View,
    actor: &Actor,
    file: &FileId,
    version: u64,
    is_live: bool,
    digest: Option<Digest>,
) -> Result<(), Stop> {
    let mut wants = vec![read(Field::Access.of(file)), write(Field::Content.of(file))];
    if is_live {
        wants.push(Want { scope: Field::Handles.of(file), kind: Kind::OtherRead });
    }
    view.know(&wants)?;
    let mut record = (*view.file(file)?).clone();
    if record.sort != Sort::Regular {
        return Err(Refusal::Senseless.into());
    }
    // They are where they were last changed. Of a new file nobody has any.
    let is_new = record.content.home.is_none() && record.content.size == 0;
    let is_home = record.content.home == Some(view.client());
    if !is_home && !is_new {
        return Err(Refusal::Sharing.into());
    }
    // What others could check the bytes by goes. Where they change without a word it is gone.
    let is_kept = is_home && record.content.is_live;
    if !is_kept && !actor.owns(&record.access) {
        actor.must(&record.access, Use::Write)?;
    }
    if is_live && digest.is_some() {
        return Err(Refusal::Senseless.into());
    }
    if is_live && view.is_open_elsewhere(file)? {
        return Err(Refusal::Sharing.into());
    }
    let home = Some(view.client());
    record.content = Content { home, version, digest, is_live, ..record.content };
    if record.content.lacks_digest() && view.has_others() {
        return Err(Refusal::Senseless.into());
    }
    view.set_file(file, record);
    Ok(())
}
