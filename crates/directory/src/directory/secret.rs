//! What is kept from a machine: the names in a directory that none of its users may list or go through.
//!
//! A lease on names tells them: with the values that come with it, by what is excepted from it, and by
//! what is wanted back. So such a machine is granted none, and nothing wider than it asks for. An honest
//! one seldom meets with that, since it looks at the permission bits before it asks for a name; only to
//! take away a directory it needs to know that no name is in it, whoever may list it.
//!
//! This is looked at when a machine asks, when it is told something, and when permission bits change.
//!
//! Who may read a file does not matter here: the lease on its content tells no more than its size, which
//! anybody may know, and where its sealed pieces are.

use base::FileId;
use lease::{
    Client, Field,
    grantor::Favour,
    message::{Up, Want},
};
use overlay::Users;

use crate::{message::Request, record::File, records::Absent, users};

use super::{Directory, Progress};

impl Directory {
    /// How to meet what a machine asks for.
    pub(super) fn favour(&self, client: Client, request: &Request) -> Result<Favour, Absent> {
        let (Some(member), Up::Ask { wants, .. }) =
            (self.members.get(&client), &request.lease.body)
        else {
            return Ok(Favour::Generous);
        };
        if users::may_see_all(&member.users) {
            return Ok(Favour::Generous);
        }
        let mut favour = Favour::Generous;
        let mut absent = Absent::default();
        for want in wants.iter().take(lease::grantor::WANTS_MAX) {
            match self.records.file(&want.scope.file) {
                Ok(record) => {
                    let record = record.map(|record| &**record);
                    favour = favour.max(favour_of(&member.users, want, record));
                }
                Err(more) => absent.join(more),
            }
        }
        if absent.is_empty() { Ok(favour) } else { Err(absent) }
    }

    /// Has the names in a directory back from whoever may not know them any more.
    pub(super) fn hide_names(&mut self, directory: &FileId, progress: &mut Progress) {
        let Ok(Some(record)) = self.records.file(directory) else { return };
        let members = self.members.iter();
        let trusted = members.filter(|(_, member)| !users::is_secret(&member.users, record));
        let spare: Vec<Client> = trusted.map(|(client, _)| *client).collect();
        if spare.len() == self.members.len() {
            return;
        }
        let mut said = Vec::new();
        self.grantor.disturb(progress.now, &Field::Children.of(directory), &spare, &mut said);
        self.say(progress, said);
    }
}

fn favour_of(users: &Users, want: &Want, record: Option<&File>) -> Favour {
    let is_secret = record.is_some_and(|record| users::is_secret(users, record));
    match want.scope.field {
        // Whoever creates a directory has this of it. To ask for what others have created in it, and for
        // what may yet be, is no use to an honest client.
        Field::Tree => Favour::Denied,
        Field::Child(_) | Field::Children | Field::Whole if is_secret => Favour::Denied,
        _ if is_secret => Favour::Narrow,
        _ => Favour::Generous,
    }
}
