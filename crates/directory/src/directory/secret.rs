//! What is kept from a machine: the names in a directory that none of its users may list or go through, and what
//! tells of bytes that none of them may read.
//!
//! A lease on names tells them: with the values that come with it, by what is excepted from it, and by
//! what is wanted back. So such a machine is granted none, and nothing wider than it asks for. An honest
//! one seldom meets with that, since it looks at the permission bits before it asks for a name; only to
//! take away a directory it needs to know that no name is in it, whoever may list it.
//!
//! This is looked at when a machine asks, when it is told something, and when permission bits change.
//!
//! Who may not read a file may hold a lease on its content all the same, to know its size; what it is told with that
//! has no hash of the bytes (`users::hide`). So when somebody may read a file who was told less before, that is
//! wanted back, and told anew. A machine that acts for nobody can change nothing, and gets no right to.

use base::FileId;
use lease::{
    Client, Field, Kind, Scope,
    grantor::Favour,
    message::{Up, Want},
};
use overlay::Users;

use crate::{
    message::Request,
    record::{File, Sort},
    records::Absent,
    users,
};

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

    /// Somebody has changed who may do what with a file: has the names in a directory back from whoever may not know
    /// them any more, and what was told of a file from whoever may be told more.
    pub(super) fn show_by_access(&mut self, by: Client, file: &FileId, progress: &mut Progress) {
        let Ok(Some(record)) = self.records.file(file) else { return };
        let is_directory = record.sort == Sort::Directory;
        let is_spared = |client: Client, users: &Users| match is_directory {
            true => !users::is_secret(users, record),
            false => {
                let is_sure = client == by || users::may_see_all(users);
                is_sure || !users::may_open(users, &record.access)
            }
        };
        let members = self.members.iter();
        let spared = members.filter(|(client, member)| is_spared(**client, &member.users));
        let spare: Vec<Client> = spared.map(|(client, _)| *client).collect();
        if spare.len() == self.members.len() {
            return;
        }
        let fields: &[Field] =
            if is_directory { &[Field::Children] } else { &[Field::Content, Field::Extended] };
        for field in fields {
            self.want_back(&field.clone().of(file), &spare, progress);
        }
    }

    /// A machine acts for others than before: what it was told went by those it acted for then.
    pub(super) fn show_anew(&mut self, client: Client, progress: &mut Progress) {
        let others = self.members.keys().copied().filter(|other| *other != client);
        let others: Vec<Client> = others.collect();
        self.want_back(&Field::Tree.of(&FileId::ROOT), &others, progress);
    }

    fn want_back(&mut self, scope: &Scope, spare: &[Client], progress: &mut Progress) {
        let mut said = Vec::new();
        self.grantor.disturb(progress.now, scope, spare, &mut said);
        self.say(progress, said);
    }
}

fn favour_of(users: &Users, want: &Want, record: Option<&File>) -> Favour {
    let is_secret = record.is_some_and(|record| users::is_secret(users, record));
    match want.scope.field {
        _ if users::are_none(users) && want.kind != Kind::Read => Favour::Denied,
        // Whoever creates a directory has this of it. To ask for what others have created in it, and for
        // what may yet be, is no use to an honest client.
        Field::Tree => Favour::Denied,
        Field::Child(_) | Field::Children | Field::Whole if is_secret => Favour::Denied,
        _ if is_secret => Favour::Narrow,
        _ => Favour::Generous,
    }
}
