//! What a machine says of itself that wants to be one of a cell, or is one.

use std::{collections::BTreeSet, net::SocketAddr};

use base::{Domain, Malformed, PublicKey, SecretKey, Signature};
use borsh::{BorshDeserialize, BorshSerialize, io};
use overlay::{Certificate, Consent, Patrons, Refused, Vouched};

const WHEREABOUTS: Domain = Domain::new("whereabouts of a machine v1");

/// Where a machine says that it can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Whereabouts {
    /// The addresses. At most [`Whereabouts::ADDRESSES_MAX`].
    #[borsh(deserialize_with = "read_addresses")]
    pub addresses: Vec<SocketAddr>,
    /// Of two that a machine has said the one with the greater number counts.
    pub number: u64,
}

impl Whereabouts {
    /// A machine is reached at no more addresses.
    pub const ADDRESSES_MAX: usize = 4;
}

/// A machine that wants to be, or is, one of the cell.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Join {
    /// What it shows.
    pub certificate: Certificate,
    /// The users who have agreed that it acts for them. At most [`Patrons::COUNT_MAX`].
    #[borsh(deserialize_with = "read_consents")]
    pub consents: Vec<Consent>,
    /// Where it can be reached.
    pub whereabouts: Whereabouts,
    /// The machine's own, over its whereabouts: else whoever has seen the certificate could move it elsewhere.
    signature: Signature,
    /// When it was heard, in seconds since 1970, by the clock of the member that has heard it.
    pub heard: u64,
}

impl Join {
    /// What the machine with this key says, heard at this moment in seconds since 1970.
    pub fn new(
        certificate: Certificate,
        whereabouts: Whereabouts,
        key: &SecretKey,
        heard: u64,
    ) -> Join {
        let signature = key.sign(WHEREABOUTS, &base::encode(&whereabouts));
        Join { certificate, consents: Vec::new(), whereabouts, signature, heard }
    }

    /// The same, with what users have agreed to.
    pub fn with(self, consents: Vec<Consent>) -> Join {
        Join { consents, ..self }
    }

    /// What the certificate says, if all is as it seems, as far as can be told from this alone.
    pub fn check(&self, authority: &PublicKey) -> Result<Vouched<'_>, Refused> {
        let vouched = self.certificate.verify(authority, self.heard)?;
        let bytes = base::encode(&self.whereabouts);
        let signed = vouched.machine.verify(WHEREABOUTS, &bytes, &self.signature);
        signed.map_err(|_| Refused::KeyNotShown)?;
        self.agreed(authority)?;
        Ok(vouched)
    }

    /// The keys of the users who have agreed.
    pub fn agreed(&self, authority: &PublicKey) -> Result<BTreeSet<PublicKey>, Refused> {
        let machine = self.certificate.machine();
        self.consents.iter().map(|consent| consent.verify(authority, machine)).collect()
    }
}

fn read_addresses<R: io::Read>(reader: &mut R) -> io::Result<Vec<SocketAddr>> {
    let addresses: Vec<SocketAddr> = Vec::deserialize_reader(reader)?;
    match addresses.len() <= Whereabouts::ADDRESSES_MAX {
        true => Ok(addresses),
        false => Err(Malformed::new("a machine with more addresses than it may have").into()),
    }
}

fn read_consents<R: io::Read>(reader: &mut R) -> io::Result<Vec<Consent>> {
    let consents: Vec<Consent> = Vec::deserialize_reader(reader)?;
    match consents.len() <= Patrons::COUNT_MAX {
        true => Ok(consents),
        false => Err(Malformed::new("more consents than a machine has users").into()),
    }
}
