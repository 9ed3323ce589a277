//! What becomes of what a liar hears and says.

use std::collections::{BTreeSet, VecDeque};

use base::{Digest, Domain, Duration, Instant, Rng};
use group::{
    Batch, Certificate, Change, Decision, Message, Notary, Passage, Proposal, Roll, Seal, Sealable,
    Sealed, Seat, Step, Summary, Tip, Vote, Vouch, Word,
};

use crate::{Lie, state::digest_of};

const HISTORY_MAX: usize = 64;
const VALUES_MAX: usize = 6;
const LATE_MAX: usize = 256;
const STRANGE: Domain = Domain::new("simulated lie v1");

/// One liar.
#[derive(Debug)]
pub struct Vice {
    lies: BTreeSet<Lie>,
    /// How often it lies when it could.
    zeal: f64,
    /// Which of the others, by number, are on the second side.
    side: u64,
    slack: Duration,
    group: Digest,
    /// Makes up a command.
    invention: fn(&mut Rng) -> Vec<u8>,
    /// What it has said to clients, lately.
    words: VecDeque<Vec<u8>>,
    /// What it has said. At most [`HISTORY_MAX`].
    history: VecDeque<Message>,
    /// What it has heard voted on, lately.
    values: VecDeque<Digest>,
    /// The state that it has made up, and its point.
    forged: Option<(Tip, Vec<u8>)>,
    /// How late it may say what it says of a height.
    leisure: Duration,
    /// What it has not said yet. At most [`LATE_MAX`].
    late: VecDeque<(Instant, Seat, Message)>,
    /// Who wants a command.
    author: fn(&[u8]) -> Option<u64>,
    /// Whom it does not hear: the first that it might have heard.
    ignored: Option<u64>,
    rng: Rng,
}

impl Vice {
    /// One that lies in these ways, and so often when it could. The group lets clocks differ by `slack`.
    pub fn new(
        lies: BTreeSet<Lie>,
        zeal: f64,
        slack: Duration,
        group: Digest,
        invention: fn(&mut Rng) -> Vec<u8>,
        rng: &mut Rng,
    ) -> Vice {
        Vice {
            lies,
            zeal,
            side: rng.next_u64(),
            slack,
            group,
            invention,
            words: VecDeque::new(),
            history: VecDeque::new(),
            values: VecDeque::new(),
            forged: None,
            leisure: Duration::ZERO,
            late: VecDeque::new(),
            author: |_| None,
            ignored: None,
            rng: rng.fork(),
        }
    }

    /// The same, if it is slow, saying things so late.
    #[must_use]
    pub fn at_leisure(self, leisure: Duration) -> Vice {
        Vice { leisure, ..self }
    }

    /// The same, if it is picky, knowing who wants what.
    #[must_use]
    pub fn picking_by(self, author: fn(&[u8]) -> Option<u64>) -> Vice {
        Vice { author, ..self }
    }

    /// Whether it does not hear what this one wants.
    pub fn ignores(&mut self, author: u64) -> bool {
        self.lies.contains(&Lie::Picky)
            && *self.ignored.get_or_insert(author) == author
            && self.rng.chance(self.zeal)
    }

    /// What it says at once; what it says later is kept here.
    pub fn put_off(&mut self, now: Instant, to: Seat, message: Message) -> Option<Message> {
        let is_late = matches!(message, Message::Word(..))
            && self.late.len() < LATE_MAX
            && self.does(Lie::Slow);
        if !is_late {
            return Some(message);
        }
        self.late.push_back((now + self.leisure, to, message));
        None
    }

    /// When it says the next of what it has put off.
    pub fn late_at(&self) -> Option<Instant> {
        self.late.front().map(|(at, ..)| *at)
    }

    /// What it has put off until now.
    pub fn late(&mut self, now: Instant) -> Option<(Seat, Message)> {
        let (_, to, message) = self.late.pop_front_if(|(at, ..)| *at <= now)?;
        Some((to, message))
    }

    /// Whether it is two.
    pub fn is_twin(&self) -> bool {
        self.lies.contains(&Lie::Twins)
    }

    /// On which side the other with this number is.
    pub fn side(&self, other: u16) -> usize {
        (self.side >> (other & 63) & 1) as usize
    }

    fn does(&mut self, lie: Lie) -> bool {
        self.lies.contains(&lie) && self.rng.chance(self.zeal)
    }

    /// Whether it listens.
    pub fn hears(&mut self, message: &Message) -> bool {
        let value = match message {
            Message::Word(Word::Proposal(proposal), _) => Some(proposal.what.value),
            Message::Word(Word::Vote(vote, _), _) => vote.what.value,
            _ => None,
        };
        if let Some(value) = value.filter(|value| !self.values.contains(value)) {
            self.values.push_back(value);
            if self.values.len() > VALUES_MAX {
                self.values.pop_front();
            }
        }
        if matches!(message, Message::Commands(_) | Message::Overdue(_)) {
            let author = self.author;
            let mut authors = message.commands().iter().filter_map(|one| author(one));
            if authors.any(|author| self.ignores(author)) {
                return false;
            }
        }
        !(self.does(Lie::Withhold) && self.rng.chance(0.5))
    }

    /// What it says instead to the other with this number.
    pub fn outward<N: Notary>(
        &mut self,
        to: u16,
        mut message: Message,
        seat: Seat,
        stamp: &N,
    ) -> Vec<Message> {
        if self.history.len() == HISTORY_MAX {
            self.history.pop_front();
        }
        self.history.push_back(message.clone());
        if self.does(Lie::Withhold) {
            match &mut message {
                Message::Word(Word::Proposal(_), batch) if self.rng.chance(0.5) => *batch = None,
                _ => return Vec::new(),
            }
        }
        let is_other_side = self.side(to) == 1;
        match &mut message {
            Message::Word(Word::Vote(vote, _), _)
                if vote.what.seat == seat && self.does(Lie::Equivocate) && is_other_side =>
            {
                vote.what.value = self.draw_value();
                *vote = self.sealed(vote.what.clone(), stamp);
            }
            Message::Word(Word::Proposal(proposal), Some(batch)) if proposal.what.seat == seat => {
                let mut is_changed = false;
                if self.does(Lie::Equivocate) && is_other_side {
                    batch.time = batch.time + Duration::from_nanos(1 + self.rng.below(1_000));
                    if self.rng.chance(0.5) {
                        batch.commands.pop();
                    }
                    is_changed = true;
                }
                // All are to hear the same lie, or it would come to nothing.
                let seed = proposal.what.value.as_bytes().first_chunk().copied();
                let same = Rng::new(u64::from_le_bytes(seed.unwrap_or_default()));
                let own = std::mem::replace(&mut self.rng, same);
                if self.does(Lie::Time) {
                    batch.time = self.draw_time(batch.time);
                    is_changed = true;
                }
                if self.does(Lie::Invent) {
                    self.invent(batch);
                    is_changed = true;
                }
                self.rng = own;
                if is_changed {
                    let value = batch.digest();
                    *proposal = self.sealed(Proposal { value, ..proposal.what.clone() }, stamp);
                }
            }
            Message::Welcome { time, height, seen, .. } => {
                if self.does(Lie::Time) {
                    *time = self.draw_time(*time);
                }
                if self.does(Lie::Forge) {
                    *seen = None;
                    *height += self.rng.below(1_000);
                }
            }
            Message::Offer(summary, _) if self.does(Lie::Forge) => {
                summary.state = self.draw_digest();
            }
            Message::Piece { bytes, .. } if self.does(Lie::Forge) => {
                *bytes = bytes.iter().map(|byte| !byte).collect();
            }
            Message::Decisions(decisions) => {
                if self.does(Lie::Forge)
                    && let Some(decision) = decisions.first_mut()
                {
                    self.invent(&mut decision.batch);
                }
            }
            _ => {}
        }
        let mut all = vec![message];
        if self.does(Lie::Replay) && !self.history.is_empty() {
            let old = self.rng.index(self.history.len());
            all.push(self.history[old].clone());
        }
        all
    }

    /// Things that it says of its own accord, perhaps because of what it has heard.
    pub fn scheme<N: Notary>(
        &mut self,
        heard: Option<(Seat, &Message)>,
        tip: &Tip,
        false_state: &dyn Fn() -> Vec<u8>,
        time: Instant,
        seat: Seat,
        stamp: &N,
    ) -> Vec<(Seat, Message)> {
        let mut said = Vec::new();
        if let Some((from, message)) = heard {
            match message {
                Message::Behind { height, .. } if self.does(Lie::Forge) => {
                    said.push((from, self.offer(*height, tip, seat, false_state)));
                }
                Message::Fetch { height, from: start } => {
                    if let Some((_, state)) =
                        self.forged.as_ref().filter(|(tip, _)| tip.height == *height)
                    {
                        let start = *start as usize;
                        let bytes = state.get(start..).unwrap_or_default().to_vec();
                        let (height, start) = (*height, start as u64);
                        said.push((from, Message::Piece { height, from: start, bytes }));
                    }
                }
                _ => {}
            }
        }
        if self.lies.contains(&Lie::Flood) && self.rng.chance(self.zeal / 8.0) {
            let to = *self.rng.pick(&tip.seats);
            for _ in 0..=self.rng.below(4) {
                said.push((to, self.noise(tip, time, seat, stamp)));
            }
        }
        said
    }

    /// A state that it has made up.
    fn offer(
        &mut self,
        height: u64,
        tip: &Tip,
        seat: Seat,
        false_state: &dyn Fn() -> Vec<u8>,
    ) -> Message {
        let mut forged =
            Tip { height: tip.height.max(height + 1 + self.rng.below(50)), ..tip.clone() };
        if self.rng.chance(0.3)
            && let Some(alone) = Tip::first(vec![seat])
        {
            // As if nobody but itself had ever sat here.
            let (height, last, time) = (forged.height, self.draw_digest(), forged.time);
            forged = Tip { height, last, time, ..alone };
        }
        if self.rng.chance(0.2) {
            forged.plan = Some(Vec::new());
        }
        if self.rng.chance(0.2) {
            forged.seats.truncate(1);
        }
        if self.rng.chance(0.1) {
            forged.seats.reverse();
        }
        let state = false_state();
        let summary =
            Summary { tip: forged.clone(), state: digest_of(&state), bytes: state.len() as u64 };
        self.forged = Some((forged, state));
        Message::Offer(summary, None)
    }

    fn noise<N: Notary>(&mut self, tip: &Tip, time: Instant, seat: Seat, stamp: &N) -> Message {
        let height = tip.height + self.rng.below(4);
        let round = *self.rng.pick(&[0, 1, 2, 9, 50, u32::MAX]);
        let step = *self.rng.pick(&[Step::Prevote, Step::Precommit]);
        let other = *self.rng.pick(&tip.seats);
        let vote = Vote { height, round, step, value: self.draw_value(), seat };
        let value = self.draw_digest();
        let seals = tip.seats.iter().map(|seat| (*seat, Seal([3; 64]))).collect();
        match self.rng.below(14) {
            0 | 1 => {
                Message::Word(Word::Vote(self.sealed(vote, stamp), self.rng.chance(0.5)), None)
            }
            2 => {
                let vote = Sealed { what: Vote { seat: other, ..vote }, seal: Seal([1; 64]) };
                Message::Word(Word::Vote(vote, false), None)
            }
            3 => {
                let mut batch = Batch::after(tip, seat, time, Vec::new(), None);
                if self.rng.chance(0.3) {
                    self.invent(&mut batch);
                }
                batch.time = batch.time + Duration::from_nanos(self.rng.below(1_000_000));
                let value = batch.digest();
                let valid_round = self.rng.chance(0.5).then(|| self.rng.below(3) as u32);
                let proposal = Proposal { height, round, value, valid_round, seat };
                Message::Word(Word::Proposal(self.sealed(proposal, stamp)), Some(batch))
            }
            4 => {
                Message::Word(Word::Polka(Certificate { height, round, step, value, seals }), None)
            }
            5 => {
                let votes = seals.into_iter().map(|(seat, seal)| (step, Some(value), seat, seal));
                let votes = votes.collect();
                let is_precommit = self.rng.chance(0.5);
                Message::Word(Word::Passage(Passage { height, round, is_precommit, votes }), None)
            }
            6 => Message::Hello { nonce: self.rng.next_u64() },
            7 => {
                let height = self.rng.below(tip.height + 2);
                Message::Behind { height, epoch: self.rng.below(tip.epoch + 2) }
            }
            8 => Message::Fetch { height: self.rng.below(height + 1), from: self.rng.below(3) },
            9 => Message::Commands(vec![vec![self.rng.below(256) as u8; 40]; 20]),
            10 => Message::Overdue(vec![self.rng.below(256) as u8; 40]),
            11 => {
                let vouch = Vouch { height, state: value, seat };
                Message::Vouch(self.sealed(vouch, stamp))
            }
            12 => {
                let (epoch, until, seal) = (tip.epoch, Instant::END, Seal([2; 64]));
                Message::Wish { epoch, seats: vec![seat], until, seal }
            }
            _ => {
                let (epoch, seats, until) = (tip.epoch, vec![seat], Instant::END);
                let wish = group::Wish { epoch, seats: seats.clone(), until };
                let seal = stamp.seal(&wish.sealed_bytes(&self.group));
                Message::Wish { epoch, seats, until, seal }
            }
        }
    }

    fn invent(&mut self, batch: &mut Batch) {
        batch.commands.push((self.invention)(&mut self.rng));
    }

    fn sealed<S: Sealable, N: Notary>(&self, what: S, stamp: &N) -> Sealed<S> {
        let seal = stamp.seal(&what.sealed_bytes(&self.group));
        Sealed { what, seal }
    }

    fn draw_digest(&mut self) -> Digest {
        Digest::of(STRANGE, &self.rng.next_u64().to_le_bytes())
    }

    fn draw_value(&mut self) -> Option<Digest> {
        match self.rng.below(4) {
            0 => None,
            1 => Some(self.draw_digest()),
            _ if self.values.is_empty() => None,
            _ => Some(*self.rng.pick(self.values.make_contiguous())),
        }
    }

    fn draw_time(&mut self, time: Instant) -> Instant {
        let nearly = self.slack.saturating_sub(Duration::from_millis(20));
        let hour = Duration::from_secs(3_600);
        let by = *self.rng.pick(&[nearly, self.slack * 2, hour, Duration::from_millis(50)]);
        if self.rng.chance(0.7) { time + by } else { time - by }
    }

    /// Whether it answers wrongly.
    pub fn misanswers(&mut self) -> bool {
        self.does(Lie::Answer)
    }

    /// Whether it does not answer.
    pub fn withholds(&mut self) -> bool {
        self.does(Lie::Withhold)
    }

    /// What a client hears of its words: these, or old ones, or some that are not quite right.
    pub fn speak(&mut self, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
        if self.withholds() {
            return None;
        }
        self.words.push_back(bytes.clone());
        if self.words.len() > VALUES_MAX {
            self.words.pop_front();
        }
        if self.misanswers() {
            let at = self.rng.index(bytes.len());
            match self.rng.chance(0.5) {
                true => bytes = self.rng.pick(self.words.make_contiguous()).clone(),
                false => bytes[at] ^= 1 << self.rng.below(8),
            }
        }
        Some(self.maul(bytes))
    }

    /// Shows a change of members that nobody but itself has decided.
    pub fn rewrite<N: Notary>(
        &mut self,
        changes: &mut Vec<Decision>,
        roll: &Roll,
        seat: Seat,
        stamp: &N,
    ) {
        if !self.does(Lie::Answer) {
            return;
        }
        let height = roll.epoch + self.rng.below(3);
        let seats = vec![seat];
        let change = Some(Change::Enact { seats, point: None, ready: Vec::new() });
        let (before, epoch, commands) = (self.draw_digest(), roll.epoch, Vec::new());
        let batch = Batch { before, epoch, leader: seat, time: Instant::START, commands, change };
        let (round, step, value) = (0, Step::Precommit, batch.digest());
        let vote = Vote { height, round, step, value: Some(value), seat };
        let seals = vec![(seat, self.sealed(vote, stamp).seal)];
        let certificate = Certificate { height, round, step, value, seals };
        changes.push(Decision { height, batch, certificate });
    }

    /// What becomes of bytes.
    pub fn maul(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.does(Lie::Maul) && self.rng.chance(0.5) && !bytes.is_empty() {
            match self.rng.below(3) {
                0 => bytes.truncate(self.rng.index(bytes.len())),
                1 => bytes.push(0),
                _ => {
                    let at = self.rng.index(bytes.len());
                    bytes[at] ^= 1 << self.rng.below(8);
                }
            }
        }
        bytes
    }
}
