//! How a group goes on when more of its members are gone for good than it can bear: the cell's authority names
//! one survivor, who goes on alone from what it has.
//!
//! Other changes of members are decided by those who sat there before. This one needs none of them, so it holds
//! for whoever knows any earlier members, however much has happened since. Heights have its number in front:
//! all that the lost ones may have decided without the survivor's knowledge lies below its place, and nothing
//! that anybody has sealed for those heights stands for anything later.

use base::{Digest, Instant, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    ballot::{Certificate, Step},
    batch::{Batch, Decision},
    seal::{Notary, Sealable, Sealed},
    seat::Seat,
};

/// The heights of one number are as many as 55 years have with 10,000 decisions a second.
const NUMBER_SHIFT: u32 = 44;

/// The authority's word that a group goes on from one survivor.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Rescue {
    /// Which one of this group, from 1 on. Of two the one with the greater number counts.
    pub number: u32,
    /// Who goes on, alone.
    pub seat: Seat,
    /// The last place that was decided as far as the survivor knows.
    pub height: u64,
    /// The agreed time from which it goes on.
    pub time: Instant,
    /// When the authority said so, in seconds since 1970 by its own clock.
    pub at: u64,
}

impl Sealable for Rescue {
    const KIND: u8 = 6;
}

impl Rescue {
    /// No greater number fits into a height.
    pub const NUMBER_MAX: u32 = (1 << (u64::BITS - NUMBER_SHIFT)) - 1;

    /// The number of the last rescue before a height. Zero if there was none.
    pub fn number_at(height: u64) -> u32 {
        (height >> NUMBER_SHIFT) as u32
    }

    /// A height counted from the last rescue before it.
    pub fn height_since(height: u64) -> u64 {
        height & ((1 << NUMBER_SHIFT) - 1)
    }

    /// Its own place in the order.
    pub fn place(&self) -> u64 {
        u64::from(self.number) << NUMBER_SHIFT
    }
}

impl Sealed<Rescue> {
    /// It as a decision, which nobody has voted on.
    pub fn decision(&self) -> Decision {
        let (height, batch) = (self.what.place(), Batch::of_rescue(self.clone()));
        let (round, step, value, seals) = (0, Step::Precommit, batch.digest(), Vec::new());
        Decision { height, batch, certificate: Certificate { height, round, step, value, seals } }
    }
}

/// What a group is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charter {
    /// Its name.
    pub group: Digest,
    /// Who may rescue it, if anybody may.
    pub authority: Option<PublicKey>,
}

/// A group that nobody can rescue.
impl From<Digest> for Charter {
    fn from(group: Digest) -> Charter {
        Charter { group, authority: None }
    }
}

impl Charter {
    /// Whether the authority of this group has said this, and it can be.
    pub fn allows<N: Notary>(&self, rescue: &Sealed<Rescue>, notary: &N) -> bool {
        let Sealed { what, seal } = rescue;
        let bytes = what.sealed_bytes(&self.group);
        (1..=Rescue::NUMBER_MAX).contains(&what.number)
            && what.height < what.place()
            && self.authority.is_some_and(|authority| notary.is_sealed(&authority, &bytes, seal))
    }

    /// The rescue that a decision is, if it is one and the authority of this group has said so.
    pub fn rescue<'a, N: Notary>(&self, decision: &'a Decision, notary: &N) -> Option<&'a Rescue> {
        let rescue = decision.rescue()?;
        let is_so = *decision == rescue.decision() && self.allows(rescue, notary);
        is_so.then_some(&rescue.what)
    }
}
