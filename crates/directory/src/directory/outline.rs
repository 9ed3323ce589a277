//! What a check of stored records has to know besides them.

use crate::audit::Outline;

use super::Directory;

impl Directory {
    /// What there is to know of all records; none in the middle of a command.
    pub fn outline(&self) -> Option<Outline> {
        if self.progress.is_some() {
            return None;
        }
        let locked = self
            .members
            .iter()
            .flat_map(|(client, member)| member.locked.iter().map(|file| (*client, file.clone())));
        Some(Outline {
            sum: *self.records.sum(),
            serial_next: self.serial_next,
            orphans: self.orphans.clone(),
            locked: locked.collect(),
            used: self.ledger.used(),
        })
    }
}
