//! What the machines of a cell agree on: who has used which invitation, who was sent away, and which issuers may issue
//! nothing more.
//!
//! A certificate alone does not tell how many machines have used the same invitation. So a cell's group
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
    /// By the keys of invitations, and which of its machines each is. At most [`Register::COUNT_MAX`], each until the
    /// invitation expires.
    #[borsh(deserialize_with = "read_bounded")]
    used: BTreeMap<(PublicKey, u32), Use>,
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

/// How a machine was admitted, and as which of those that came with its invitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is new.
    New(u32),
    /// It was admitted before, with the same invitation.
    Again(u32),
}

impl Register {
    /// The most machines whose invitations have not expired, the most machines that are revoked, and the most
    /// issuers.
    pub const COUNT_MAX: usize = 65_536;

    /// The most bytes that it takes.
    pub const BYTES_MAX: usize = 8 + 3 * 4 + Register::COUNT_MAX * (76 + 40 + 40);

    /// Admits a machine whose certificate is good, at an agreed moment in seconds since 1970, if its invitation has
    /// not expired and still serves one. Whoever asks again is told the same.
    pub fn admit(&mut self, vouched: &Vouched<'_>, now: u64) -> Result<Admission, Refused> {
        let admission = self.judge(vouched, now)?;
        if let Admission::New(place) = admission {
            // Only for one that is let in: else anybody could move the time on by what they say.
            self.pass(now);
            let (machine, expires) = (vouched.machine, vouched.permit.expires);
            self.used.insert((vouched.permit.invitation, place), Use { machine, expires });
        }
        Ok(admission)
    }

    /// What would come of that now. A machine that is refused as sent away, or with an invitation that is used up, has
    /// ended or has expired, is refused for ever.
    pub fn judge(&self, vouched: &Vouched<'_>, now: u64) -> Result<Admission, Refused> {
        self.check(&vouched.machine)?;
        let (invitation, expires) = (vouched.permit.invitation, vouched.permit.expires);
        let later = self.now.max(now);
        let is_over = |used: &Use| used.expires <= later;
        let its = || {
            let its = self.used.range((invitation, 0)..=(invitation, u32::MAX));
            its.filter(|(_, used)| !is_over(used))
        };
        if let Some(((_, place), _)) = its().find(|(_, used)| used.machine == vouched.machine) {
            return Ok(Admission::Again(*place));
        }
        // Whoever was sent away still has the invitation's key, and could come as somebody else.
        if its().any(|(_, used)| self.revoked.contains_key(&used.machine)) {
            return Err(Refused::InvitationEnded);
        }
        let place = its().next_back().map_or(0, |((_, last), _)| last + 1);
        if place >= vouched.permit.count {
            return Err(Refused::InvitationUsed);
        }
        if later >= expires {
            return Err(Refused::InvitationExpired { seconds: later - expires });
        }
        self.check_issuer(&vouched.inviter, now)?;
        vouched.renewer.map_or(Ok(()), |renewer| self.check_issuer(&renewer, now))?;
        if self.used.len() >= Register::COUNT_MAX && !self.used.values().any(is_over) {
            return Err(Refused::InvitationsTooMany);
        }
        Ok(Admission::New(place))
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

    /// How many machines have come with invitations that have not expired.
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

fn read_bounded<R: io::Read, K: BorshDeserialize + Ord, V: BorshDeserialize>(
    reader: &mut R,
) -> io::Result<BTreeMap<K, V>> {
    let map = BTreeMap::deserialize_reader(reader)?;
    match map.len() <= Register::COUNT_MAX {
        true => Ok(map),
        false => Err(Malformed::new("a register has more in it than it may").into()),
    }
}
