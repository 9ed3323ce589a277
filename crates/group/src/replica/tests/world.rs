//! A few members with disks that keep everything, links that take half a millisecond, unless a test has other ones,
//! and a list for a state.

use std::collections::{BTreeMap, BTreeSet};

use base::{Digest, Domain, Duration, Instant, Machine as _, PublicKey, Rng, SecretKey};

use super::super::{Input, Output, Replica, Settings};
use crate::{
    batch::Tip,
    message::Message,
    rescue::Charter,
    seal::{Ed25519, Notary, Seal},
    seat::Seat,
};

pub(super) const HOP: Duration = Duration::from_micros(500);

pub(super) fn group() -> Digest {
    Digest::of(Domain::new("test group v1"), b"")
}

/// The group, and whose word rescues it.
pub(super) fn charter() -> Charter {
    Charter { group: group(), authority: Some(key(AUTHORITY).public()) }
}

/// Whose key the authority has.
pub(super) const AUTHORITY: u8 = 200;

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

pub(super) fn seat(number: u8) -> Seat {
    Seat { key: key(number).public(), incarnation: 0 }
}

pub(super) fn notary(number: u8) -> Ed25519 {
    Ed25519::new(key(number))
}

/// Seals with a hash that anybody could make, where nobody lies and much is decided.
#[derive(Clone, Debug)]
pub(super) struct Wax(PublicKey);

impl Notary for Wax {
    fn seal(&self, bytes: &[u8]) -> Seal {
        let mut seal = Seal([0; 64]);
        let both = [self.0.as_bytes(), bytes].concat();
        let digest = Digest::of(Domain::new("test seal v1"), &both);
        seal.0[..32].copy_from_slice(digest.as_bytes());
        seal
    }

    fn is_sealed(&self, by: &PublicKey, bytes: &[u8], seal: &Seal) -> bool {
        Wax(*by).seal(bytes) == *seal
    }
}

/// What a world's members seal with.
pub(super) trait Pen: Notary + Clone {
    fn of(number: u8) -> Self;
}

impl Pen for Ed25519 {
    fn of(number: u8) -> Ed25519 {
        notary(number)
    }
}

impl Pen for Wax {
    fn of(number: u8) -> Wax {
        Wax(key(number).public())
    }
}

pub(super) struct Member<N> {
    pub(super) replica: Replica<N>,
    notary: N,
    log: Vec<Vec<u8>>,
    first: Tip,
    /// Of the log so much counts no more, since what it led to was never decided.
    pub(super) forgotten: usize,
    /// What took effect: the state.
    pub(super) state: Vec<Vec<u8>>,
    pub(super) decided_at: Vec<Instant>,
    /// The rounds in which it was decided.
    pub(super) rounds: Vec<u32>,
    pub(super) installs: usize,
    pub(super) is_stale: bool,
}

pub(super) struct World<N = Ed25519> {
    pub(super) now: Instant,
    settings: Settings,
    pub(super) members: BTreeMap<Seat, Member<N>>,
    /// Who is not there.
    pub(super) down: BTreeSet<Seat>,
    /// Who does not hear what others want.
    pub(super) deaf: BTreeSet<Seat>,
    /// Commands that no member finds fit but who has heard them first.
    pub(super) unfit: BTreeSet<Vec<u8>>,
    mail: BTreeMap<(Instant, u64), (Seat, Seat, Message)>,
    pub(super) sent: u64,
    /// How many pieces of states were sent.
    pub(super) pieces: u64,
    pub(super) wires: Wires,
}

/// What takes a message from one member to another.
pub(super) struct Wires {
    /// Each message takes this long.
    pub(super) hop: Duration,
    /// And up to so much longer, as luck has it.
    pub(super) jitter: Duration,
    pub(super) luck: Rng,
    /// Not more than so many bytes go to a member in a second, and from it, each one after the other.
    pub(super) narrow: BTreeMap<Seat, u64>,
    /// When the last of what goes to a member (or from it) has passed its narrow wire.
    free_at: BTreeMap<(Seat, bool), Instant>,
    /// When the last message from one to another comes: none overtakes another there.
    last_at: BTreeMap<(Seat, Seat), Instant>,
}

/// What a message takes beside its bytes: headers, and what confirms it.
const MESSAGE_BYTES: u64 = 100;

impl Wires {
    fn new() -> Wires {
        let (narrow, free_at, last_at) = Default::default();
        let (hop, jitter, luck) = (HOP, Duration::ZERO, Rng::new(1));
        Wires { hop, jitter, luck, narrow, free_at, last_at }
    }

    /// When a message that is sent now arrives.
    fn arrival(&mut self, now: Instant, from: Seat, to: Seat, message: &Message) -> Instant {
        let mut at = now;
        for (end, is_to) in [(from, false), (to, true)] {
            if let Some(rate) = self.narrow.get(&end) {
                let bytes = MESSAGE_BYTES + base::encode(message).len() as u64;
                let free_at = self.free_at.entry((end, is_to)).or_insert(at);
                at = at.max(*free_at) + Duration::from_nanos(bytes * 1_000_000_000 / rate);
                *free_at = at;
            }
        }
        at = at + self.hop;
        if self.jitter > Duration::ZERO {
            at = at + Duration::from_nanos(self.luck.below(self.jitter.as_nanos() as u64));
        }
        let last_at = self.last_at.entry((from, to)).or_insert(at);
        *last_at = at.max(*last_at);
        *last_at
    }
}

impl World {
    pub(super) fn new(settings: Settings, count: u8) -> World {
        World::sealed(settings, count)
    }
}

impl<N: Pen> World<N> {
    pub(super) fn sealed(settings: Settings, count: u8) -> World<N> {
        let seats: Vec<Seat> = (0..count).map(seat).collect();
        let tip = Tip::first(seats).unwrap();
        let mut world = World {
            now: Instant::from_secs(1),
            settings,
            members: BTreeMap::new(),
            down: BTreeSet::new(),
            deaf: BTreeSet::new(),
            unfit: BTreeSet::new(),
            mail: BTreeMap::new(),
            sent: 0,
            pieces: 0,
            wires: Wires::new(),
        };
        for number in 0..count {
            world.add(number, tip.clone());
        }
        world
    }

    /// A member with an empty disk.
    pub(super) fn add(&mut self, number: u8, tip: Tip) {
        let notary = N::of(number);
        let first = tip.clone();
        let replica = Replica::new(
            self.settings.clone(),
            charter(),
            seat(number),
            notary.clone(),
            tip,
            self.now,
        );
        let (log, state, decided_at, rounds) = Default::default();
        let (forgotten, installs, is_stale) = (0, 0, false);
        let member = Member {
            replica,
            notary,
            log,
            first,
            forgotten,
            state,
            decided_at,
            rounds,
            installs,
            is_stale,
        };
        self.members.insert(seat(number), member);
    }

    /// A member starts again with as much of its log.
    pub(super) fn restart(&mut self, number: u8, keep: usize) {
        let seat = seat(number);
        let member = self.members.get_mut(&seat).unwrap();
        member.log.truncate(keep);
        member.state.clear();
        let mut out = Vec::new();
        let log = member.log[member.forgotten..].iter().map(Vec::as_slice);
        let (settings, notary) = (self.settings.clone(), member.notary.clone());
        let (tip, mark) = (member.first.clone(), member.forgotten as u64);
        member.replica =
            Replica::recover(settings, charter(), seat, notary, tip, log, mark, self.now, &mut out)
                .unwrap();
        self.down.remove(&seat);
        self.follow(seat, out);
    }

    pub(super) fn log_len(&self, number: u8) -> usize {
        self.members[&seat(number)].log.len()
    }

    pub(super) fn log(&self, number: u8) -> &[Vec<u8>] {
        &self.members[&seat(number)].log
    }

    pub(super) fn input(&mut self, to: Seat, input: Input) {
        if self.down.contains(&to) {
            return;
        }
        let mut out = Vec::new();
        let member = self.members.get_mut(&to).unwrap();
        member.replica.step(self.now, input, &mut out);
        self.follow(to, out);
    }

    pub(super) fn command(&mut self, to: Seat, number: u32) {
        self.hand_in(to, number.to_be_bytes().to_vec());
    }

    pub(super) fn hand_in(&mut self, to: Seat, command: Vec<u8>) {
        self.input(to, Input::Command { from: to.key, command });
    }

    fn follow(&mut self, seat: Seat, out: Vec<Output>) {
        for output in out {
            let member = self.members.get_mut(&seat).unwrap();
            match output {
                Output::Persist { mark, record } => {
                    member.log.push(record);
                    assert_eq!(mark, member.log.len() as u64);
                }
                Output::Sync { mark } => self.input(seat, Input::Persisted { mark }),
                Output::Send { to, message } => {
                    self.sent += 1;
                    self.pieces += u64::from(matches!(message, Message::Piece { .. }));
                    let at = self.wires.arrival(self.now, seat, to, &message);
                    self.mail.insert((at, self.sent), (seat, to, message));
                }
                Output::Decided(decision) => {
                    member.state.extend(decision.batch.commands.iter().cloned());
                    member.decided_at.push(self.now);
                    member.rounds.push(decision.certificate.round);
                }
                Output::WantState { height } => {
                    let state = base::encode(&member.state).into();
                    self.input(seat, Input::State { height, state });
                }
                Output::Install { state, .. } => {
                    member.state = base::decode(&state, state.len()).unwrap();
                    member.installs += 1;
                }
                Output::Misled { tip } => {
                    (member.first, member.forgotten) = (tip, member.log.len());
                    member.state.clear();
                }
                Output::Stale | Output::Astray(_) => member.is_stale = true,
            }
        }
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let mail = self.mail.keys().next().map(|(at, _)| *at);
            let awake = self.members.iter().filter(|(seat, _)| !self.down.contains(seat));
            let wake =
                awake.filter_map(|(seat, member)| Some((member.replica.wake_at()?, *seat))).min();
            let next = mail.into_iter().chain(wake.map(|(at, _)| at)).min();
            let Some(next) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(next);
            if mail == Some(next) {
                let (_, (from, to, message)) = self.mail.pop_first().unwrap();
                let is_want = matches!(message, Message::Commands(_) | Message::Overdue(_));
                if is_want && self.deaf.contains(&to) {
                    continue;
                }
                let is_fit = !message.commands().iter().any(|one| self.unfit.contains(one));
                self.input(to, Input::Heard { from, message, is_fit });
            } else if let Some((_, seat)) = wake {
                let mut out = Vec::new();
                self.members.get_mut(&seat).unwrap().replica.tick(self.now, &mut out);
                self.follow(seat, out);
            }
        }
        self.now = end;
    }

    pub(super) fn leader(&self) -> Seat {
        let up = self.members.iter().filter(|(seat, _)| !self.down.contains(seat));
        let tips = up.map(|(_, member)| member.replica.tip());
        tips.max_by_key(|tip| tip.height).unwrap().leader
    }

    pub(super) fn states(&self) -> Vec<Vec<u32>> {
        let up = self.members.iter().filter(|(seat, _)| !self.down.contains(seat));
        up.map(|(_, member)| {
            let commands = member.state.iter();
            commands.map(|bytes| u32::from_be_bytes(*bytes.first_chunk().unwrap())).collect()
        })
        .collect()
    }
}
