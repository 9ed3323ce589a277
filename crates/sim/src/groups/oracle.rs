//! Judges the group world: B1 to B8, the agreed time, what is kept and what is said.
//!
//! Whoever was alone at first may lie. What it decided alone is its own business, and so is how long it stays alone.
//! What must hold: who was invited by anybody else has nothing but what was decided, at any moment; who knew of that
//! one alone has that too as soon as it sits here, and nobody asks it before; and when there are more, everything that
//! is demanded of groups of honest founders is demanded of theirs.
//!
//! What it has decided alone counts when others have decided something with it on top of that: then that is what was
//! decided, for everybody, and whoever was shown who sits there takes no other state. Until then it is as good as alone, whomever it says it has given seats. It may even be two
//! from the beginning, and tell each newcomer something else. Who was told otherwise has what was decided before it
//! decides anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use base::{Digest, Duration, Instant};
use group::{Batch, Change, Seat, Settings, Sizes, Step, Tip, Vote};
use vice::digest_of;

use crate::{Broken, Checker, Node, World};

use super::{
    actor::{Note, Party},
    leading::Leading,
    ledger::Shared,
    member::Member,
    tally::{Order, Receipt, Tally},
    tamper::Tamper,
};

/// A decision takes effect so soon after it was made, if no machine stands still: its log has to be safe.
const EFFECT_MAX: Duration = Duration::from_secs(1);

/// Who has drifted notices it so soon after a checkpoint, if nothing else goes wrong.
const NOTICED_MAX: Duration = Duration::from_secs(3);

/// The place of a vote.
type Place = (Seat, u64, u32, Step);

/// What is known of a vote.
#[derive(Debug)]
struct Cast {
    value: Option<Digest>,
    /// Honest members that have heard it and not started again since.
    heard: BTreeSet<Node>,
}

pub(crate) struct Oracle {
    ledger: Shared,
    slack: Duration,
    /// Whether no machine ever starts again or stands still, so that no clock starts again, and what was
    /// decided takes effect soon.
    is_steady: bool,
    /// When the last height was decided.
    last_at: Instant,
    /// The batch at each height, by its digest.
    decided: Vec<Digest>,
    /// What whoever was alone at first has decided alone, if it lies: which of it counts is seen later.
    alone: BTreeMap<Digest, Rc<Batch>>,
    tip: Tip,
    tally: Tally,
    /// The digest of the state after each height.
    states: Vec<Digest>,
    receipts: BTreeMap<(u16, u64), Receipt>,
    asked: BTreeSet<(u16, u64)>,
    /// Every vote that an honest seat has let others know.
    votes: BTreeMap<Place, Cast>,
    /// The secret of each customer.
    secrets: Rc<BTreeMap<u16, u64>>,
    /// How many orders were believed.
    pub(crate) believed: u64,
    /// Who leads, and who waits.
    pub(crate) leading: Leading,
    /// When the faults ended, and who has had another state than the others at a point after that, and since when.
    healed_at: Option<Instant>,
    adrift: BTreeMap<Node, Instant>,
}

impl Oracle {
    pub(crate) fn new(
        ledger: Shared,
        slack: Duration,
        is_steady: bool,
        secrets: Rc<BTreeMap<u16, u64>>,
        leading: Leading,
    ) -> Oracle {
        let tip = ledger.borrow().tip.clone();
        let tally = Tally::default();
        Oracle {
            ledger,
            slack,
            is_steady,
            last_at: Instant::START,
            decided: Vec::new(),
            alone: BTreeMap::new(),
            tip,
            states: vec![digest_of(&base::encode(&tally))],
            tally,
            receipts: BTreeMap::new(),
            asked: BTreeSet::new(),
            votes: BTreeMap::new(),
            secrets,
            believed: 0,
            leading,
            healed_at: None,
            adrift: BTreeMap::new(),
        }
    }

    /// Whether one who lies was alone at first, and is not any more.
    pub(crate) fn has_outgrown_a_liar(&self) -> bool {
        let ledger = self.ledger.borrow();
        ledger.has_lying_founder() && !ledger.is_at_a_liars_mercy()
    }

    /// Whether it is not up to a liar that is alone what is decided.
    pub(crate) fn is_settled(&self) -> bool {
        !self.ledger.borrow().is_at_a_liars_mercy()
    }

    /// How many decisions there are.
    pub(crate) fn height(&self) -> u64 {
        self.tip.height
    }

    /// From now on no fault happens.
    pub(crate) fn on_healed(&mut self, now: Instant) {
        self.healed_at = Some(now);
    }

    /// From now on other machines are to sit here.
    pub(crate) fn want_next(&mut self) {
        self.ledger.borrow_mut().want_next();
    }

    /// Whether somebody who was shown that others sit there than whoever let it in has a right state, if it takes one.
    fn counts_as_shown(&self) -> bool {
        let ledger = self.ledger.borrow();
        !ledger.is_founder_two() && !ledger.is_at_a_liars_mercy()
    }

    /// Somebody decides something where whoever was alone at first lies. Whether it is judged like all that is
    /// decided.
    fn counts<T: Tamper>(
        &mut self,
        world: &World<Party<T>>,
        node: Node,
        batch: &Rc<Batch>,
        value: Digest,
    ) -> Result<bool, Broken> {
        let member = world.actor(node).member();
        if member.is_some_and(|member| !member.is_honest()) {
            self.alone.insert(value, Rc::clone(batch));
            return Ok(false);
        }
        let was_told = member.is_some_and(Member::may_be_misled);
        if self.alone.contains_key(&value) && was_told {
            return Ok(false);
        }
        if self.decided.is_empty() {
            // These are the first who have decided something together.
            let (mut line, mut before) = (Vec::new(), batch.before);
            while let Some(batch) = self.alone.get(&before) {
                line.push((before, Rc::clone(batch)));
                before = batch.before;
            }
            for (value, batch) in line.into_iter().rev() {
                self.on_decided(world.now(), node, self.tip.height + 1, &batch, value)?;
            }
        }
        Ok(true)
    }

    fn on_decided(
        &mut self,
        now: Instant,
        node: Node,
        height: u64,
        batch: &Batch,
        value: Digest,
    ) -> Result<(), Broken> {
        let place = height as usize;
        if let Some(known) = self.decided.get(place - 1) {
            return match *known == value {
                true => Ok(()),
                false => {
                    Err(Broken::new("inv-B1", format!("{node} decides otherwise at {height}")))
                }
            };
        }
        if place != self.decided.len() + 1 {
            let what = format!("{node} decides {height} before what comes before it");
            return Err(Broken::new("inv-B2", what));
        }
        let is_alone = self.ledger.borrow().is_at_a_liars_mercy();
        if !is_alone {
            self.check_time(now, batch)?;
            self.last_at = now;
        }
        self.decided.push(value);
        for command in &batch.commands {
            match Order::of(command).filter(|_| is_alone) {
                Some(order) => _ = self.tally.serve(&order),
                None => self.on_command(height, command)?,
            }
        }
        if let Some(Change::Plan { seats, .. }) = &batch.change
            && !self.ledger.borrow().may_wish(seats)
        {
            let what = format!("{height} plans members that nobody honest wishes: {seats:?}");
            return Err(Broken::new("inv-B6", what));
        }
        self.tip = self.tip.after(batch, value);
        let state: Rc<[u8]> = base::encode(&self.tally).into();
        self.states.push(digest_of(&state));
        self.ledger.borrow_mut().on_decided(self.tip.clone(), || state);
        self.leading.on_decided(now, self.tip.leader)
    }

    fn on_command(&mut self, height: u64, command: &[u8]) -> Result<(), Broken> {
        let order = Order::of(command).filter(|order| {
            let is_wanted = |secret: &u64| order.is_wanted(*secret);
            self.secrets.get(&order.customer).is_some_and(is_wanted)
                && self.asked.contains(&(order.customer, order.number))
        });
        let Some(order) = order else {
            let what = format!("{height} has a command that nobody has asked for: {command:?}");
            return Err(Broken::new("inv-B4", what));
        };
        if let Some(receipt) = self.tally.serve(&order) {
            self.receipts.entry((order.customer, order.number)).or_insert(receipt);
        }
        Ok(())
    }

    /// The world's time is what an honest clock would show that has neither stood still nor run wrong.
    fn check_time(&self, now: Instant, batch: &Batch) -> Result<(), Broken> {
        if batch.time < self.tip.time {
            let what = format!("{} comes after {}", batch.time, self.tip.time);
            return Err(Broken::new("agreed time", what));
        }
        // Honest clocks run wrong by 500 ppm, and liars may pull at them by 1,000.
        let most = now + self.slack + now.since(Instant::START) * 2 / 1_000;
        // Honest members have found it plausible after the decision before. The agreed time stands still only
        // while so many machines are off that no honest clock is left to go by.
        let since = self.last_at.since(Instant::START);
        let least = self.last_at - self.slack - since * 3 / 1_000 - EFFECT_MAX;
        match batch.time <= most && (batch.time >= least || !self.is_steady) {
            true => Ok(()),
            false => Err(Broken::new("agreed time", format!("it is {} at {now}", batch.time))),
        }
    }

    fn check_state(&self, node: Node, tip: &Tip, state: Digest) -> Result<(), Broken> {
        match self.states.get(tip.height as usize) {
            Some(known) if *known == state => Ok(()),
            _ => {
                let what = format!("{node} has another state at {}", tip.height);
                Err(Broken::new("inv-B3", what))
            }
        }
    }

    fn on_voted(&mut self, node: Node, vote: &Vote) -> Result<(), Broken> {
        let place = (vote.seat, vote.height, vote.round, vote.step);
        let cast = self
            .votes
            .entry(place)
            .or_insert_with(|| Cast { value: vote.value, heard: BTreeSet::new() });
        if cast.value == vote.value {
            return Ok(());
        }
        // Who has forgotten may repeat itself wrongly if those who heard it can't tell.
        let ledger = self.ledger.borrow();
        let members = ledger.tip.members();
        let may_be_unaware = cast.heard.len() <= members.faults();
        if ledger.is_amnesiac(node) && may_be_unaware {
            return Ok(());
        }
        let what = format!("{node} votes twice at {place:?}: {:?} {:?}", cast.value, vote.value);
        Err(Broken::new("inv-B7", what))
    }

    fn on_heard(&mut self, node: Node, vote: &Vote) {
        let place = (vote.seat, vote.height, vote.round, vote.step);
        if let Some(cast) = self.votes.get_mut(&place).filter(|cast| cast.value == vote.value) {
            cast.heard.insert(node);
        }
    }

    fn on_restarted(&mut self, node: Node) {
        for cast in self.votes.values_mut() {
            cast.heard.remove(&node);
        }
        // Long past votes are not worth their room.
        let height = self.tip.height.saturating_sub(200);
        self.votes.retain(|(_, at, ..), _| *at > height);
    }

    fn on_believed(&mut self, node: Node, number: u64, receipt: &Receipt) -> Result<(), Broken> {
        self.believed += 1;
        match self.receipts.get(&(node.0, number)) {
            Some(known) if known == receipt => Ok(()),
            known => {
                let what = format!("{node} believes {receipt:?} of {number}; it is {known:?}");
                Err(Broken::new("inv-B8", what))
            }
        }
    }

    fn check_sizes<T: Tamper>(&self, node: Node, member: &Member<T>) -> Result<(), Broken> {
        let settings = member.settings();
        let Sizes {
            held,
            pending,
            overdue,
            vouches,
            batches,
            recent,
            ahead,
            seen,
            cast,
            waits,
            wishes,
            served,
            evidence,
            ..
        } = member.life().replica.sizes();
        let count = 2 * self.tip.seats.len().max(member.life().replica.members().list().len());
        let bounds = [
            (held, 2 * settings.held_max, "outputs"),
            (pending, settings.pending_count_max, "commands"),
            (overdue, count, "what is overdue elsewhere"),
            (vouches, 2 * count, "what others vouch for"),
            (batches, settings.batches_max, "batches"),
            (recent, settings.recent_max, "decisions"),
            (ahead, 3 * count, "words too early"),
            (seen, count, "votes of others"),
            (cast, 400, "own votes"),
            (waits, 16, "waits"),
            (wishes, (1 + Settings::POINTS_MAX) * count, "wishes"),
            (served, 64, "whom it has served"),
            (evidence, settings.proofs_max, "lies"),
        ];
        match bounds.into_iter().find(|(size, most, _)| size > most) {
            None => Ok(()),
            Some((size, most, what)) => {
                let what = format!("{node} keeps {size} {what}, and {most} are the most");
                Err(Broken::new("inv-R1", what))
            }
        }
    }

    /// All customers have been answered, and all honest members know what was decided up to this height.
    pub(crate) fn judge_end<T: Tamper>(
        &self,
        world: &World<Party<T>>,
        height: u64,
    ) -> Result<(), Broken> {
        for node in world.nodes() {
            if let Some(customer) = world.actor(node).customer().filter(|one| one.is_waiting()) {
                let what = format!("{node} waits for its order {}", customer.number());
                return Err(Broken::new("inv-B5", what));
            }
            let Some(member) = world.actor(node).member().filter(|one| one.is_honest()) else {
                continue;
            };
            if !self.ledger.borrow().is_wanted(node) {
                continue;
            }
            if member.drifts() {
                self.judge_drift(node, member, world.now())?;
                continue;
            }
            let life = member.life();
            if life.tip.height < height {
                let what = format!("{node} knows {} of {height}", life.tip.height);
                return Err(Broken::new("inv-B5", what));
            }
            self.check_state(node, &life.tip, digest_of(&base::encode(&life.tally)))?;
            if !life.replica.is_member() {
                return Err(Broken::new("inv-B5", format!("{node} has not become a member")));
            }
        }
        Ok(())
    }

    /// Who has drifted has noticed that, if it has made a checkpoint since and nothing went wrong.
    fn judge_drift<T: Tamper>(
        &self,
        node: Node,
        member: &Member<T>,
        now: Instant,
    ) -> Result<(), Broken> {
        let since = self.adrift.get(&node).filter(|_| member.is_adrift());
        match since.is_some_and(|since| *since + NOTICED_MAX < now) {
            true => Err(Broken::new("inv-B3", format!("{node} has drifted and not noticed"))),
            false => Ok(()),
        }
    }

    /// A member has a state at a point.
    fn on_state(&mut self, now: Instant, node: Node, is_adrift: bool) {
        if is_adrift && self.healed_at.is_some() {
            self.adrift.entry(node).or_insert(now);
        }
    }
}

impl<T: Tamper> Checker<Party<T>> for Oracle {
    fn check(&mut self, world: &World<Party<T>>, node: Node) -> Result<(), Broken> {
        let may_be_wrong = world.actor(node).member().is_some_and(Member::may_be_wrong);
        for note in world.notes() {
            match note {
                Note::State { .. } | Note::Installed { is_shown: false, .. } if may_be_wrong => {}
                // One who is two can have shown it others who know what was never decided.
                Note::Installed { .. } if may_be_wrong && !self.counts_as_shown() => {}
                Note::Decided { height, batch, value } => {
                    let is_founder_honest = !self.ledger.borrow().has_lying_founder();
                    if is_founder_honest || self.counts(world, node, batch, *value)? {
                        self.on_decided(world.now(), node, *height, batch, *value)?;
                    }
                }
                Note::State { tip, state } => {
                    let is_adrift = world.actor(node).member().is_some_and(Member::is_adrift);
                    self.on_state(world.now(), node, is_adrift);
                    if !is_adrift {
                        self.check_state(node, tip, *state)?;
                    }
                }
                Note::Installed { tip, state, .. } => {
                    self.check_state(node, tip, *state)?;
                }
                Note::Voted(vote) => self.on_voted(node, vote)?,
                Note::Heard(vote) => self.on_heard(node, vote),
                Note::Restarted => self.on_restarted(node),
                Note::Stale { is_old: true } => {}
                Note::Stale { is_old: false } => {
                    let what = format!("{node} takes its disk for an old one");
                    return Err(Broken::new("inv-B7", what));
                }
                Note::Astray { is_adrift: true } => {}
                Note::Astray { is_adrift: false } => {
                    let what = format!("{node} takes its state for another one than it is");
                    return Err(Broken::new("inv-B3", what));
                }
                Note::Unreadable(why) => return Err(Broken::new("log", why.clone())),
                Note::Asked { number } => {
                    self.asked.insert((node.0, *number));
                    self.leading.on_asked(world.now(), node, *number);
                }
                Note::Believed { number, receipt } => {
                    self.on_believed(node, *number, receipt)?;
                    self.leading.on_believed(world.now(), node, *number)?;
                }
            }
        }
        match world.actor(node).member().filter(|member| member.is_honest()) {
            Some(member) => {
                if member.may_be_misled() && !may_be_wrong {
                    let life = member.life();
                    let state = digest_of(&base::encode(&life.tally));
                    self.check_state(node, &life.tip, state)?;
                }
                self.check_sizes(node, member)
            }
            None => Ok(()),
        }
    }
}
