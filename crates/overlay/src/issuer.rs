//! Who may invite, enrol, renew and revoke: keys that the root key of a cell certifies, for a time.

use std::{collections::BTreeSet, fmt};

use base::{Digest, Domain, PublicKey, SecretKey};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    cell::check_cell,
    refused::Refused,
    signed::{Signed, Statement},
};

/// Something that an issuer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum Power {
    /// To let machines join.
    Invite,
    /// To say who users are.
    Enrol,
    /// To let machines stay for longer.
    Renew,
    /// To send machines away, and to remove users.
    Revoke,
}

impl Power {
    /// All that there are. To certify others and to rescue a group is the root key's alone.
    pub const ALL: [Power; 4] = [Power::Invite, Power::Enrol, Power::Renew, Power::Revoke];
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Power::Invite => "invite",
            Power::Enrol => "enrol",
            Power::Renew => "renew",
            Power::Revoke => "revoke",
        })
    }
}

/// What the root key of a cell says of an issuer.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Commission {
    authority: PublicKey,
    issuer: PublicKey,
    powers: BTreeSet<Power>,
    expires: u64,
}

impl Statement for Commission {
    const SIGNED: Domain = Domain::new("warrant of an issuer v1");
    const NAMED: Domain = Domain::new("name of a warrant v1");
    // Two keys, the powers, and until when.
    const BYTES_MAX: usize = 64 + 4 + Power::ALL.len() + 8;
}

/// The root key's word that another key may issue in its cell: what, and until when.
///
/// It comes along with everything that is issued by it, so whoever knows the cell's root key can check that.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Warrant(Signed<Commission>);

/// Who has issued something, and until when they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// The key of the issuer.
    pub issuer: PublicKey,
    /// Until when its warrant lasts, in seconds since 1970.
    pub until: u64,
}

impl Warrant {
    /// The most bytes that one takes.
    pub const BYTES_MAX: usize = 4 + Commission::BYTES_MAX + 64;
    /// How long one lasts, in seconds, if nothing else is said: a year.
    pub const SPAN: u64 = 365 * 86_400;

    /// Lets a key do this until a moment in seconds since 1970.
    pub fn new(
        root: &SecretKey,
        issuer: PublicKey,
        powers: BTreeSet<Power>,
        expires: u64,
    ) -> Warrant {
        let authority = root.public();
        Warrant(Signed::new(Commission { authority, issuer, powers, expires }, root))
    }

    /// Who may issue until when, if the root key of this cell says so. Whether that is over is for whoever takes
    /// in what is issued.
    pub fn verify(&self, authority: &PublicKey) -> Result<Tenure, Refused> {
        check_cell(&self.0.claim().authority, authority)?;
        self.0.verify(authority).map_err(|_| Refused::WarrantForged)?;
        Ok(self.tenure())
    }

    /// The root key that names its cell, if it is good.
    pub fn authority(&self) -> &PublicKey {
        &self.0.claim().authority
    }

    /// What it may do, if it is good.
    pub fn powers(&self) -> &BTreeSet<Power> {
        &self.0.claim().powers
    }

    /// Who and until when, if it is good.
    pub(crate) fn tenure(&self) -> Tenure {
        let Commission { issuer, expires, .. } = *self.0.claim();
        Tenure { issuer, until: expires }
    }
}

/// A key that may issue, and what shows that it may.
pub struct Issuer {
    key: SecretKey,
    warrant: Warrant,
}

impl Issuer {
    /// The owner of a key that has this warrant, if that is good in this cell.
    pub fn new(key: SecretKey, warrant: Warrant, authority: &PublicKey) -> Result<Issuer, Refused> {
        match warrant.verify(authority)?.issuer == key.public() {
            true => Ok(Issuer { key, warrant }),
            false => Err(Refused::WarrantOther),
        }
    }

    /// One that the owner of the root key makes, with all powers.
    pub fn by(root: &SecretKey, key: SecretKey, expires: u64) -> Issuer {
        let warrant = Warrant::new(root, key.public(), Power::ALL.into(), expires);
        Issuer { key, warrant }
    }

    /// The key that names its cell.
    pub fn authority(&self) -> &PublicKey {
        self.warrant.authority()
    }

    /// Who it is and until when it may issue.
    pub fn tenure(&self) -> Tenure {
        self.warrant.tenure()
    }

    /// What shows that it may.
    pub fn warrant(&self) -> &Warrant {
        &self.warrant
    }

    /// Its secret half, to be written down.
    pub fn key(&self) -> &SecretKey {
        &self.key
    }

    /// Whether it may do this at a moment in seconds since 1970, and can by its warrant.
    pub fn check(&self, power: Power, now: u64) -> Result<(), Refused> {
        check_power(&self.warrant, power)?;
        let Tenure { until, .. } = self.tenure();
        match now < until {
            true => Ok(()),
            false => Err(Refused::IssuerExpired { seconds: now - until }),
        }
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issuer").field(&self.warrant).finish()
    }
}

/// What can be issued.
pub(crate) trait Issuable: Statement {
    /// What its issuer has to be allowed.
    const POWER: Power;
    /// What is said of one that its issuer has not signed.
    const FORGED: Refused;
    /// The key that names the cell that it is for.
    fn authority(&self) -> &PublicKey;
}

/// A statement with what shows that its issuer may make it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Issued<T> {
    said: Signed<T>,
    warrant: Warrant,
}

impl<T: Issuable> Issued<T> {
    /// The most bytes that one takes.
    pub(crate) const BYTES_MAX: usize = 4 + T::BYTES_MAX + 64 + Warrant::BYTES_MAX;

    /// Issues a statement.
    pub(crate) fn new(claim: T, issuer: &Issuer) -> Issued<T> {
        Issued { said: Signed::new(claim, &issuer.key), warrant: issuer.warrant.clone() }
    }

    /// What it says, whoever says so.
    pub(crate) fn claim(&self) -> &T {
        self.said.claim()
    }

    /// A name for what is said, whoever says so.
    pub(crate) fn digest(&self) -> Digest {
        self.said.digest()
    }

    /// What it says and who has issued it, if that is an issuer of this cell who is allowed to say such things.
    pub(crate) fn verify(&self, authority: &PublicKey) -> Result<(&T, Tenure), Refused> {
        check_cell(self.claim().authority(), authority)?;
        let tenure = self.warrant.verify(authority)?;
        check_power(&self.warrant, T::POWER)?;
        let said = self.said.verify(&tenure.issuer).map_err(|_| T::FORGED)?;
        Ok((said, tenure))
    }
}

fn check_power(warrant: &Warrant, power: Power) -> Result<(), Refused> {
    match warrant.powers().contains(&power) {
        true => Ok(()),
        false => Err(Refused::PowerMissing(power)),
    }
}

impl<T> BorshSerialize for Issued<T> {
    fn serialize<W: borsh::io::Write>(&self, writer: &mut W) -> borsh::io::Result<()> {
        self.said.serialize(writer)?;
        self.warrant.serialize(writer)
    }
}

impl<T: Statement> BorshDeserialize for Issued<T> {
    fn deserialize_reader<R: borsh::io::Read>(reader: &mut R) -> borsh::io::Result<Issued<T>> {
        let (said, warrant) = BorshDeserialize::deserialize_reader(reader)?;
        Ok(Issued { said, warrant })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Dismissal {
    authority: PublicKey,
    issuer: PublicKey,
    at: u64,
}

impl Statement for Dismissal {
    const SIGNED: Domain = Domain::new("revocation of an issuer v1");
    const NAMED: Domain = Domain::new("name of a revocation of an issuer v1");
    const BYTES_MAX: usize = 32 + 32 + 8;
}

/// The root key's word that an issuer may issue nothing more. What it has issued before stays.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct IssuerRevocation(Signed<Dismissal>);

impl IssuerRevocation {
    /// The most bytes that one takes.
    pub const BYTES_MAX: usize = 4 + Dismissal::BYTES_MAX + 64;

    /// Revokes an issuer, at this moment in seconds since 1970.
    pub fn new(root: &SecretKey, issuer: PublicKey, at: u64) -> IssuerRevocation {
        IssuerRevocation(Signed::new(Dismissal { authority: root.public(), issuer, at }, root))
    }

    /// The issuer that it is about, if it is good.
    pub fn subject(&self) -> PublicKey {
        self.0.claim().issuer
    }

    /// Which issuer was revoked and when, if the root key of this cell says so.
    pub fn verify(&self, authority: &PublicKey) -> Result<(PublicKey, u64), Refused> {
        check_cell(&self.0.claim().authority, authority)?;
        let said = self.0.verify(authority).map_err(|_| Refused::RevocationForged)?;
        Ok((said.issuer, said.at))
    }
}
