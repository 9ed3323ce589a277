//! What the authority says to a whole cell.

use base::PublicKey;
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    issuer::{IssuerRevocation, Tenure},
    refused::Refused,
    revocation::Revocation,
    share::Share,
    user::Enrolment,
};

/// A word on somebody of an issuer, or of the root key, which the machines of its cell have to agree on.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Decree {
    /// A machine or a user is no longer of the cell.
    Revoke(Revocation),
    /// This is who a user is.
    Enrol(Enrolment),
    /// An issuer may issue nothing more.
    RevokeIssuer(IssuerRevocation),
    /// This is how much somebody may have.
    Share(Share),
}

impl Decree {
    /// The key of whom it is about, if one who may say so in this cell does.
    pub fn verify(&self, authority: &PublicKey) -> Result<PublicKey, Refused> {
        match self {
            Decree::Revoke(revocation) => revocation.verify(authority).map(|(key, ..)| key),
            Decree::Enrol(enrolment) => enrolment.verify(authority).map(|(user, ..)| user.key),
            Decree::RevokeIssuer(revocation) => revocation.verify(authority).map(|(key, _)| key),
            // It may be about a number: the cell's own key stands for that.
            Decree::Share(share) => share.verify(authority).map(|_| *authority),
        }
    }

    /// The issuer who says so, if it is good. The root key speaks for itself.
    pub fn tenure(&self, authority: &PublicKey) -> Result<Option<Tenure>, Refused> {
        match self {
            Decree::Revoke(revocation) => {
                revocation.verify(authority).map(|(.., tenure)| Some(tenure))
            }
            Decree::Enrol(enrolment) => {
                enrolment.verify(authority).map(|(.., tenure)| Some(tenure))
            }
            Decree::RevokeIssuer(revocation) => revocation.verify(authority).map(|_| None),
            Decree::Share(share) => share.verify(authority).map(|(.., tenure)| Some(tenure)),
        }
    }
}
