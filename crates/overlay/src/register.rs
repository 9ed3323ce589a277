//! What the machines of a cell agree on: who was first to use an invitation, who was sent away, and which issuers may
//! issue nothing more.
//!
//! A certificate alone does not tell whether another machine has used the same invitation. So a cell's group
//! keeps a register as a part of its state, and a machine is one of the cell only if it was admitted there.

use std::collections::BTreeMap;

use base::{Malformed, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize, io};

use crate::{
    certificate::Vouched,
    issuer::{IssuerRevocation, Tenure},
    refused::Refused,
    revocation::Revocation,
};

/// Used invitations, revoked machines and revoked issuers.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Register {
    /// The latest moment that it was told, in seconds since 1970. It never goes back: else an invitation
    /// whose use was forgotten could be used again.
    now: u64,
    /// By the keys of invitations. At most [`Register::COUNT_MAX`], each until it expires.
    #[borsh(deserialize_with = "read_bounded")]
    used: BTreeMap<PublicKey, Use>,
    /// When each was. At most [`Register::COUNT_MAX`], for ever.
    #[borsh(deserialize_with = "read_bounded")]
    revoked: BTreeMap<PublicKey, u64>,
    /// When each issuer was. At most [`Register::COUNT_MAX`], for ever.
    #[borsh(deserialize_with = "read_bounded")]
    issuers_revoked: BTreeMap<PublicKey, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Use {
    machine: PublicKey,
    /// When the invitation does; then nobody can use it, so nobody need know who has.
    expires: u64,
}

/// How a machine was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is the first with its invitation.
    First,
    /// It was admitted before, with the same invitation.
    Again,
}

impl Register {
    /// The most invitations that are used and have not expired, the most machines that are revoked, and the most
    /// issuers.
    pub const COUNT_MAX: usize = 65_536;

    /// The most bytes that it takes.
    pub const BYTES_MAX: usize = 8 + 3 * 4 + Register::COUNT_MAX * (72 + 40 + 40);

    /// Admits a machine whose certificate is good, at an agreed moment in seconds since 1970, if it is the
    /// first with its invitation and that has not expired. Whoever asks again is told the same.
    pub fn admit(&mut self, vouched: &Vouched<'_>, now: u64) -> Result<Admission, Refused> {
        self.check(&vouched.machine)?;
        let (expires, later) = (vouched.permit.expires, self.now.max(now));
        let is_over = |used: &Use| used.expires <= later;
        match self.used.get(&vouched.permit.invitation).filter(|used| !is_over(used)) {
            Some(earlier) if earlier.machine == vouched.machine => return Ok(Admission::Again),
            Some(_) => return Err(Refused::InvitationUsed),
            None => {}
        }
        if later >= expires {
            return Err(Refused::InvitationExpired { seconds: later - expires });
        }
        self.check_issuer(&vouched.inviter, now)?;
        vouched.renewer.map_or(Ok(()), |renewer| self.check_issuer(&renewer, now))?;
        if self.used.len() >= Register::COUNT_MAX && !self.used.values().any(is_over) {
            return Err(Refused::InvitationsTooMany);
        }
        // Only for one that is let in: else anybody could move the time on by what they say.
        self.pass(now);
        let machine = vouched.machine;
        self.used.insert(vouched.permit.invitation, Use { machine, expires });
        Ok(Admission::First)
    }

    /// Sends a machine away, if an issuer of this cell says so that may, at an agreed moment in seconds since 1970.
    /// Whether that is news.
    pub fn revoke(
        &mut self,
        authority: &PublicKey,
        revocation: &Revocation,
        now: u64,
    ) -> Result<bool, Refused> {
        let (machine, at, tenure) = revocation.verify(authority)?;
        self.check_issuer(&tenure, now)?;
        note_earlier(&mut self.revoked, machine, at)
    }

    /// Takes in nothing more of an issuer, if the root key of this cell says so. Whether that is news.
    pub fn revoke_issuer(
        &mut self,
        authority: &PublicKey,
        revocation: &IssuerRevocation,
    ) -> Result<bool, Refused> {
        let (issuer, at) = revocation.verify(authority)?;
        note_earlier(&mut self.issuers_revoked, issuer, at)
    }

    /// Refuses what is new of an issuer that was revoked, or that could issue until a moment that is over, at an
    /// agreed moment in seconds since 1970. Only the agreed time counts: an issuer can write down what moment it likes.
    pub fn check_issuer(&self, tenure: &Tenure, now: u64) -> Result<(), Refused> {
        let later = self.now.max(now);
        match self.issuers_revoked.get(&tenure.issuer) {
            Some(&at) => Err(Refused::IssuerRevoked { at }),
            None if later >= tenure.until => {
                Err(Refused::IssuerExpired { seconds: later - tenure.until })
            }
            None => Ok(()),
        }
    }

    /// Whether an issuer was revoked.
    pub fn is_issuer_revoked(&self, issuer: &PublicKey) -> bool {
        self.issuers_revoked.contains_key(issuer)
    }

    /// Refuses a machine that was sent away.
    pub fn check(&self, machine: &PublicKey) -> Result<(), Refused> {
        match self.revoked.get(machine) {
            Some(&at) => Err(Refused::MachineRevoked { at }),
            None => Ok(()),
        }
    }

    /// Forgets what no longer matters at an agreed moment, in seconds since 1970.
    pub fn pass(&mut self, now: u64) {
        if now > self.now {
            self.now = now;
            self.used.retain(|_, used| used.expires > now);
        }
    }

    /// How many invitations are used and have not expired.
    pub fn used_count(&self) -> usize {
        self.used.len()
    }

    /// Who was sent away, and when.
    pub fn revoked(&self) -> impl Iterator<Item = (&PublicKey, u64)> {
        self.revoked.iter().map(|(machine, at)| (machine, *at))
    }
}

/// Notes that a key was revoked; of two moments the earlier counts, in whatever order they come. Whether that is news.
fn note_earlier(
    revoked: &mut BTreeMap<PublicKey, u64>,
    key: PublicKey,
    at: u64,
) -> Result<bool, Refused> {
    if let Some(known) = revoked.get_mut(&key) {
        *known = at.min(*known);
        return Ok(false);
    }
    if revoked.len() >= Register::COUNT_MAX {
        return Err(Refused::RevocationsTooMany);
    }
    revoked.insert(key, at);
    Ok(true)
}

fn read_bounded<R: io::Read, V: BorshDeserialize>(
    reader: &mut R,
) -> io::Result<BTreeMap<PublicKey, V>> {
    let map = BTreeMap::deserialize_reader(reader)?;
    match map.len() <= Register::COUNT_MAX {
        true => Ok(map),
        false => Err(Malformed::new("a register has more in it than it may").into()),
    }
}
