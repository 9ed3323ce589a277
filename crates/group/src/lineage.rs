//! Who sat in a group one after another: each change was decided by those before it, who have sealed that.
//!
//! So somebody who has slept through several changes finds out who the members are now, step by step, and need
//! not believe anybody.

use std::{io, sync::Arc};

use base::Digest;
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    ballot::Step,
    batch::{Change, Decision, Tip},
    seal::Notary,
    seat::{Seat, Seats},
};

/// Who sits in a group since when, and who leads. Who leads is a hint.
#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub struct Roll {
    /// The first height at which the members were these.
    pub epoch: u64,
    /// The members, in order.
    pub seats: Vec<Seat>,
    /// Who leads.
    pub leader: Seat,
}

impl From<&Tip> for Roll {
    fn from(tip: &Tip) -> Roll {
        Roll { epoch: tip.epoch, seats: tip.seats.clone(), leader: tip.leader }
    }
}

impl Roll {
    /// Who sits here after these changes, as far as the members on the roll, and those after them, have
    /// decided that. What came before the roll is passed over.
    #[must_use]
    pub fn after<N: Notary>(&self, changes: &[Decision], group: &Digest, notary: &N) -> Roll {
        let later = changes.iter().filter(|change| change.height >= self.epoch);
        let mut roll = self.clone();
        for change in later {
            let Some(next) = roll.succeeded(change, group, notary) else { break };
            roll = next;
        }
        roll
    }

    fn succeeded<N: Notary>(&self, change: &Decision, group: &Digest, notary: &N) -> Option<Roll> {
        let Decision { height, batch, certificate } = change;
        let Some(Change::Enact { seats, .. }) = &batch.change else { return None };
        let next = Seats::new(seats.clone()).filter(|next| next.list() == seats)?;
        let is_sealed = *height >= self.epoch
            && certificate.height == *height
            && certificate.step == Step::Precommit
            && certificate.value == batch.digest()
            && certificate.is_valid(group, &Seats::new(self.seats.clone())?, notary);
        let leader = *next.led_by(batch.leader).leader(0);
        is_sealed.then(|| Roll { epoch: height + 1, seats: seats.clone(), leader })
    }
}

/// The last changes of members, in order, each with what proves it. At most [`Lineage::COUNT_MAX`], and each
/// batch has no commands, so all of them are small.
///
/// Whoever has slept through more asks again whomever it has asked at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage(Arc<[Decision]>);

impl Lineage {
    /// So many changes are remembered.
    pub const COUNT_MAX: usize = 32;

    /// The changes, in order.
    pub fn changes(&self) -> &[Decision] {
        &self.0
    }

    /// The changes that somebody has not heard of who knows the members since this height.
    pub fn since(&self, epoch: u64) -> &[Decision] {
        &self.0[self.0.partition_point(|change| change.height < epoch)..]
    }

    /// The same with one more.
    #[must_use]
    pub(crate) fn with(&self, change: Decision) -> Lineage {
        let surplus = (self.0.len() + 1).saturating_sub(Lineage::COUNT_MAX);
        Lineage(self.0[surplus..].iter().cloned().chain([change]).collect())
    }
}

impl BorshSerialize for Lineage {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        self.0[..].serialize(writer)
    }
}

impl BorshDeserialize for Lineage {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Lineage> {
        let changes: Vec<Decision> = Vec::deserialize_reader(reader)?;
        match changes.len() <= Lineage::COUNT_MAX {
            true => Ok(Lineage(changes.into())),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "too many changes of members")),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::{Domain, Instant, SecretKey};

    use super::*;
    use crate::{
        ballot::{Certificate, Vote},
        batch::Batch,
        seal::{Ed25519, Sealable as _},
    };

    fn group() -> Digest {
        Digest::of(Domain::new("test group v1"), b"")
    }

    fn key(number: u8) -> SecretKey {
        SecretKey::from_seed([number; 32])
    }

    fn seat(number: u8) -> Seat {
        Seat { key: key(number).public(), incarnation: 0 }
    }

    fn seats(numbers: std::ops::Range<u8>) -> Vec<Seat> {
        Seats::new(numbers.map(seat).collect()).unwrap().list().to_vec()
    }

    fn roll(epoch: u64, numbers: std::ops::Range<u8>) -> Roll {
        Roll { epoch, seats: seats(numbers.clone()), leader: seat(numbers.start) }
    }

    /// At this height these members decide that those sit here.
    fn change(height: u64, by: impl IntoIterator<Item = u8>, to: std::ops::Range<u8>) -> Decision {
        let leader = seat(to.start);
        let change = Change::Enact { seats: seats(to), ready: Vec::new() };
        let (time, commands) = (Instant::from_secs(height), Vec::new());
        let batch = Batch { leader, time, commands, change: Some(change) };
        let (round, step, value) = (0, Step::Precommit, batch.digest());
        let seal = |number| {
            let vote = Vote { height, round, step, value: Some(value), seat: seat(number) };
            (seat(number), Ed25519::new(key(number)).seal(&vote.sealed_bytes(&group())))
        };
        let mut seals: Vec<_> = by.into_iter().map(seal).collect();
        seals.sort_unstable();
        Decision { height, batch, certificate: Certificate { height, round, step, value, seals } }
    }

    fn after(roll: &Roll, changes: &[Decision]) -> Roll {
        roll.after(changes, &group(), &Ed25519::new(key(99)))
    }

    #[test]
    fn who_has_slept_through_changes_finds_out_step_by_step() {
        let changes = [change(5, 0..1, 0..4), change(9, 0..3, 0..7), change(20, 2..7, 4..8)];
        assert_eq!(after(&roll(1, 0..1), &changes), roll(21, 4..8));
        assert_eq!(after(&roll(6, 0..4), &changes), roll(21, 4..8));
        assert_eq!(after(&roll(21, 4..8), &changes), roll(21, 4..8), "nothing is new");
    }

    #[test]
    fn what_those_before_have_not_sealed_is_not_believed() {
        let first = roll(1, 0..4);
        assert_eq!(after(&first, &[change(5, 0..2, 4..8)]), first, "two of four are too few");
        assert_eq!(after(&first, &[change(5, 4..7, 4..8)]), first, "they sat elsewhere");
        let mut forged = change(5, 0..3, 0..7);
        forged.batch.change = Some(Change::Enact { seats: seats(4..8), ready: Vec::new() });
        assert_eq!(after(&first, &[forged]), first, "they have sealed something else");
        let changes = [change(5, 0..3, 0..7), change(9, 0..3, 4..8)];
        assert_eq!(after(&first, &changes), roll(6, 0..7), "three of seven are too few");
    }

    #[test]
    fn with_one_missing_nothing_after_it_is_believed() {
        let changes = [change(9, 0..5, 4..8), change(20, 4..7, 8..12)];
        assert_eq!(after(&roll(1, 0..1), &changes), roll(1, 0..1));
        assert_eq!(after(&roll(6, 0..7), &changes), roll(21, 8..12));
    }

    #[test]
    fn somebody_outside_follows_whoever_shows_it() {
        let mut trust = crate::Trust::new(roll(1, 0..4)).unwrap();
        let notary = Ed25519::new(key(99));
        trust.ask(7);
        assert!(!trust.on_changes(&[change(5, 0..2, 4..8)], &group(), &notary));
        assert!(trust.on_changes(&[change(5, 0..3, 4..8)], &group(), &notary));
        assert!(!trust.on_changes(&[change(5, 0..3, 4..8)], &group(), &notary), "it is known");
        assert_eq!((trust.epoch(), trust.seats().list()), (6, &seats(4..8)[..]));
        assert!(!trust.on_answer(seat(0), 7, b"yes"), "it sits here no more");
        assert!(!trust.on_answer(seat(4), 7, b"yes"));
        assert!(trust.on_answer(seat(5), 7, b"yes"));
    }

    #[test]
    fn the_oldest_changes_are_forgotten() {
        let mut lineage = Lineage::default();
        for height in 0..100 {
            lineage = lineage.with(change(height, 0..0, 0..1));
        }
        assert_eq!(lineage.changes().len(), Lineage::COUNT_MAX);
        assert_eq!(lineage.since(98).len(), 2);
        let bytes = base::encode(&lineage);
        assert_eq!(base::decode::<Lineage>(&bytes, bytes.len()), Ok(lineage.clone()));
        let more = lineage.0.iter().cloned().chain([change(100, 0..0, 0..1)]);
        let bytes = base::encode(&more.collect::<Vec<_>>());
        assert!(base::decode::<Lineage>(&bytes, bytes.len()).is_err());
    }
}
