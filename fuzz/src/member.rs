//! A group of four of which one says whatever the bytes make it say: the others agree, go on and stay small.

use std::collections::{BTreeMap, VecDeque};

use base::{Digest, Duration, Instant, Machine as _, PublicKey};
use group::{
    Batch, Input, Message, Notary as _, Output, Passage, Proposal, Replica, Sealable as _, Sealed,
    Seat, Settings, Step, Tip, Vote, Word,
};

use crate::{
    script::Script,
    wax::{Wax, group, seat},
};

const HONEST: usize = 3;
/// Who says anything, with no key but its own.
const LIAR: usize = 3;
/// What is on its way at most; the network loses the rest.
const MAIL_MAX: usize = 256;

/// Plays the bytes. Says how much was decided.
pub fn member(bytes: &[u8]) -> u64 {
    let mut world = World::new();
    let mut script = Script::new(bytes);
    while world.happen(&mut script).is_some() {}
    world.check();
    world.order.last_key_value().map_or(0, |(height, _)| *height)
}

struct Member {
    replica: Replica<Wax>,
    log: Vec<Vec<u8>>,
    /// What the log goes on from, and what all of it leads to.
    base: (Tip, Vec<Vec<u8>>),
    state: Vec<Vec<u8>>,
}

struct World {
    now: Instant,
    settings: Settings,
    members: Vec<Member>,
    mail: VecDeque<(usize, usize, Message)>,
    /// What the liar has heard last.
    heard: VecDeque<Message>,
    /// What was decided, wherever it was first.
    order: BTreeMap<u64, Digest>,
}

impl World {
    fn new() -> World {
        // A state is soon handed over in place of decisions.
        let settings = Settings { checkpoint_every: 4, recent_max: 8, ..Settings::default() };
        let tip = Tip::first((0..=HONEST).map(seat).collect()).expect("four are a group");
        let now = Instant::from_secs(1);
        let member = |number| {
            let (seat, notary) = (seat(number), Wax(seat(number).key));
            let replica = Replica::new(settings.clone(), group(), seat, notary, tip.clone(), now);
            let (log, base, state) = (Vec::new(), (tip.clone(), Vec::new()), Vec::new());
            Member { replica, log, base, state }
        };
        let members = (0..HONEST).map(member).collect();
        let (mail, heard, order) = Default::default();
        World { now, settings, members, mail, heard, order }
    }

    /// Lets the next thing happen, if there is one.
    fn happen(&mut self, script: &mut Script<'_>) -> Option<()> {
        match script.byte()? % 16 {
            0 => {
                let (to, command) = (script.below(HONEST)?, script.byte()?);
                let from = PublicKey::from_bytes([command % 4; 32]);
                self.step(to, Input::Command { from, command: vec![command] });
            }
            1..=5 => self.deliver(),
            6 => _ = self.mail.pop_front(),
            7 => self.pass(Duration::from_millis(10 * u64::from(script.byte()?))),
            8 => self.restart(script.below(HONEST)?),
            9 => {
                let to = script.below(HONEST)?;
                let message = self.vote(script, to)?;
                self.hear(to, message);
            }
            10 => {
                let to = script.below(HONEST)?;
                let message = self.proposal(script, to)?;
                self.hear(to, message);
            }
            11 => {
                let (to, which) = (script.below(HONEST)?, script.below(self.heard.len())?);
                if let Some(message) = self.heard.get(which).cloned() {
                    self.hear(to, message);
                }
            }
            12 => {
                let (to, which) = (script.below(HONEST)?, script.below(self.heard.len())?);
                let message = self.heard.get(which).map(base::encode).unwrap_or_default();
                if let Some(message) = mauled(message, script) {
                    self.hear(to, message);
                }
            }
            13 => {
                let to = script.below(HONEST)?;
                let bytes = script.bytes()?;
                if let Ok(message) = base::decode::<Message>(bytes, bytes.len()) {
                    self.hear(to, message);
                }
            }
            14 => {
                let (to, height) = (script.below(HONEST)?, u64::from(script.byte()?));
                let message = match script.below(3)? {
                    0 => Message::Behind { height, epoch: u64::from(script.byte()?) },
                    1 => Message::Hello { nonce: height },
                    _ => Message::Fetch { height, from: u64::from(script.byte()?) << 8 },
                };
                self.hear(to, message);
            }
            _ => {
                let (to, count) = (script.below(HONEST)?, script.below(8)?);
                self.wish(to, count);
            }
        }
        Some(())
    }

    /// The liar says something.
    fn hear(&mut self, to: usize, message: Message) {
        self.step(to, Input::Heard { from: seat(LIAR), message, is_fit: true });
    }

    fn deliver(&mut self) {
        if let Some((from, to, message)) = self.mail.pop_front() {
            self.step(to, Input::Heard { from: seat(from), message, is_fit: true });
        }
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        for number in 0..HONEST {
            let mut out = Vec::new();
            self.members[number].replica.tick(self.now, &mut out);
            self.follow(number, out);
        }
    }

    fn restart(&mut self, number: usize) {
        let member = &mut self.members[number];
        let (tip, state) = member.base.clone();
        member.state = state;
        let (log, mut out) = (member.log.iter().map(Vec::as_slice), Vec::new());
        let (settings, notary) = (self.settings.clone(), Wax(seat(number).key));
        let recovered = Replica::recover(
            settings,
            group(),
            seat(number),
            notary,
            tip,
            log,
            0,
            self.now,
            &mut out,
        );
        member.replica = recovered.expect("a log that a member has written can be read");
        self.follow(number, out);
    }

    /// A vote of the liar's, near where a member is.
    fn vote(&self, script: &mut Script<'_>, to: usize) -> Option<Message> {
        let height = (self.members[to].replica.tip().height + u64::from(script.byte()? % 3)).max(1);
        let (round, kinds) = (u32::from(script.byte()?) / 8, script.byte()?);
        let step = if kinds & 1 == 0 { Step::Prevote } else { Step::Precommit };
        let value = self.value(script)?.filter(|_| kinds & 2 == 0);
        let what = Vote { height, round, step, value, seat: seat(LIAR) };
        let seal = Wax(seat(LIAR).key).seal(&what.sealed_bytes(&group()));
        if kinds & 12 == 12 {
            // Or as a part of why a round was entered, beside votes that it makes up.
            let others = (0..HONEST).map(|other| (step, value, seat(other), seal));
            let votes = others.chain([(step, value, seat(LIAR), seal)]).collect();
            let is_precommit = kinds & 16 == 0;
            let passage = Passage { height, round, is_precommit, votes };
            return Some(Message::Word(Word::Passage(passage), None));
        }
        Some(Message::Word(Word::Vote(Sealed { what, seal }, kinds & 4 == 0), None))
    }

    /// Something that could be voted for: a batch that the liar has heard of, or nothing that there is.
    fn value(&self, script: &mut Script<'_>) -> Option<Option<Digest>> {
        let which = script.byte()?;
        let batches = self.heard.iter().filter_map(|message| match message {
            Message::Word(Word::Proposal(proposal), _) => Some(proposal.what.value),
            _ => None,
        });
        let known: Vec<Digest> = batches.collect();
        let known = known.get(usize::from(which) % known.len().max(1)).copied();
        Some(known.or(Some(Digest::from_bytes([which; 32]))))
    }

    fn proposal(&self, script: &mut Script<'_>, to: usize) -> Option<Message> {
        let replica = &self.members[to].replica;
        let height = replica.tip().height + u64::from(script.byte()? % 2);
        let (round, valid) = (u32::from(script.byte()?) / 8, script.byte()?);
        let late = Duration::from_millis(u64::from(script.byte()?) * 20);
        let commands = vec![script.bytes()?.to_vec(); usize::from(valid) % 3];
        let (leader, time) = (seat(LIAR), replica.time(self.now) + late);
        let batch = Batch::after(replica.tip(), leader, time, commands, None);
        let valid_round = (valid & 1 == 1).then_some(u32::from(valid) / 16);
        let value = batch.digest();
        let what = Proposal { height, round, value, valid_round, seat: leader };
        let seal = Wax(leader.key).seal(&what.sealed_bytes(&group()));
        Some(Message::Word(Word::Proposal(Sealed { what, seal }), Some(batch)))
    }

    /// The liar wishes for members that there may not even be.
    fn wish(&mut self, to: usize, count: usize) {
        let tip = self.members[to].replica.tip();
        let (epoch, seats) = (tip.epoch, (0..count).map(seat).collect::<Vec<Seat>>());
        let until = self.now + Duration::from_secs(60);
        let wish = group::Wish { epoch, seats: seats.clone(), until };
        let seal = Wax(seat(LIAR).key).seal(&wish.sealed_bytes(&group()));
        self.hear(to, Message::Wish { epoch, seats, until, seal });
    }

    fn step(&mut self, number: usize, input: Input) {
        let mut out = Vec::new();
        self.members[number].replica.step(self.now, input, &mut out);
        self.follow(number, out);
    }

    fn follow(&mut self, number: usize, out: Vec<Output>) {
        for output in out {
            let member = &mut self.members[number];
            match output {
                Output::Persist { record, .. } => member.log.push(record),
                Output::Sync { mark } => self.step(number, Input::Persisted { mark }),
                Output::Send { to, message } if to == seat(LIAR) => {
                    self.heard.push_front(message);
                    self.heard.truncate(16);
                }
                Output::Send { to, message } => {
                    let to = (0..HONEST).find(|number| seat(*number) == to);
                    if let Some(to) = to.filter(|_| self.mail.len() < MAIL_MAX) {
                        self.mail.push_back((number, to, message));
                    }
                }
                Output::Decided(decision) => {
                    let digest = decision.batch.digest();
                    let first = *self.order.entry(decision.height).or_insert(digest);
                    assert_eq!(first, digest, "members disagree on height {}", decision.height);
                    member.state.extend(decision.batch.commands.iter().cloned());
                }
                Output::WantState { height } => {
                    let state = base::encode(&member.state).into();
                    self.step(number, Input::State { height, state });
                }
                Output::Install { tip, state } => {
                    let state: Vec<Vec<u8>> = base::decode(&state, state.len())
                        .expect("a state that an honest member vouches for");
                    (member.base, member.state) = ((tip, state.clone()), state);
                }
                Output::Misled { .. } => {
                    panic!("a liar has made member {number} let go of everything")
                }
                Output::Stale | Output::Astray(_) => {
                    panic!("a liar has put member {number} out")
                }
            }
        }
    }

    fn check(&self) {
        for member in &self.members {
            let (sizes, settings) = (member.replica.sizes(), &self.settings);
            assert!(sizes.pending <= settings.pending_count_max, "{sizes:?}");
            assert!(sizes.batches <= settings.batches_max, "{sizes:?}");
            assert!(sizes.recent <= settings.recent_max, "{sizes:?}");
            assert!(sizes.evidence <= settings.proofs_max, "{sizes:?}");
            assert!(sizes.seen <= 4 && sizes.wishes <= 8, "{sizes:?}");
            assert!(sizes.overdue <= 3 && sizes.vouches <= 6, "{sizes:?}");
            assert_eq!(sizes.held, 0, "everything is safe");
        }
    }
}

/// The same with some bytes changed, if it still makes sense.
fn mauled(mut bytes: Vec<u8>, script: &mut Script<'_>) -> Option<Message> {
    for _ in 0..=script.below(3)? {
        let (high, low, change) = (script.byte()?, script.byte()?, script.byte()?);
        let at = usize::from(u16::from_be_bytes([high, low])) % bytes.len().max(1);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= change;
        }
    }
    base::decode(&bytes, bytes.len()).ok()
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;

    #[test]
    fn a_script_without_lies_has_its_commands_decided() {
        let mut script = Vec::new();
        for command in 0..20 {
            script.extend([0, command % 3, command]);
            script.extend([1; 60]);
            script.extend([7, 30]);
        }
        assert!(member(&script) >= 10);
    }

    #[test]
    fn seeded_lies_break_no_promise_and_do_not_stop_the_others() {
        let mut rng = Rng::new(31);
        let mut decided = 0;
        for _ in 0..100 {
            let mut script = Vec::new();
            for _ in 0..15 {
                let noise = rng.index(40);
                script.extend((0..noise).map(|_| rng.next_u64() as u8));
                script.extend([0, 0, rng.next_u64() as u8]);
                script.extend([1; 60]);
                script.extend([7, 40]);
            }
            decided += member(&script);
        }
        assert!(decided > 100, "only {decided} heights were decided");
    }

    #[test]
    fn seeded_noise_breaks_no_promise() {
        let mut rng = Rng::new(33);
        for _ in 0..100 {
            let count = rng.index(1_500);
            let bytes: Vec<u8> = (0..count).map(|_| rng.next_u64() as u8).collect();
            member(&bytes);
        }
    }
}
