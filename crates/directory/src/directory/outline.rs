//! What a check of stored records has to know besides them.

use crate::{audit::Outline, session::Quota};

use super::Directory;

impl Directory {
    /// What there is to know of all records; none in the middle of a command.
    pub fn outline(&self) -> Option<Outline> {
        if self.progress.is_some() {
            return None;
        }
        let mut unused = self.pool;
        let members = self.members.values();
        members.for_each(|member| unused.add(member.session.escrow));
        let locked = self
            .members
            .iter()
            .flat_map(|(client, member)| member.locked.iter().map(|file| (*client, file.clone())));
        Some(Outline {
            sum: *self.records.sum(),
            serial_next: self.serial_next,
            orphans: self.orphans.clone(),
            locked: locked.collect(),
            unused,
            all: Quota { files: self.settings.files_max, bytes: self.settings.bytes_max },
        })
    }
}
