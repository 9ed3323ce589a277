//! What is decided: commands in order, the time at which they happen, and who is to sit in the group.

use base::{Digest, Domain, Instant, Malformed, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{
    ballot::{Certificate, Step},
    lineage::{Lineage, Roll},
    point::Point,
    rescue::Rescue,
    seal::{Notary, Seal, Sealable, Sealed},
    seat::{Seat, Seats},
    term::Term,
};

const BATCH: Domain = Domain::new("group batch v2");

/// What the first batch of all follows, and a rescue.
const NOTHING: Digest = Digest::from_bytes([0; 32]);

/// What a leader proposes.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Batch {
    /// The digest of the batch before it, which names the one before that: whoever agrees to this one has decided
    /// the same as all others who do.
    pub before: Digest,
    /// The first height at which the members were those who decide it.
    pub epoch: u64,
    /// Who made it. It leads on from here, if this is decided.
    pub leader: Seat,
    /// The agreed time. Never less than that of the decision before.
    pub time: Instant,
    /// The commands, in order. What they mean is not the group's business.
    pub commands: Vec<Vec<u8>>,
    /// A change of members.
    pub change: Option<Change>,
}

impl Batch {
    /// One that follows all that has led to this tip.
    pub fn after(
        tip: &Tip,
        leader: Seat,
        time: Instant,
        commands: Vec<Vec<u8>>,
        change: Option<Change>,
    ) -> Batch {
        Batch { before: tip.last, epoch: tip.epoch, leader, time, commands, change }
    }

    /// The one that a rescue is. What came before it is for the authority to say, and for nobody else.
    pub(crate) fn of_rescue(rescue: Sealed<Rescue>) -> Batch {
        let (leader, time) = (rescue.what.seat, rescue.what.time);
        let (commands, change) = (Vec::new(), Some(Change::Rescue(Box::new(rescue))));
        Batch { before: NOTHING, epoch: 0, leader, time, commands, change }
    }

    /// Whether it follows all that has led to this tip, and nothing else.
    pub fn is_after(&self, tip: &Tip) -> bool {
        (self.before, self.epoch) == (tip.last, tip.epoch)
    }

    /// What is voted on.
    pub fn digest(&self) -> Digest {
        Digest::of(BATCH, &base::encode(self))
    }
}

/// A change of members, in two decisions: who is to sit here, and when so many of them have caught up that
/// they can decide, that they do.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Change {
    /// These are to be the members; so many wish it that one of them is honest, and a quorum if somebody has
    /// to go: so nobody goes unless more honest members wish it than may lie.
    Plan {
        /// The members to be.
        seats: Vec<Seat>,
        /// Who wishes it, in order.
        wishes: Vec<Wisher>,
    },
    /// They are, from the next height on. Those that stay, and the new ones that have shown that they have what
    /// was decided, are a quorum of them; who never does so can't keep a group from growing, and takes nobody
    /// else's seat.
    Enact {
        /// The members, as they were planned. The batch has nothing else in it, since it is kept for those
        /// who want to know how the members came to be these.
        seats: Vec<Seat>,
        /// What the new members have shown, all the same, if there are any. Whoever votes for it has that too.
        point: Option<Point>,
        /// New members that have caught up, in order, with their seals on [`Ready`].
        ready: Vec<(Seat, Seal)>,
    },
    /// Those who sat here before have decided that these do: what proves it, the same for all.
    Prove(Certificate),
    /// Too many are lost, and one goes on alone. The authority says so, and nobody votes on it.
    Rescue(Box<Sealed<Rescue>>),
}

/// A member wishes that these be the members.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Wish {
    /// Since when the members are as they are: wishes do not outlive them.
    pub epoch: u64,
    /// The members to be, in order.
    pub seats: Vec<Seat>,
    /// It does not count for anything that is decided later. Else somebody could keep the wishes of a bad hour,
    /// and use them when all is well again.
    pub until: Instant,
}

/// A member that wishes what a plan says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Wisher {
    /// Who.
    pub seat: Seat,
    /// Until when, by the agreed time.
    pub until: Instant,
    /// The seal on a [`Wish`].
    pub seal: Seal,
}

impl Sealable for Wish {
    const KIND: u8 = 3;
}

/// A member to be has caught up.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Ready {
    /// Since when the members are as they are.
    pub epoch: u64,
    /// The members to be, in order.
    pub seats: Vec<Seat>,
    /// Who has caught up.
    pub seat: Seat,
    /// What it has. It counts only for members that have decided the same.
    pub point: Point,
}

impl Sealable for Ready {
    const KIND: u8 = 4;
}

/// What the decisions so far leave behind for the next one.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Tip {
    /// The last place that was decided.
    pub height: u64,
    /// The digest of the batch there, which stands for all that was decided: each names the one before it.
    pub last: Digest,
    /// Its time.
    pub time: Instant,
    /// Who leads.
    pub leader: Seat,
    /// Since when.
    pub term: Term,
    /// The first height at which the members were these.
    pub epoch: u64,
    /// The members, in order.
    pub seats: Vec<Seat>,
    /// The members to be, in order, while they catch up.
    pub plan: Option<Vec<Seat>>,
    /// The last change of members, until it is proven.
    pub unproven: Option<Box<Unproven>>,
    /// How the members came to be these. If a change was not proven before the next one, what came before it
    /// leads nowhere, and is forgotten.
    pub lineage: Lineage,
}

/// A change of members of which not all can know yet what proves it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Unproven {
    /// Where it was decided.
    pub height: u64,
    /// The batch that it was in.
    pub batch: Batch,
    /// Those who decided it, in order.
    pub seats: Vec<Seat>,
}

impl Unproven {
    /// Whether these are votes that prove it.
    pub(crate) fn is_proven_by<N: Notary>(
        &self,
        proof: &Certificate,
        group: &Digest,
        notary: &N,
    ) -> bool {
        proof.height == self.height
            && proof.step == Step::Precommit
            && proof.value == self.batch.digest()
            && Seats::new(self.seats.clone())
                .is_some_and(|seats| proof.is_valid(group, &seats, notary))
    }
}

/// No group ever gets so far.
pub(crate) const HEIGHT_MAX: u64 = u64::MAX / 2;

impl Tip {
    /// Before the first decision. None if these can't be a group.
    pub fn first(seats: Vec<Seat>) -> Option<Tip> {
        let seats = Seats::new(seats)?;
        Some(Tip {
            height: 0,
            last: NOTHING,
            time: Instant::START,
            leader: *seats.leader(0),
            term: Term::FIRST,
            epoch: 1,
            seats: seats.list().to_vec(),
            plan: None,
            unproven: None,
            lineage: Lineage::default(),
        })
    }

    /// For somebody who knows who sits here and nothing of what was decided. None if these can't be a group.
    ///
    /// Who knows the very first members knows everything: nothing was decided before them. Any other is blank.
    pub fn pinned(roll: &Roll) -> Option<Tip> {
        let Roll { epoch, seats, leader } = roll.clone();
        let first = Tip::first(seats)?;
        let tip =
            Tip { epoch: epoch.max(1), leader: *first.members().led_by(leader).leader(0), ..first };
        tip.is_sound().then_some(tip)
    }

    /// Whether nothing is known but who sits here: those members have decided nothing yet, and what others have
    /// decided before them is missing. Whoever has it decides nothing and votes on nothing, but takes a state.
    pub fn is_blank(&self) -> bool {
        self.epoch > self.height + 1
    }

    /// Whether those on the roll sit here.
    pub(crate) fn is_of(&self, roll: &Roll) -> bool {
        (self.epoch, &self.seats) == (roll.epoch, &roll.seats)
    }

    /// Whether those who sit here have decided what led to it, as this proves: a quorum of them. What whoever was
    /// here alone before them has decided is not.
    pub(crate) fn is_sealed_by<N: Notary>(
        &self,
        proof: &Certificate,
        group: &Digest,
        notary: &N,
    ) -> bool {
        proof.height == self.height
            && proof.step == Step::Precommit
            && proof.value == self.last
            && proof.is_valid(group, &self.members(), notary)
    }

    /// Whether it can be that of a group. What is read from a disk, or offered, may be anything.
    pub fn is_sound(&self) -> bool {
        let are_sound = |seats: &Vec<Seat>| {
            Seats::new(seats.clone()).is_some_and(|sound| sound.list() == seats)
        };
        self.height < HEIGHT_MAX
            && self.epoch < HEIGHT_MAX
            && are_sound(&self.seats)
            && self.plan.as_ref().is_none_or(are_sound)
            && self.unproven.as_ref().is_none_or(|change| are_sound(&change.seats))
    }

    /// The members, with their leader.
    pub fn members(&self) -> Seats {
        let seats = Seats::new(self.seats.clone()).expect("a group has members");
        seats.led_by(self.leader)
    }

    /// The seat of whoever has this key: that of a member, or of one to be. Of others it is taken for their
    /// first.
    pub fn seat_of(&self, key: &PublicKey) -> Seat {
        let known = self.seats.iter().chain(self.plan.iter().flatten());
        let seats = known.filter(|seat| seat.key == *key).copied();
        seats.max().unwrap_or(Seat { key: *key, incarnation: 0 })
    }

    /// The members to be, that are not members yet.
    pub fn learners(&self) -> impl Iterator<Item = &Seat> {
        let plan = self.plan.iter().flatten();
        plan.filter(|seat| self.seats.binary_search(seat).is_err())
    }

    /// Whether so many learners that have caught up are enough for those to be to sit here. All are. If the group
    /// grows, so many are that together with the members that stay they are a quorum.
    pub(crate) fn is_enough(&self, ready: usize) -> bool {
        let Some(plan) = self.plan.clone().and_then(Seats::new) else { return false };
        let (count, learners) = (plan.list().len(), self.learners().count());
        let is_quorum = ready > 0 && count - learners + ready >= plan.quorum();
        ready == learners || count > self.seats.len() && is_quorum
    }

    /// How many have to wish for these members.
    pub(crate) fn wishes_min(&self, seats: &[Seat]) -> usize {
        let members = self.members();
        match self.seats.iter().all(|seat| seats.contains(seat)) {
            true => members.witnesses(),
            false => members.quorum(),
        }
    }

    /// Whether a change of members may be decided next, for this time.
    pub fn admits<N: Notary>(
        &self,
        change: &Change,
        time: Instant,
        group: &Digest,
        notary: &N,
    ) -> bool {
        let are_sealed = |seals: &[(Seat, Seal)], bytes: &dyn Fn(Seat) -> Vec<u8>| {
            seals.is_sorted_by(|(one, _), (other, _)| one < other)
                && seals.iter().all(|(seat, seal)| notary.is_sealed(&seat.key, &bytes(*seat), seal))
        };
        match change {
            Change::Plan { seats, wishes } => {
                let is_sound = Seats::new(seats.clone()).is_some_and(|set| set.list() == seats);
                let members = self.members();
                let is_sealed = |Wisher { seat, until, seal }: &Wisher| {
                    let wish = Wish { epoch: self.epoch, seats: seats.clone(), until: *until };
                    notary.is_sealed(&seat.key, &wish.sealed_bytes(group), seal)
                };
                is_sound
                    && *seats != self.seats
                    && self.plan.as_ref() != Some(seats)
                    && (self.wishes_min(seats)..=members.list().len()).contains(&wishes.len())
                    && wishes.is_sorted_by(|one, other| one.seat < other.seat)
                    && wishes.iter().all(|wish| members.contains(&wish.seat) && time <= wish.until)
                    && wishes.iter().all(is_sealed)
            }
            Change::Enact { seats, point, ready } => {
                let Some(plan) = self.plan.as_ref().filter(|plan| *plan == seats) else {
                    return false;
                };
                let bytes = |seat| {
                    let (epoch, seats) = (self.epoch, plan.clone());
                    let ready = |point| Ready { epoch, seats, seat, point };
                    point.map_or_else(Vec::new, |point| ready(point).sealed_bytes(group))
                };
                self.is_enough(ready.len())
                    && point.is_none() == ready.is_empty()
                    && ready.iter().all(|(seat, _)| self.learners().any(|one| one == seat))
                    && are_sealed(ready, &bytes)
            }
            Change::Prove(proof) => {
                let unproven = self.unproven.as_deref();
                unproven.is_some_and(|change| change.is_proven_by(proof, group, notary))
            }
            // Nobody proposes it: it holds without anybody's vote, or not at all.
            Change::Rescue(_) => false,
        }
    }

    /// The tip after this batch, which has been decided, by what its certificate calls it.
    #[must_use]
    pub fn after(&self, batch: &Batch, value: Digest) -> Tip {
        let height = match &batch.change {
            Some(Change::Rescue(rescue)) => rescue.what.place(),
            _ => self.height + 1,
        };
        let (last, time, leader) = (value, batch.time, batch.leader);
        let mut tip = Tip { height, last, time, leader, ..self.clone() };
        match &batch.change {
            Some(Change::Plan { seats, .. }) => tip.plan = Some(seats.clone()),
            Some(Change::Enact { seats, .. }) => {
                let before = std::mem::replace(&mut tip.seats, seats.clone());
                (tip.plan, tip.epoch) = (None, height + 1);
                let change = Unproven { height, batch: batch.clone(), seats: before };
                if tip.unproven.replace(Box::new(change)).is_some() {
                    tip.lineage = Lineage::default();
                }
            }
            Some(Change::Prove(certificate)) => {
                if let Some(change) = tip.unproven.take() {
                    let Unproven { height, batch, .. } = *change;
                    let certificate = certificate.clone();
                    tip.lineage = tip.lineage.with(Decision { height, batch, certificate });
                }
            }
            Some(Change::Rescue(rescue)) => {
                (tip.seats, tip.epoch) = (vec![rescue.what.seat], height + 1);
                (tip.plan, tip.unproven) = (None, None);
                // Whoever knows any earlier members can follow it, so nothing before it is needed.
                tip.lineage = Lineage::default().with(rescue.decision());
            }
            None => {}
        }
        let members = tip.members();
        let now = Term { height, time: batch.time };
        let term = if batch.leader == self.leader { self.term } else { now };
        (tip.leader, tip.term) = match term.is_over(height, batch.time) {
            true => (*members.rotated().leader(0), now),
            false => (*members.leader(0), term),
        };
        tip
    }
}

/// A batch with its place, and what proves that it has it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Decision {
    /// Its place. The first is 1.
    pub height: u64,
    /// What was decided.
    pub batch: Batch,
    /// Why it is believed.
    pub certificate: Certificate,
}

impl Decision {
    /// Whether it follows this tip.
    pub fn follows<N: Notary>(&self, tip: &Tip, group: &Digest, notary: &N) -> bool {
        let Decision { height, batch, certificate } = self;
        *height == tip.height + 1
            && certificate.height == *height
            && certificate.step == Step::Precommit
            && batch.is_after(tip)
            && certificate.value == batch.digest()
            && certificate.is_valid(group, &tip.members(), notary)
    }

    /// The rescue that it says it is.
    pub fn rescue(&self) -> Option<&Sealed<Rescue>> {
        match &self.batch.change {
            Some(Change::Rescue(rescue)) => Some(rescue),
            _ => None,
        }
    }

    /// The decision of these bytes.
    pub fn of(bytes: &[u8], bytes_max: usize) -> Result<Decision, Malformed> {
        base::decode(bytes, bytes_max)
    }
}
