//! What the authority of a cell allows whoever has an invitation.

use base::{Digest, Domain, Malformed, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize, io};

use crate::{cell::Cell, signed::Statement, users::Users};

const NUMBER: Domain = Domain::new("number of a machine v1");

/// What the authority allows whoever has the key of an invitation: to certify one machine.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Permit {
    /// The key of the cell's authority, which has to have signed this.
    pub authority: PublicKey,
    /// The key of the invitation.
    pub invitation: PublicKey,
    /// A machine has to be registered before this moment, in seconds since 1970.
    pub expires: u64,
    /// A certificate may last until this moment and no longer, in seconds since 1970.
    pub certificate_expires_max: u64,
    /// The users that the machine may act for: at most [`Permit::USERS_MAX`], and as many memberships of
    /// groups.
    #[borsh(deserialize_with = "read_users")]
    pub users: Users,
}

impl Permit {
    /// The most users that a permit can name, and the most groups that they are in, counted for each: it has
    /// to fit into a code that people pass on. Who acts for more acts for any.
    pub const USERS_MAX: usize = 64;

    /// The cell that it is for, if the authority has signed it.
    pub fn cell(&self) -> Cell {
        Cell::of(&self.authority)
    }

    /// The random number of the machine, from which follows where it may stand. It comes out of the
    /// invitation, so no machine chooses its own (K3).
    pub fn number(&self) -> Digest {
        Digest::of(NUMBER, self.invitation.as_bytes())
    }
}

impl Statement for Permit {
    const SIGNED: Domain = Domain::new("permit of an invitation v1");
    const NAMED: Domain = Domain::new("name of a permit v1");
    // Two keys, two moments, which users, how many, and each user with a count of groups, and each group.
    const BYTES_MAX: usize = 64 + 16 + 1 + 4 + 12 * Permit::USERS_MAX;
}

fn read_users<R: io::Read>(reader: &mut R) -> io::Result<Users> {
    let users = Users::deserialize_reader(reader)?;
    match users.fit(Permit::USERS_MAX) {
        true => Ok(users),
        false => Err(Malformed::new("a permit names more users than it may").into()),
    }
}
