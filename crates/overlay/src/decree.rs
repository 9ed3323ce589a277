//! What the authority says to a whole cell.

use base::PublicKey;
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{refused::Refused, revocation::Revocation, user::Enrolment};

/// The authority's word on somebody, which the machines of its cell have to agree on.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Decree {
    /// A machine or a user is no longer of the cell.
    Revoke(Revocation),
    /// This is who a user is.
    Enrol(Enrolment),
}

impl Decree {
    /// The key of whom it is about, if the authority of this cell says so.
    pub fn verify(&self, authority: &PublicKey) -> Result<PublicKey, Refused> {
        match self {
            Decree::Revoke(revocation) => revocation.verify(authority).map(|(key, _)| key),
            Decree::Enrol(enrolment) => enrolment.verify(authority).map(|(user, _)| user.key),
        }
    }
}
