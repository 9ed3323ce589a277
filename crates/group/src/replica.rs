//! One member of a group.
//!
//! It has no disk, no clock and no network. Whatever it says to others that binds it (votes, proposals) leaves
//! only after what it follows from is safe in its log; the shell says when that is so.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use base::{Digest, Instant, Machine, PublicKey};
use load::reservoir::Budgets;

use crate::{
    ballot::{Certificate, Step, Vote},
    batch::{Batch, Change, Decision, Tip, Wisher},
    clock::Clock,
    engine::{Deed, Engine, Evidence, Fact, Wait, Word},
    hesitation::Hesitation,
    message::{Message, Summary},
    pending::Pending,
    point::Point,
    rescue::Charter,
    seal::{Notary, Seal, Sealed},
    seat::{Seat, Seats},
};

use agreeing::Agreeing;
use ahead::Ahead;
use catching_up::CatchingUp;
use fairness::Fairness;
use greeting::Greeting;

pub use agreeing::Astray;
pub use interface::{Input, Output, Record, Settings, Sizes};
pub use rescuing::Reach;

mod agreeing;
mod ahead;
mod catching_up;
mod fairness;
mod greeting;
mod interface;
mod membership;
mod misled;
mod recovery;
mod rescuing;
mod serving;
mod showing;
mod words;

/// The engine does not look at what is further ahead.
const ROUNDS_AHEAD_MAX: u32 = 10;
/// So many proofs of one member's lies are kept, and no more are written to the log: they prove enough.
const PROOFS_EACH_MAX: usize = 4;

/// A member.
pub struct Replica<N> {
    charter: Charter,
    me: Seat,
    notary: N,
    settings: Settings,
    tip: Tip,
    members: Seats,
    engine: Engine,
    /// Whether the engine is at work on the next height.
    is_on: bool,
    /// Whether another member is.
    is_called: bool,
    pending: Pending,
    /// What has waited too long, here and elsewhere.
    fairness: Fairness,
    clock: Clock,
    /// The batches of the next height, each with the last round in which it was proposed. At most one for each
    /// round, by who leads it, and at most `batches_max`.
    batches: BTreeMap<Digest, (u32, Batch)>,
    /// Those of them that this member has found fit without taking anybody's word for it.
    judged: BTreeSet<Digest>,
    /// What was said of the height after the next one.
    ahead: Ahead,
    /// What the engine waits for. A few in each round, and a new round ends those of the last.
    waits: BTreeMap<(Wait, u32), Instant>,
    deeds: VecDeque<Deed>,
    /// Records of this step.
    records: Vec<Record>,
    /// What waits for the log, with the mark for which. At most about `held_max`: whoever tells the member more
    /// waits until there is room, and what was said before is not said again.
    held: VecDeque<(u64, Output)>,
    /// The last record, the last that was asked to be safe, and the last that is.
    mark: u64,
    syncing: u64,
    safe: u64,
    /// The records with the last decision that has taken effect, and with the one before it.
    decided_mark: u64,
    prior_mark: u64,
    /// The last height that has taken effect.
    effective: u64,
    /// The record with the last own vote.
    cast_mark: u64,
    /// What takes effect once the records of this step are written.
    effects: Vec<Output>,
    /// Bytes of decisions that wait for the log.
    held_bytes: usize,
    /// The last decisions.
    recent: VecDeque<Arc<Decision>>,
    recent_bytes: usize,
    /// The last two checkpoints.
    checkpoints: VecDeque<(Summary, Arc<[u8]>)>,
    /// Whether others have the same states.
    agreeing: Agreeing,
    /// What it can show, and knows to be so if others show it. At most [`Settings::POINTS_MAX`], the last.
    points: VecDeque<Point>,
    /// Points whose state has been asked for.
    asked: VecDeque<Tip>,
    /// The last vote of each member that came here.
    seen: BTreeMap<Seat, Sealed<Vote>>,
    /// Own votes at the next height. At most two in each of `rounds_max` rounds.
    cast: Vec<Vote>,
    /// At most `proofs_max`, and [`PROOFS_EACH_MAX`] of each member.
    evidence: VecDeque<Evidence>,
    wish: Option<Vec<Seat>>,
    /// What members wish, until that does not count any more. At most one for each.
    wishes: BTreeMap<Seat, (Vec<Seat>, Wisher)>,
    /// Those to be that have shown one of these points. At most one seal of each at each.
    ready: BTreeMap<(u64, Seat), Seal>,
    /// How often it has shown what it has without becoming a member.
    shown: u32,
    /// When to say again what has not been heard: wishes, and that this member is ready.
    say_again_at: Option<Instant>,
    /// Until when all members to be are waited for, and not only so many that they can decide.
    wait_at: Option<Instant>,
    /// What proves the last change of members, until that is decided, and the mark of the log before it.
    proof: Option<Certificate>,
    proof_mark: u64,
    greeting: Option<Greeting>,
    catching_up: CatchingUp,
    /// When who was last given decisions.
    served: BTreeMap<Seat, Instant>,
    /// When a state was last made out of turn for a member that can't follow.
    made_at: Option<Instant>,
    /// How many bytes of decisions and states each was given lately.
    told: Budgets<PublicKey>,
    /// What the log has of the next height, until the engine has been told.
    replay: Option<Vec<Fact>>,
    /// When all were last asked for the time.
    time_asked_at: Option<Instant>,
    is_stale: bool,
    /// Whether it goes through its log: nothing is begun meanwhile.
    is_replaying: bool,
    /// Whether it has sat here before.
    has_left: bool,
    /// The last rescue by which the group goes on from somebody else, and the mark of the log before it. It
    /// counts until this member has the state of somebody who knows of it.
    rescued: Option<Decision>,
    rescue_mark: u64,
    /// One that it was shown and has not obeyed.
    hesitation: Option<Hesitation>,
}

impl<N: Notary> Replica<N> {
    /// A member of a group that has this tip, with an empty log. One that is not among the members learns
    /// until it is.
    pub fn new(
        settings: Settings,
        charter: impl Into<Charter>,
        me: Seat,
        notary: N,
        tip: Tip,
        now: Instant,
    ) -> Replica<N> {
        let members = tip.members();
        let (charter, patience) = (charter.into(), settings.patience);
        let mut replica = Replica {
            engine: Engine::new(charter.group, me, patience, tip.height + 1, members.clone()),
            pending: Pending::new(settings.pending_count_max, settings.pending_bytes_max),
            clock: Clock::new(settings.doubt, tip.time, now),
            greeting: None,
            fairness: Fairness::default(),
            agreeing: Agreeing::default(),
            catching_up: CatchingUp::default(),
            charter,
            me,
            notary,
            settings,
            tip,
            members,
            is_on: false,
            is_called: false,
            batches: BTreeMap::new(),
            judged: BTreeSet::new(),
            ahead: Ahead::default(),
            waits: BTreeMap::new(),
            deeds: VecDeque::new(),
            records: Vec::new(),
            held: VecDeque::new(),
            mark: 0,
            syncing: 0,
            safe: 0,
            decided_mark: 0,
            prior_mark: 0,
            effective: 0,
            cast_mark: 0,
            effects: Vec::new(),
            held_bytes: 0,
            recent: VecDeque::new(),
            recent_bytes: 0,
            checkpoints: VecDeque::new(),
            points: VecDeque::new(),
            asked: VecDeque::new(),
            seen: BTreeMap::new(),
            cast: Vec::new(),
            evidence: VecDeque::new(),
            wish: None,
            wishes: BTreeMap::new(),
            ready: BTreeMap::new(),
            shown: 0,
            say_again_at: None,
            wait_at: None,
            proof: None,
            proof_mark: 0,
            served: BTreeMap::new(),
            made_at: None,
            told: Budgets::new(Settings::TOLD_MAX),
            replay: None,
            time_asked_at: None,
            is_stale: false,
            is_replaying: false,
            has_left: false,
            rescued: None,
            rescue_mark: 0,
            hesitation: None,
        };
        replica.effective = replica.tip.height;
        if !replica.is_member() {
            replica.say_again_at = Some(now);
        }
        replica
    }

    /// What the decisions so far leave behind.
    pub fn tip(&self) -> &Tip {
        &self.tip
    }

    /// Its seat.
    pub fn seat(&self) -> Seat {
        self.me
    }

    /// The members, with their leader.
    pub fn members(&self) -> &Seats {
        &self.members
    }

    /// Whether it votes.
    pub fn is_member(&self) -> bool {
        self.members.contains(&self.me) && !self.is_passed_over() && !self.tip.is_blank()
    }

    /// The agreed time, as far as this member knows.
    pub fn time(&self, now: Instant) -> Instant {
        self.clock.time(now).max(self.tip.time)
    }

    /// When the agreed time will be this, on the own clock.
    pub fn local(&self, time: Instant) -> Instant {
        self.clock.local(time)
    }

    /// Proofs of lies, the latest ones.
    pub fn evidence(&self) -> impl Iterator<Item = &Evidence> {
        self.evidence.iter()
    }

    /// How much waits for the log to be safe: things, and bytes of decisions.
    pub fn held(&self) -> (usize, usize) {
        (self.held.len(), self.held_bytes)
    }

    /// Of the log up to this mark nothing is needed, once what the decisions up to this height have led to is
    /// stored. Nothing may go while later ones have taken effect: the log is all that there is of them.
    ///
    /// The last decision stays: there may be nobody else who has seen what proves it, and then the others can't
    /// go on without it.
    pub fn mark_behind(&self, height: u64) -> u64 {
        if height < self.effective {
            return 0;
        }
        // A record may also have the beginning of the next height.
        let behind = match self.is_alone() {
            true => self.decided_mark,
            false => self.prior_mark.saturating_sub(1),
        };
        let proof = self.proof.as_ref().map(|_| self.proof_mark);
        let rescue = self.is_passed_over().then_some(self.rescue_mark);
        let astray = self.agreeing.mark();
        proof.into_iter().chain(rescue).chain(astray).fold(behind, u64::min)
    }

    /// Whether something waits to be decided.
    pub fn is_busy(&self) -> bool {
        self.is_on || !self.pending.is_empty()
    }

    fn others(&self) -> impl Iterator<Item = Seat> + use<N> {
        let (me, members) = (self.me, self.members.clone());
        (0..members.list().len()).map(move |n| members.list()[n]).filter(move |seat| *seat != me)
    }

    /// Whether there are no other members.
    pub fn is_alone(&self) -> bool {
        self.members.list() == [self.me] && self.is_member()
    }

    /// Whether there is something to decide.
    fn is_wanted(&self) -> bool {
        !self.pending.is_empty()
            || self.is_called
            || self.replay.is_some()
            || self.change_due().is_some()
    }

    fn may_vote(&self) -> bool {
        self.is_member() && self.greeting.is_none() && !self.is_stale && !self.is_replaying
    }

    /// Does what has come up, until there is nothing more to do.
    fn run(&mut self, now: Instant, out: &mut Vec<Output>) {
        self.insist(now, out);
        if !self.wishes.is_empty() {
            let time = self.time(now);
            self.wishes.retain(|_, (_, wish)| wish.until >= time);
        }
        loop {
            while let Some(deed) = self.deeds.pop_front() {
                self.perform(deed, now, out);
            }
            for (from, word, batch, is_fit) in self.ahead.take(self.tip.height + 1) {
                self.on_word(now, from, word, batch, is_fit, out);
            }
            if !self.deeds.is_empty() {
                continue;
            }
            if self.is_on || !self.may_vote() || !self.is_wanted() {
                break;
            }
            if self.is_alone() {
                self.decide_alone(now, out);
            } else {
                self.begin();
            }
        }
        self.flush(out);
    }

    /// Begins the next height. Never from within the one before.
    fn begin(&mut self) {
        self.is_on = true;
        let mut deeds = Vec::new();
        let height = self.tip.height + 1;
        self.engine.begin(&self.notary, height, self.members.clone(), &mut deeds);
        if let Some(facts) = self.replay.take() {
            self.engine.begin_replay(&facts);
            for fact in &facts {
                self.engine.take(&self.notary, fact.clone(), &mut deeds);
            }
            self.engine.end_replay();
            // They are in the log already.
            deeds.retain(|deed| !matches!(deed, Deed::Log(fact) if facts.contains(fact)));
            // Of the rounds that have passed nothing more is wanted.
            let round = self.engine.round();
            deeds.retain(|deed| !matches!(deed, Deed::Want { round: other } if *other != round));
        }
        self.deeds.extend(deeds);
    }

    fn perform(&mut self, deed: Deed, now: Instant, out: &mut Vec<Output>) {
        match deed {
            Deed::Log(fact) => {
                if let Fact::Vote(vote) = &fact
                    && vote.what.seat == self.me
                {
                    self.cast.push(vote.what.clone());
                    self.cast_mark = self.mark + 1;
                }
                self.records.push(Record::Fact(self.tip.height + 1, fact));
            }
            // A disk that hangs must not make words pile up.
            Deed::Say(Word::Vote(_, true) | Word::Polka(_) | Word::Passage(_))
                if self.held.len() >= self.settings.held_max => {}
            Deed::Say(word) => {
                let batch = match &word {
                    Word::Proposal(proposal) => self.batch(&proposal.what.value),
                    _ => None,
                };
                let message = Message::Word(word, batch);
                self.send_when_safe(self.others(), message);
            }
            Deed::Round { leader } => self.forward(leader, out),
            Deed::Want { round } => self.propose(round, now),
            Deed::Start { wait, round, after } => {
                if self.is_on {
                    self.waits.insert((wait, round), now + after);
                }
            }
            Deed::Stop { wait, round } => {
                self.waits.remove(&(wait, round));
            }
            Deed::StopAll => self.waits.clear(),
            Deed::Decided { certificate, evidence } => {
                for evidence in evidence {
                    self.note(evidence);
                }
                if let Some((_, batch)) = self.batches.remove(&certificate.value) {
                    let height = certificate.height;
                    self.on_voted(height);
                    self.records.push(Record::Decided(certificate.clone(), None));
                    self.accept(Decision { height, batch, certificate }, now, out);
                }
            }
        }
    }

    /// Somebody has handed this in. The leader is given at once what those want who sit here; what others want it is
    /// given with the rest, in every round, so that they have no more of it than of a batch of this member's own.
    fn on_command(
        &mut self,
        now: Instant,
        from: PublicKey,
        command: Vec<u8>,
        out: &mut Vec<Output>,
    ) {
        let is_bounded = command.len() <= self.settings.batch_bytes_max;
        let is_favoured =
            from == self.me.key || self.members.list().iter().any(|seat| seat.key == from);
        let is_taken = is_bounded && self.pending.push(now, from, is_favoured, command.clone());
        if is_taken && is_favoured && self.is_on {
            let to = *self.members.leader(self.engine.round());
            if to != self.me {
                out.push(Output::Send { to, message: Message::Commands(vec![command]) });
            }
        }
    }

    /// Whether this waits to be decided. Then it was found fit when it came.
    pub fn is_pending(&self, command: &[u8]) -> bool {
        self.pending.has(command)
    }

    /// Gives what waits here to who leads.
    fn forward(&mut self, leader: Seat, out: &mut Vec<Output>) {
        if leader == self.me || self.pending.is_empty() {
            return;
        }
        let Settings { batch_count_max, batch_bytes_max, .. } = self.settings;
        let commands = self.pending.first(Vec::new(), batch_count_max, batch_bytes_max);
        out.push(Output::Send { to: leader, message: Message::Commands(commands) });
        self.insist_again(leader, out);
    }

    fn next_batch(&self, now: Instant) -> Batch {
        let Settings { batch_count_max, batch_bytes_max, .. } = self.settings;
        let change = self.change_due();
        let commands = match change {
            Some(Change::Enact { .. }) => Vec::new(),
            _ => self.pending.first(self.demanded(), batch_count_max, batch_bytes_max),
        };
        Batch::after(&self.tip, self.me, self.time(now), commands, change)
    }

    fn propose(&mut self, round: u32, now: Instant) {
        let batch = self.next_batch(now);
        let value = batch.digest();
        self.keep(round, value, batch);
        let mut deeds = Vec::new();
        self.engine.propose(&self.notary, round, value, &mut deeds);
        self.deeds.extend(deeds);
    }

    fn batch(&self, value: &Digest) -> Option<Batch> {
        self.batches.get(value).map(|(_, batch)| batch.clone())
    }

    /// Keeps a batch that may be voted on, also in the log. If there are too many, the one goes that has not
    /// been proposed for longest: what a quorum has seen is proposed again and again.
    fn keep(&mut self, round: u32, value: Digest, batch: Batch) {
        if let Some((last, _)) = self.batches.get_mut(&value) {
            *last = round.max(*last);
            return;
        }
        if self.batches.len() >= self.settings.batches_max
            && let Some(oldest) =
                self.batches.iter().min_by_key(|(_, (round, _))| *round).map(|(value, _)| *value)
        {
            self.batches.remove(&oldest);
            self.judged.remove(&oldest);
        }
        self.records.push(Record::Batch(batch.clone()));
        self.batches.insert(value, (round, batch));
    }

    /// The only member decides without asking anybody. The seal comes when somebody wants to see it.
    fn decide_alone(&mut self, now: Instant, out: &mut Vec<Output>) {
        (self.is_called, self.replay) = (false, None);
        let batch = self.next_batch(now);
        let height = self.tip.height + 1;
        let (value, step) = (batch.digest(), Step::Precommit);
        let certificate = Certificate { height, round: 0, step, value, seals: Vec::new() };
        self.records.push(Record::Decided(certificate.clone(), Some(batch.clone())));
        self.accept(Decision { height, batch, certificate }, now, out);
    }

    /// A decision takes its place.
    fn accept(&mut self, decision: Decision, now: Instant, out: &mut Vec<Output>) {
        let (was_alone, was_member) = (self.is_alone(), self.is_member());
        let is_waiting = self.held_bytes > 0 || self.rests_on_unsafe_vote(&decision.certificate);
        let (epoch, plan) = (self.tip.epoch, self.tip.plan.clone());
        let learners: Vec<Seat> = self.tip.learners().copied().collect();
        self.leave_height();
        self.clock.on_decided(decision.batch.time, now);
        for command in &decision.batch.commands {
            self.pending.on_decided(command);
        }
        self.fairness.on_decided(&decision.batch.commands);
        self.let_go_of_unfit(now);
        let change = decision.batch.change.clone();
        self.tip = self.tip.after(&decision.batch, decision.certificate.value);
        self.take_proof(&decision.certificate);
        self.members = self.tip.members();
        self.has_left = !self.is_member() && (was_member || self.has_left);
        // Who is to become a member is told at once, so that it does not miss what comes next.
        if decision.batch.leader == self.me {
            let message = Message::Decisions(vec![self.shown(&decision)]);
            let learners = learners.into_iter().chain(self.tip.learners().copied());
            for to in learners.collect::<BTreeSet<_>>() {
                let message = message.clone();
                self.held.push_back((self.mark + 1, Output::Send { to, message }));
            }
        }
        let decision = Arc::new(decision);
        let bytes = serving::bytes_of(&decision);
        // Somebody who is alone, and is to stay so, has nobody to help.
        let is_watched = !(was_alone && self.is_alone()) || self.tip.plan.is_some();
        if is_watched {
            self.remember(Arc::clone(&decision));
        }
        // A quorum has it safe. Whose own vote makes the quorum has to have it safe itself.
        let decided = Output::Decided(decision);
        if is_waiting {
            self.held_bytes += bytes;
            self.held.push_back((self.mark + 1, decided));
        } else {
            self.on_effect(self.mark + 1, self.tip.height);
            self.effects.push(decided);
        }
        // Who is to come starts from here; so does who has come and needs what those have who sit here now, perhaps
        // before they can decide anything without it; and whoever comes later and knows only them.
        let is_summed_up =
            matches!(change, Some(Change::Plan { .. } | Change::Enact { .. } | Change::Prove(_)));
        let is_rescue = self.tip.lineage.rescue().is_some_and(|one| one.height == self.tip.height);
        let is_checkpoint = self.tip.height.is_multiple_of(self.settings.checkpoint_every);
        if is_watched && is_checkpoint || is_summed_up || is_rescue {
            let want = self.want_state();
            if is_waiting {
                self.held.push_back((self.mark + 1, want));
            } else {
                self.effects.push(want);
            }
        }
        if self.tip.epoch != epoch {
            self.on_new_epoch();
        }
        if self.tip.plan != plan {
            self.await_learners(now);
        }
        if !was_member && self.is_member() {
            self.ask_time(now, out);
        }
        self.on_plan(now);
        self.look_back(now, out);
    }

    /// Whether these are not votes of a quorum without an own one that could still be lost with the power.
    fn rests_on_unsafe_vote(&self, certificate: &Certificate) -> bool {
        let others = certificate.seals.iter().filter(|(seat, _)| *seat != self.me).count();
        let is_unsafe = certificate.seals.is_empty() || self.cast_mark > self.safe;
        is_unsafe && others < self.members.quorum()
    }

    /// The decision in this record takes effect.
    fn on_effect(&mut self, mark: u64, height: u64) {
        (self.prior_mark, self.decided_mark) = (self.decided_mark, mark);
        self.effective = height;
    }

    /// Whatever the next height was, it is another one now.
    fn leave_height(&mut self) {
        (self.is_on, self.is_called, self.replay) = (false, false, None);
        self.batches.clear();
        self.judged.clear();
        self.waits.clear();
        self.cast.clear();
    }

    fn on_new_epoch(&mut self) {
        let members = self.members.clone();
        self.wishes.clear();
        self.ready.clear();
        self.clock.forget(|seat| members.contains(seat));
        self.fairness = Fairness::default();
        self.agreeing.forget(|seat| members.contains(seat));
        self.seen.retain(|seat, _| members.contains(seat));
        self.end_greeting();
        if self.wish.as_ref() == Some(&self.tip.seats) {
            self.wish = None;
        }
        // Who is still to become a member goes on asking.
        self.say_again_at = self.say_again_at.filter(|_| !self.is_member());
    }

    /// Writes down a lie, unless enough is known of who has told it: else it could fill the log by lying.
    fn note(&mut self, evidence: Evidence) {
        if self.keep_evidence(evidence.clone()) {
            self.records.push(Record::Evidence(evidence));
        }
    }

    /// Whether it is kept.
    fn keep_evidence(&mut self, evidence: Evidence) -> bool {
        let seat = evidence.seat();
        let known = self.evidence.iter().filter(|known| known.seat() == seat).count();
        if known >= PROOFS_EACH_MAX {
            return false;
        }
        if self.evidence.len() >= self.settings.proofs_max {
            self.evidence.pop_front();
        }
        self.evidence.push_back(evidence);
        true
    }

    /// Whether another round could follow this one at the next height.
    fn may_follow(&self, round: u32) -> bool {
        round.saturating_add(1) < self.settings.rounds_max
    }

    fn send_when_safe(&mut self, to: impl Iterator<Item = Seat>, message: Message) {
        let mark = self.mark + u64::from(!self.records.is_empty());
        for to in to {
            self.held.push_back((mark, Output::Send { to, message: message.clone() }));
        }
    }

    /// Writes the records of this step, and lets go of what is safe to say.
    fn flush(&mut self, out: &mut Vec<Output>) {
        if !self.records.is_empty() {
            self.mark += 1;
            let record = base::encode(&std::mem::take(&mut self.records));
            out.push(Output::Persist { mark: self.mark, record });
        }
        out.append(&mut self.effects);
        if let Some((mark, _)) = self.held.back().filter(|(mark, _)| *mark > self.syncing) {
            self.syncing = *mark;
            out.push(Output::Sync { mark: *mark });
        }
        while let Some((mark, output)) = self.held.pop_front_if(|(mark, _)| *mark <= self.safe) {
            if let Output::Decided(decision) = &output {
                self.held_bytes -= serving::bytes_of(decision);
                self.on_effect(mark, decision.height);
            }
            out.push(output);
        }
    }

    fn on_heard(
        &mut self,
        now: Instant,
        from: Seat,
        message: Message,
        is_fit: bool,
        out: &mut Vec<Output>,
    ) {
        match message {
            Message::Word(word, batch) => self.on_word(now, from, word, batch, is_fit, out),
            Message::Commands(commands) => {
                if is_fit && self.knows(&from) {
                    for command in commands {
                        self.pending.push(now, from.key, true, command);
                    }
                }
            }
            Message::Overdue(command) if is_fit => self.on_overdue(now, from, command),
            Message::Overdue(_) => {}
            Message::Vouch(vouch) => self.on_vouch(from, vouch),
            Message::Hello { nonce } => self.on_hello(now, from, nonce, out),
            Message::Welcome { nonce, time, height, seen } => {
                self.on_welcome(now, from, nonce, time, height, seen, out);
            }
            Message::Behind { height, epoch } => self.on_behind(now, from, height, epoch, out),
            Message::Decisions(decisions) => self.on_decisions(now, from, decisions, out),
            Message::Offer(summary, proof) => {
                self.on_offer(now, from, summary, proof.as_ref(), out);
            }
            Message::Fetch { height, from: start } => self.on_fetch(now, from, height, start, out),
            Message::Piece { height, from: start, bytes } => {
                self.on_piece(now, from, height, start, bytes, out);
            }
            Message::Wish { epoch, seats, until, seal } => {
                self.on_wish(epoch, seats, Wisher { seat: from, until, seal });
            }
            Message::Ready { epoch, seats, point, seal } => {
                self.on_ready(from, epoch, seats, point, seal, out);
            }
        }
    }

    /// Whether it is a member, or is to be one.
    fn knows(&self, seat: &Seat) -> bool {
        self.members.contains(seat) || self.tip.learners().any(|learner| learner == seat)
    }

    fn send_now(&self, message: Message, out: &mut Vec<Output>) {
        for to in self.others() {
            out.push(Output::Send { to, message: message.clone() });
        }
    }
}

impl<N: Notary> Machine for Replica<N> {
    type Input = Input;
    type Output = Output;

    fn step(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Command { from, command } => self.on_command(now, from, command, out),
            Input::Heard { from, message, is_fit } => {
                self.on_heard(now, from, message, is_fit, out);
            }
            Input::Persisted { mark } => self.safe = self.safe.max(mark.min(self.mark)),
            Input::State { height, state } => self.on_state(now, height, state, out),
            Input::Unreadable => self.let_go(&self.roll(), now, out),
            Input::Wish(seats) => self.on_own_wish(now, seats, out),
            Input::Hint(seats) => self.on_hint(now, seats, out),
            Input::Rescue(rescue) => self.on_own_rescue(now, &rescue, out),
            Input::Obey => self.obey(now, out),
            Input::Changes(changes) => self.on_changes(now, &changes, out),
        }
        self.run(now, out);
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Output>) {
        let due: BTreeSet<(Wait, u32)> =
            self.waits.iter().filter(|(_, at)| **at <= now).map(|(wait, _)| *wait).collect();
        for (wait, round) in due {
            let is_last = wait == Wait::Precommit && !self.may_follow(round);
            if self.waits.remove(&(wait, round)).is_some() && !is_last {
                let mut deeds = Vec::new();
                let fact = Fact::Waited { wait, round };
                self.engine.take(&self.notary, fact, &mut deeds);
                self.deeds.extend(deeds);
                self.run(now, out);
            }
        }
        if self.say_again_at.is_some_and(|at| at <= now) {
            self.say_again(now, out);
        }
        self.wait_at = self.wait_at.filter(|at| *at > now);
        self.greet_again(now, out);
        self.catch_up_again(now, out);
        self.hesitate_again(now, out);
        self.run(now, out);
    }

    fn wake_at(&self) -> Option<Instant> {
        let waits = self.waits.values().copied();
        let known = [self.say_again_at, self.wait_at, self.greet_at(), self.catch_up_at()];
        let rest = known.into_iter().chain([self.hesitate_at(), self.overdue_at()]);
        waits.chain(rest.flatten()).min()
    }
}

#[cfg(test)]
mod tests;
