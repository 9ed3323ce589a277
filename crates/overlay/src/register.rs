//! What the machines of a cell agree on: who was first to use an invitation, and who was sent away.
//!
//! A certificate alone does not tell whether another machine has used the same invitation. So a cell's group
//! keeps a register as a part of its state, and a machine is one of the cell only if it was admitted there.

use std::collections::BTreeMap;

use base::{Malformed, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize, io};

use crate::{certificate::Vouched, refused::Refused, revocation::Revocation};

/// Used invitations and revoked machines.
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
    /// The most invitations that are used and have not expired, and the most machines that are revoked.
    pub const COUNT_MAX: usize = 65_536;

    /// The most bytes that it takes.
    pub const BYTES_MAX: usize = 8 + 2 * 4 + Register::COUNT_MAX * (72 + 40);

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
        if self.used.len() >= Register::COUNT_MAX && !self.used.values().any(is_over) {
            return Err(Refused::InvitationsTooMany);
        }
        // Only for one that is let in: else anybody could move the time on by what they say.
        self.pass(now);
        let machine = vouched.machine;
        self.used.insert(vouched.permit.invitation, Use { machine, expires });
        Ok(Admission::First)
    }

    /// Sends a machine away, if the authority of this cell says so. Whether that is news.
    pub fn revoke(
        &mut self,
        authority: &PublicKey,
        revocation: &Revocation,
    ) -> Result<bool, Refused> {
        let (machine, at) = revocation.verify(authority)?;
        if let Some(known) = self.revoked.get_mut(&machine) {
            // Of two the earlier counts, in whatever order they come.
            *known = at.min(*known);
            return Ok(false);
        }
        if self.revoked.len() >= Register::COUNT_MAX {
            return Err(Refused::RevocationsTooMany);
        }
        self.revoked.insert(machine, at);
        Ok(true)
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

fn read_bounded<R: io::Read, V: BorshDeserialize>(
    reader: &mut R,
) -> io::Result<BTreeMap<PublicKey, V>> {
    let map = BTreeMap::deserialize_reader(reader)?;
    match map.len() <= Register::COUNT_MAX {
        true => Ok(map),
        false => Err(Malformed::new("a register has more in it than it may").into()),
    }
}
