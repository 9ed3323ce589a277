//! For whom a machine acts and who may use a file how, as far as this member has heard.

use std::collections::BTreeMap;

use base::{FileId, PublicKey};
use directory::record::{File, Record, Sort};
use overlay::Users;
use wire::{Answer, Rights};

use crate::Failure;

use super::Group;

impl Group {
    pub(super) fn rights(
        &self,
        machine: &PublicKey,
        serial: u64,
        file: &FileId,
    ) -> Result<Answer, Failure> {
        if !self.member.replica().is_member() {
            return Ok(Answer::Refused(
                "this machine has no vote; ask a member of the group".into(),
            ));
        }
        let (book, directory) = (self.member.book(), self.member.directory());
        let client = book.client(machine).filter(|_| !book.is_revoked(machine));
        let users = client.and_then(|client| directory.users(client)).cloned();
        let users = users.unwrap_or_else(|| Users::These(BTreeMap::new()));
        let record = match directory.file(file) {
            Ok(record) => record.cloned(),
            Err(absent) => {
                let records = self.store.load(&absent)?.records.into_iter();
                let mut files = records.filter_map(|(_, record)| match record {
                    Some(Record::File(file)) => Some(File::clone(&file)),
                    _ => None,
                });
                files.next()
            }
        };
        // Whoever asks says which number the file has, and would have the bytes of that.
        let record =
            record.filter(|record| record.serial == serial && record.sort == Sort::Regular);
        let file = record.map(|File { access, .. }| (access.mode, access.uid, access.gid));
        Ok(Answer::Rights(Box::new(Rights { users, file })))
    }
}
