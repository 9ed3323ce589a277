//! What a shell, a checker or a status page may see of a directory.

use base::FileId;
use lease::{Client, Name};
use overlay::Users;

use crate::{
    record::{Entry, File},
    records::Absent,
};

use super::Directory;

/// How far a client has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The session that was last heard of.
    pub session: u64,
    /// The last of its batches that was applied.
    pub batch: u64,
    /// Whether it goes on.
    pub is_live: bool,
}

impl Directory {
    /// Whether anything comes of what this machine says: it was admitted, or need not be.
    pub fn hears(&self, client: Client) -> bool {
        let is_anybody = self.settings.admits_anybody && client != Client::GROUP;
        is_anybody || self.members.contains_key(&client)
    }

    /// Every client that was admitted, and how far it has got.
    pub fn clients(&self) -> impl Iterator<Item = (Client, Standing)> {
        self.members.iter().map(|(client, member)| {
            let session = &member.session;
            let (number, batch) = (session.number, session.batch);
            (*client, Standing { session: number, batch, is_live: session.is_live })
        })
    }

    /// For whom a machine acts, as far as has been decided; none, if it was never admitted.
    pub fn users(&self, client: Client) -> Option<&Users> {
        self.members.get(&client).map(|member| &member.users)
    }

    /// A file's record, as far as has been decided, if it is at hand.
    pub fn file(&self, file: &FileId) -> Result<Option<&File>, Absent> {
        Ok(self.records.file(file)?.map(|record| &**record))
    }

    /// The names in a directory, if all of them are at hand.
    pub fn names(&self, directory: &FileId) -> Result<Vec<(Name, Entry)>, Absent> {
        self.records.names(directory, None, usize::MAX).map(|(names, _)| names)
    }
}
