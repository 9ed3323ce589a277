//! What a machine shows to prove that it is of a cell.

use base::{Digest, Domain, PublicKey, SecretKey, Signature};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    issuer::{Issued, Tenure},
    patrons::Patrons,
    permit::Permit,
    refused::Refused,
    renewal::Renewal,
    signed::{Signed, Statement},
};

const PROOF: Domain = Domain::new("possession of a machine's key v1");

/// What the key of an invitation says of a machine.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Grant {
    /// Which permit it rests on: an issuer may sign two for one invitation.
    pub(crate) permit: Digest,
    pub(crate) machine: PublicKey,
    pub(crate) expires: u64,
}

impl Statement for Grant {
    const SIGNED: Domain = Domain::new("certificate of a machine v1");
    const NAMED: Domain = Domain::new("name of a certificate v1");
    const BYTES_MAX: usize = 32 + 32 + 8;
}

/// That a machine is of a cell. The root key vouches for an issuer, the issuer for an invitation, the invitation for
/// the machine's key, and the machine shows that it has that key.
///
/// It says nothing about who was in time to use the invitation: that is for the cell's [`Register`].
///
/// [`Register`]: crate::Register
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Certificate {
    permit: Issued<Permit>,
    grant: Signed<Grant>,
    /// By the machine's own key, over what the invitation has signed.
    proof: Signature,
    /// By an issuer, if it lasts longer than the invitation has said.
    renewal: Option<Renewal>,
}

/// What a certificate that is good says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Vouched<'a> {
    /// The machine's key.
    pub machine: PublicKey,
    /// Until when, in seconds since 1970.
    pub expires: u64,
    /// What is allowed it.
    pub permit: &'a Permit,
    /// Who has invited it.
    pub inviter: Tenure,
    /// Who has renewed it, if it lasts longer than the invitation has said.
    pub renewer: Option<Tenure>,
}

impl Vouched<'_> {
    /// The random number of the machine, if it was admitted as this one of those that came with its invitation.
    pub fn number(&self, place: u32) -> Digest {
        self.permit.number(place)
    }

    /// The users that it may act for.
    pub fn patrons(&self) -> &Patrons {
        &self.permit.patrons
    }
}

impl Certificate {
    /// The most bytes that one takes.
    pub const BYTES_MAX: usize =
        Issued::<Permit>::BYTES_MAX + 4 + Grant::BYTES_MAX + 64 + 64 + 1 + Renewal::BYTES_MAX;

    pub(crate) fn new(
        permit: &Issued<Permit>,
        invitation: &SecretKey,
        machine: &SecretKey,
        expires: u64,
    ) -> Certificate {
        let grant = Grant { permit: permit.digest(), machine: machine.public(), expires };
        let grant = Signed::new(grant, invitation);
        let proof = machine.sign(PROOF, grant.bytes());
        Certificate { permit: permit.clone(), grant, proof, renewal: None }
    }

    /// The same, for longer.
    pub fn renewed(&self, renewal: Renewal) -> Certificate {
        Certificate { renewal: Some(renewal), ..self.clone() }
    }

    /// The machine that it is about, if it is good.
    pub fn machine(&self) -> &PublicKey {
        &self.grant.claim().machine
    }

    /// What it says, if it is good now: in this cell, and at this moment in seconds since 1970. Whether its issuers
    /// still may issue is for whoever registers a machine.
    pub fn verify(&self, authority: &PublicKey, now: u64) -> Result<Vouched<'_>, Refused> {
        let (permit, inviter) = self.permit.verify(authority)?;
        let grant =
            self.grant.verify(&permit.invitation).map_err(|_| Refused::CertificateForged)?;
        if grant.permit != self.permit.digest() {
            return Err(Refused::PermitOther);
        }
        let proof = grant.machine.verify(PROOF, self.grant.bytes(), &self.proof);
        proof.map_err(|_| Refused::KeyNotShown)?;
        if grant.expires > permit.certificate_expires_max {
            return Err(Refused::CertificateTooLong);
        }
        let renewal = self.renewal.as_ref();
        let renewal =
            renewal.map(|renewal| renewal.verify(authority, &grant.machine)).transpose()?;
        // One that is shorter takes nothing away.
        let renewal = renewal.filter(|(expires, _)| *expires > grant.expires);
        let expires = renewal.map_or(grant.expires, |(expires, _)| expires);
        if now >= expires {
            return Err(Refused::CertificateExpired { seconds: now - expires });
        }
        let renewer = renewal.map(|(_, tenure)| tenure);
        Ok(Vouched { machine: grant.machine, expires, permit, inviter, renewer })
    }
}
