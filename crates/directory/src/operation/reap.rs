//! Reap: a file without a name, closed by the last who had it open, goes.

use base::FileId;

use crate::{
    refusal::Refusal,
    view::{Stop, View},
};

use super::all;

pub(super) fn perform(view: &mut impl View, file: &FileId) -> Result<(), Stop> {
    view.know(&[all(file)])?;
    let record = view.file(file)?;
    if record.links > 0 {
        return Err(Refusal::Senseless.into());
    }
    let mut is_open = false;
    view.is_open(file, &mut is_open)?;
    if is_open {
        return Err(Refusal::Sharing.into());
    }
    view.bury(file);
    Ok(())
}
