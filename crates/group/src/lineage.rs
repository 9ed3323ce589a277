//! Who sat in a group one after another: each change was decided by those before it, who have sealed that.
//!
//! So somebody who has slept through several changes finds out who the members are now, step by step, and need
//! not believe anybody. A rescue is a step of another kind: the authority has sealed it.

use std::{io, sync::Arc};

use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    ballot::Step,
    batch::{Change, Decision, HEIGHT_MAX, Tip},
    rescue::{Charter, Rescue},
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
    /// decided that, or the authority has. What came before the roll is passed over.
    #[must_use]
    pub fn after<N: Notary>(&self, changes: &[Decision], charter: &Charter, notary: &N) -> Roll {
        let later = changes.iter().filter(|change| change.height >= self.epoch);
        let (mut roll, mut is_broken) = (self.clone(), false);
        for change in later {
            let decided = || roll.succeeded(change, charter, notary).filter(|_| !is_broken);
            match roll.rescued(change, charter, notary).or_else(decided) {
                Some(next) => (roll, is_broken) = (next, false),
                None => is_broken = true,
            }
        }
        roll
    }

    /// After a rescue, which holds whoever sat here before it.
    fn rescued<N: Notary>(&self, change: &Decision, charter: &Charter, notary: &N) -> Option<Roll> {
        let rescue = charter.rescue(change, notary)?;
        let is_news = rescue.number > Rescue::number_at(self.epoch);
        let (epoch, leader) = (change.height + 1, rescue.seat);
        is_news.then(|| Roll { epoch, seats: vec![leader], leader })
    }

    fn succeeded<N: Notary>(
        &self,
        change: &Decision,
        charter: &Charter,
        notary: &N,
    ) -> Option<Roll> {
        let Decision { height, batch, certificate } = change;
        let Some(Change::Enact { seats, .. }) = &batch.change else { return None };
        let next = Seats::new(seats.clone()).filter(|next| next.list() == seats)?;
        let is_sealed = (self.epoch..HEIGHT_MAX).contains(height)
            && certificate.height == *height
            && certificate.step == Step::Precommit
            && certificate.value == batch.digest()
            && certificate.is_valid(&charter.group, &Seats::new(self.seats.clone())?, notary);
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

    /// The last rescue among them. Nothing before it is kept.
    pub fn rescue(&self) -> Option<&Decision> {
        self.0.iter().rev().find(|change| change.rescue().is_some())
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
    use base::{Digest, Domain, Instant, SecretKey};

    use super::*;
    use crate::{
        ballot::{Certificate, Vote},
        batch::Batch,
        seal::{Ed25519, Sealable as _, Sealed},
    };

    fn group() -> Digest {
        Digest::of(Domain::new("test group v1"), b"")
    }

    fn charter() -> Charter {
        Charter { group: group(), authority: Some(key(AUTHORITY).public()) }
    }

    const AUTHORITY: u8 = 77;

    /// The owner of this key lets this seat of this group go on alone.
    fn rescue_by(signer: u8, of: &Digest, number: u32, survivor: u8) -> Decision {
        let time = Instant::from_secs(50);
        let what = Rescue { number, seat: seat(survivor), height: 30, time, at: 9 };
        let seal = Ed25519::new(key(signer)).seal(&what.sealed_bytes(of));
        Sealed { what, seal }.decision()
    }

    fn rescue(number: u32, survivor: u8) -> Decision {
        rescue_by(AUTHORITY, &group(), number, survivor)
    }

    fn rescued(number: u32, survivor: u8) -> Roll {
        let epoch = (u64::from(number) << 44) + 1;
        Roll { epoch, seats: vec![seat(survivor)], leader: seat(survivor) }
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
        let change = Change::Enact { seats: seats(to), point: None, ready: Vec::new() };
        let tip = Tip::first(vec![leader]).unwrap();
        let batch =
            Batch::after(&tip, leader, Instant::from_secs(height), Vec::new(), Some(change));
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
        roll.after(changes, &charter(), &Ed25519::new(key(99)))
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
        forged.batch.change =
            Some(Change::Enact { seats: seats(4..8), point: None, ready: Vec::new() });
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
        assert!(!trust.on_changes(&[change(5, 0..2, 4..8)], &charter(), &notary));
        assert!(trust.on_changes(&[change(5, 0..3, 4..8)], &charter(), &notary));
        assert!(!trust.on_changes(&[change(5, 0..3, 4..8)], &charter(), &notary), "it is known");
        assert_eq!((trust.epoch(), trust.seats().list()), (6, &seats(4..8)[..]));
        assert!(!trust.on_answer(seat(0), 7, b"yes"), "it sits here no more");
        assert!(!trust.on_answer(seat(4), 7, b"yes"));
        assert!(trust.on_answer(seat(5), 7, b"yes"));
    }

    #[test]
    fn a_rescue_is_followed_whoever_sat_there_before_and_whatever_is_missing() {
        let place = 1 << 44;
        let grown = change(place + 9, 2..3, 2..6);
        let changes = [change(5, 9..10, 0..4), rescue(1, 2), grown];
        for known in [roll(1, 0..1), roll(31, 0..4), roll(900_000, 4..8)] {
            assert_eq!(after(&known, &changes), roll(place + 10, 2..6));
        }
        let later = roll(place + 10, 2..6);
        assert_eq!(after(&later, &[rescue(2, 7)]), rescued(2, 7), "the greater number counts");
    }

    #[test]
    fn a_rescue_that_the_authority_of_this_group_has_not_sealed_is_none() {
        let first = roll(1, 0..4);
        let other = Digest::of(Domain::new("test group v1"), b"other");
        let mut moved = rescue(1, 2);
        moved.batch = rescue(1, 3).batch;
        let mut dressed = rescue(1, 2);
        dressed.batch.commands.push(vec![1]);
        dressed.certificate.value = dressed.batch.digest();
        let mut raised = rescue(1, 2);
        raised.height <<= 1;
        let mut unlike = rescue(1, 2);
        if let Some(Change::Rescue(sealed)) = &mut unlike.batch.change {
            sealed.what.seat = seat(3);
        }
        let unlike = unlike.rescue().unwrap().decision();
        let forged = [
            rescue_by(2, &group(), 1, 2),
            rescue_by(AUTHORITY, &other, 1, 2),
            rescue(0, 2),
            rescue(u32::MAX, 2),
            moved,
            dressed,
            raised,
            unlike,
        ];
        for change in forged {
            assert_eq!(after(&first, std::slice::from_ref(&change)), first, "{change:?}");
        }
        let nobody = Charter::from(group());
        let unmoved = first.after(&[rescue(1, 2)], &nobody, &Ed25519::new(key(99)));
        assert_eq!(unmoved, first, "a group without an authority is rescued by nobody");
    }

    #[test]
    fn an_older_rescue_and_another_with_the_same_number_change_nothing() {
        let second = after(&roll(1, 0..4), &[rescue(2, 2)]);
        assert_eq!(second, rescued(2, 2));
        for replayed in [rescue(1, 3), rescue(2, 3), rescue(2, 2)] {
            assert_eq!(after(&second, &[replayed]), second);
        }
    }

    #[test]
    fn those_who_were_passed_over_change_nothing_any_more() {
        let known = rescued(1, 2);
        let old = change(40, 0..4, 0..4);
        let late = change((1 << 44) + 5, 0..4, 0..4);
        assert_eq!(after(&known, &[old, late]), known);
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
