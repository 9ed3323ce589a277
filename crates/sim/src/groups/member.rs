//! A machine that sits in a group: a disk, a clock that starts at zero with it, and what is replicated.

use std::{collections::BTreeMap, rc::Rc, sync::Arc};

use base::{Duration, Instant, Machine, PublicKey, Rng};
use group::{Change, Decision, Input, Message, Output, Replica, Roll, Seat, Settings, Tip, Word};
use vice::{Vice, digest_of};

use crate::Node;

use super::{
    actor::{Letter, Note, Out},
    disk::Disk,
    ledger::Shared,
    notary::{Safe, Stamp},
    tally::{Order, Tally},
    tamper::Tamper,
};

mod lying;

/// How a machine's disk behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hardware {
    /// The longest that it takes until something is safe.
    pub(crate) sync_max: Duration,
    /// How often a restart finds an empty disk.
    pub(crate) loss: f64,
    /// How often it finds an old one.
    pub(crate) rollback: f64,
    /// How often something that is safe is copied. The less often, the older a copy is.
    pub(crate) backups: f64,
}

/// What is common to all machines of a world.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) settings: Settings,
    pub(crate) first: Tip,
    pub(crate) safe: Rc<Safe>,
    pub(crate) ledger: Shared,
    pub(crate) hardware: Hardware,
    /// The secret of each customer, by node. Machines only check with it.
    pub(crate) secrets: Rc<BTreeMap<u16, u64>>,
    /// The machine whose state goes astray once.
    pub(crate) drifter: Option<Node>,
    /// Whether liars have got hold of the authority's word.
    pub(crate) leaks: bool,
}

/// After so many orders a state goes astray, if it does.
const DRIFTS_AFTER: u64 = 20;
/// One who has just begun anew says so this often.
const PETITION_EVERY: Duration = Duration::from_millis(700);
/// So that two that echo each other end.
const ECHO_EVERY: Duration = Duration::from_millis(50);
/// One who knows nothing new for so long looks up who may sit in the group.
const LOST_AFTER: Duration = Duration::from_secs(4);

/// One run of a machine's program.
pub(crate) struct Life {
    pub(crate) replica: Replica<Stamp>,
    pub(crate) disk: Disk,
    pub(crate) tally: Tally,
    /// What the decisions that took effect leave behind.
    pub(crate) tip: Tip,
    is_stale: bool,
}

pub(crate) struct Member<T> {
    node: Node,
    site: Site,
    stamp: Stamp,
    pub(crate) seat: Seat,
    /// One; two if it lies by being two.
    pub(crate) lives: Vec<Life>,
    vice: Option<Vice>,
    /// Whether, as a liar that is alone, it lies only when it is not any more.
    bides: bool,
    /// What it was told of the group when it was let in.
    first: Tip,
    /// Whether that was by a liar who was alone once, and so may have told it anything.
    may_be_misled: bool,
    /// Who sits there by what it was shown since, if it may be misled. It need not know of it, if it is built wrong.
    shown: Roll,
    /// Its own clock when it was switched on.
    booted_at: Instant,
    /// An older copy of its disk, and the seat that it is of.
    backup: Option<(Seat, Disk)>,
    /// Whether its disk is an old one.
    is_old: bool,
    /// Whether its state has gone astray, and whether it still is.
    has_drifted: bool,
    is_adrift: bool,
    /// The greatest height at which it has voted.
    voted: u64,
    petitions: BTreeMap<PublicKey, Seat>,
    /// Since when the members are, as far as each customer knows.
    epochs: BTreeMap<u16, u64>,
    wished: Option<(u64, Vec<Seat>)>,
    /// When it would say again what another wishes, if it is built wrong.
    echo_at: Instant,
    petition_at: Option<Instant>,
    /// When it last learnt something, and at which height it was.
    learnt: (Instant, u64),
    rng: Rng,
    outputs: Vec<Output>,
    tamper: T,
}

impl<T: Tamper> Member<T> {
    pub(crate) fn new(
        node: Node,
        site: Site,
        vice: Option<Vice>,
        mut rng: Rng,
        now: Instant,
        tamper: T,
    ) -> Member<T> {
        let stamp = Stamp::new(&site.safe, node.index());
        let seat = Seat { key: site.safe.key(node.index()), incarnation: 0 };
        let (first, ledger) = (site.first.clone(), Rc::clone(&site.ledger));
        let may_be_misled = ledger.borrow().has_lying_founder() && !first.seats.contains(&seat);
        let mut member = Member {
            bides: rng.chance(0.7),
            first: first.clone(),
            may_be_misled,
            shown: Roll::from(&first),
            node,
            stamp,
            seat,
            lives: Vec::new(),
            booted_at: now,
            backup: None,
            is_old: false,
            has_drifted: false,
            is_adrift: false,
            voted: 0,
            petitions: BTreeMap::new(),
            epochs: BTreeMap::new(),
            wished: None,
            echo_at: Instant::START,
            petition_at: None,
            learnt: (now, 0),
            rng,
            outputs: Vec::new(),
            site,
            vice,
            tamper,
        };
        let copies = 1 + usize::from(member.vice.as_ref().is_some_and(Vice::is_twin));
        let state = Tally::default();
        member.lives = (0..copies).map(|_| member.begin(&first, state.clone(), now)).collect();
        member
    }

    pub(crate) fn is_honest(&self) -> bool {
        self.vice.is_none()
    }

    /// Whether its state goes astray once, and whether it is.
    pub(crate) fn drifts(&self) -> bool {
        self.site.drifter == Some(self.node)
    }

    pub(crate) fn is_adrift(&self) -> bool {
        self.is_adrift
    }

    /// Whether a liar who was alone once has let it in.
    pub(crate) fn may_be_misled(&self) -> bool {
        self.may_be_misled
    }

    /// Whether it waits to lie until it is not alone any more.
    fn is_biding(&self) -> bool {
        self.bides && self.lives.iter().all(|life| life.tip.seats == [self.seat])
    }

    /// Whether it may have something else than was decided, for now: whoever let it in lies, and it has no seat; or
    /// that one is two, and has given it a seat where nothing was decided since.
    pub(crate) fn may_be_wrong(&self) -> bool {
        let Life { replica, tip, .. } = self.life();
        let (is_seated, is_new) = (tip.seats.contains(&self.seat), tip.height < tip.epoch);
        let ledger = self.site.ledger.borrow();
        self.may_be_misled
            && (!replica.is_member()
                || ledger.is_at_a_liars_mercy()
                || ledger.is_founder_two() && (!is_seated || is_new))
    }

    /// The product's machine, and its time.
    pub(crate) fn life(&self) -> &Life {
        &self.lives[0]
    }

    /// What the machine's clock shows: it starts with it.
    pub(crate) fn clock(&self, now: Instant) -> Instant {
        Instant::from_secs(1) + now.since(self.booted_at) / self.tamper.slowness()
    }

    fn unclock(&self, at: Instant) -> Instant {
        self.booted_at + at.since(Instant::from_secs(1)) * self.tamper.slowness()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.site.settings
    }

    /// A life with an empty disk.
    fn begin(&self, tip: &Tip, tally: Tally, now: Instant) -> Life {
        let settings = self.settings_here();
        let clock = self.clock(now);
        let stamp = self.stamp.clone();
        let mut disk = Disk::default();
        if tip.height > 0 {
            disk.keep_state(tip.clone(), base::encode(&tally).into(), 0);
            disk.settle();
        }
        Life {
            replica: {
                let charter = self.site.safe.charter();
                Replica::new(settings, charter, self.seat, stamp, tip.clone(), clock)
            },
            disk,
            tally,
            tip: tip.clone(),
            is_stale: false,
        }
    }

    fn settings_here(&self) -> Settings {
        match self.is_honest() {
            true => self.tamper.settings(self.site.settings.clone()),
            false => self.site.settings.clone(),
        }
    }

    /// Whether it has begun anew and nobody wants it to sit here any more: then nobody runs it.
    fn is_retired(&self) -> bool {
        self.is_honest()
            && self.seat.incarnation > 0
            && !self.life().replica.is_member()
            && !self.site.ledger.borrow().may_sit(self.node)
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        if self.is_retired() {
            return None;
        }
        let lives = self.lives.iter().flat_map(|life| {
            let replica = life.replica.wake_at().map(|at| self.unclock(at));
            [replica, life.disk.wake_at()]
        });
        let late_at = self.vice.as_ref().and_then(Vice::late_at);
        lives.flatten().chain(self.petition_at).chain(late_at).min()
    }

    pub(crate) fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        if self.is_retired() {
            return;
        }
        let clock = self.clock(now);
        for index in 0..self.lives.len() {
            let life = &mut self.lives[index];
            if let Some(mark) = life.disk.due(now) {
                if self.rng.chance(self.site.hardware.backups) {
                    self.backup = Some((self.seat, life.disk.copy()));
                }
                if self.tamper.reports_safe() || self.vice.is_some() {
                    self.step(now, index, Input::Persisted { mark }, out);
                }
            }
            let life = &mut self.lives[index];
            if life.replica.wake_at().is_some_and(|at| at <= clock) {
                let mut outputs = std::mem::take(&mut self.outputs);
                life.replica.tick(clock, &mut outputs);
                self.follow(now, index, outputs, out);
            }
        }
        if self.petition_at.is_some_and(|at| at <= now) {
            self.petition(now, out);
        }
        while let Some((to, message)) = self.vice.as_mut().and_then(|vice| vice.late(now)) {
            self.lie(to, message, out);
        }
        self.scheme(now, None, out);
        self.look_after(now, out);
    }

    pub(crate) fn deliver(&mut self, now: Instant, from: Node, letter: Letter, out: &mut Out<T>) {
        if self.is_retired() {
            return;
        }
        match letter {
            Letter::Member { from: seat, to, bytes } => {
                let is_authentic = self.site.safe.index(&seat.key) == Some(from.index());
                if to != self.seat || !is_authentic {
                    return;
                }
                if let Ok(message) = base::decode::<Message>(&bytes, bytes.len()) {
                    self.hear(now, from, seat, message, out);
                }
            }
            Letter::Petition(seat) => {
                if self.site.safe.index(&seat.key) == Some(from.index()) {
                    self.on_petition(now, seat, out);
                }
            }
            Letter::Order(bytes, epoch) => {
                let is_heard = |vice: &mut Vice| !vice.ignores(u64::from(from.0));
                if self.is_wanted(&bytes) && self.vice.as_mut().is_none_or(is_heard) {
                    self.epochs.insert(from.0, epoch);
                    for index in 0..self.lives.len() {
                        let from = PublicKey::from_bytes([from.0 as u8; 32]);
                        let command = bytes.to_vec();
                        self.step(now, index, Input::Command { from, command }, out);
                    }
                }
            }
            Letter::Answer { .. } => {}
        }
        self.look_after(now, out);
    }

    fn is_wanted(&self, command: &[u8]) -> bool {
        Order::of(command).is_some_and(|order| {
            let secret = self.site.secrets.get(&order.customer);
            secret.is_some_and(|secret| order.is_wanted(*secret))
        })
    }

    fn hear(&mut self, now: Instant, node: Node, from: Seat, message: Message, out: &mut Out<T>) {
        let is_biding = self.is_biding();
        if let Some(vice) = &mut self.vice {
            if !is_biding && !vice.hears(&message) {
                return;
            }
            let index = vice.side(node.0).min(self.lives.len() - 1);
            let is_fit = true;
            let input = Input::Heard { from, message: message.clone(), is_fit };
            self.step(now, index, input, out);
            self.scheme(now, Some((from, &message)), out);
            return;
        }
        self.look_at(&message);
        let members = self.lives[0].replica.members().list().to_vec();
        for (from, message) in self.tamper.inward(from, message, &members) {
            let is_fit = message.commands().iter().all(|command| self.is_wanted(command));
            if let Message::Word(word, batch) = &message {
                if let Word::Vote(vote, _) = word
                    && vote.what.seat == from
                {
                    out.note(Note::Heard(vote.what.clone()));
                }
                if let Some(batch) = batch.as_ref().filter(|_| self.tamper.answers_early()) {
                    let mut tally = self.lives[0].tally.clone();
                    for command in &batch.commands {
                        self.serve(&mut tally, command, true, out);
                    }
                }
            }
            if let Message::Wish { epoch, seats, .. } = &message
                && self.tamper.echoes_wishes()
                && self.wished.as_ref().is_none_or(|(_, wished)| wished != seats)
                && now >= self.echo_at
            {
                self.echo_at = now + ECHO_EVERY;
                self.wished = Some((*epoch, seats.clone()));
                self.step(now, 0, Input::Wish(seats.clone()), out);
            }
            let is_fit = self.tamper.is_fit(is_fit);
            self.step(now, 0, Input::Heard { from, message, is_fit }, out);
        }
    }

    /// Whether what it is told proves that others sit there than those that it was told of when it was let in.
    fn look_at(&mut self, message: &Message) {
        let decisions = match message {
            Message::Offer(summary, _) => summary.tip.lineage.changes(),
            Message::Decisions(decisions) => decisions,
            _ => return,
        };
        let is_change = |one: &&Decision| matches!(one.batch.change, Some(Change::Enact { .. }));
        let changes: Vec<Decision> = decisions.iter().filter(is_change).cloned().collect();
        if self.may_be_misled && !changes.is_empty() {
            self.shown = self.shown.after(&changes, &self.site.safe.charter(), &self.stamp);
        }
    }

    fn step(&mut self, now: Instant, index: usize, input: Input, out: &mut Out<T>) {
        let clock = self.clock(now);
        let mut outputs = std::mem::take(&mut self.outputs);
        self.lives[index].replica.step(clock, input, &mut outputs);
        self.follow(now, index, outputs, out);
    }

    fn follow(&mut self, now: Instant, index: usize, mut outputs: Vec<Output>, out: &mut Out<T>) {
        let mut answers = Vec::new();
        for output in outputs.drain(..) {
            let life = &mut self.lives[index];
            match output {
                Output::Persist { record, .. } => life.disk.append(record),
                Output::Sync { mark } => {
                    let after = Disk::draw_sync(self.site.hardware.sync_max, &mut self.rng);
                    life.disk.sync(mark, now + after);
                    if !self.tamper.waits_for_disk() && self.vice.is_none() {
                        answers.push(Input::Persisted { mark });
                    }
                }
                Output::Send { to, message } => self.send(now, index, to, message, out),
                Output::Decided(decision) => {
                    let mut tally = std::mem::take(&mut life.tally);
                    // A liar that is alone is who it lies about, and nobody else can tell what it decides.
                    let is_alone = life.tip.seats == [self.seat];
                    // Nobody hears from who did not sit here then: what it knows may be from whoever let it in.
                    let is_told = life.tip.seats.contains(&self.seat);
                    life.tip = life.tip.after(&decision.batch, decision.certificate.value);
                    if is_alone && life.tip.seats != [self.seat] {
                        // Nobody can tell that a disk is old which is from when its machine was alone.
                        self.backup = None;
                    }
                    if self.vice.is_none() || is_alone {
                        out.note(Note::Decided {
                            height: decision.height,
                            batch: Rc::new(decision.batch.clone()),
                            value: decision.certificate.value,
                        });
                    }
                    for command in &decision.batch.commands {
                        self.serve(&mut tally, command, is_told, out);
                    }
                    if self.vice.is_none() && self.tamper.drifts() && tally.count % 50 == 49 {
                        tally.spoil();
                    }
                    if self.drifts() && !self.has_drifted && tally.count > DRIFTS_AFTER {
                        tally.spoil();
                        (self.has_drifted, self.is_adrift) = (true, true);
                    }
                    self.lives[index].tally = tally;
                }
                Output::WantState { height } => {
                    let mut state: Rc<[u8]> = base::encode(&life.tally).into();
                    if self.vice.is_none() {
                        state = self.tamper.vouched(state);
                        out.note(Note::State {
                            tip: Rc::new(life.tip.clone()),
                            state: digest_of(&state),
                        });
                    }
                    let behind = life.replica.mark_behind(life.tip.height);
                    life.disk.keep_state(life.tip.clone(), Rc::clone(&state), behind);
                    answers.push(Input::State { height, state: Arc::from(&state[..]) });
                }
                Output::Install { tip, state } => {
                    out.mark("a state is taken from others");
                    if self.vice.is_none() {
                        let (tip, state) = (Rc::new(tip.clone()), digest_of(&state));
                        let is_shown = self.shown.seats.len() > 1;
                        out.note(Note::Installed { tip, state, is_shown });
                    }
                    self.is_adrift = false;
                    life.tip = tip.clone();
                    life.tally = base::decode(&state, state.len()).unwrap_or_default();
                    let behind = life.replica.mark_behind(tip.height);
                    life.disk.keep_state(tip, state.into(), behind);
                }
                Output::Misled { tip } => {
                    out.mark("a newcomer finds that it was misled");
                    (life.tip, life.tally) = (tip.clone(), Tally::default());
                    let state = base::encode(&life.tally).into();
                    let behind = life.replica.mark_behind(tip.height);
                    life.disk.keep_state(tip, state, behind);
                }
                Output::Astray(_) => {
                    life.is_stale = true;
                    if self.vice.is_none() {
                        out.mark("a member that has drifted notices it");
                        out.note(Note::Astray { is_adrift: self.is_adrift });
                    }
                }
                Output::Stale => {
                    life.is_stale = true;
                    if self.vice.is_none() {
                        out.mark("an old disk is noticed");
                        out.note(Note::Stale { is_old: self.is_old });
                    }
                }
            }
        }
        self.outputs = outputs;
        for input in answers {
            self.step(now, index, input, out);
        }
    }

    /// An order takes effect, and who gave it hears of it.
    fn serve(&mut self, tally: &mut Tally, command: &[u8], is_told: bool, out: &mut Out<T>) {
        let Some(order) = Order::of(command) else { return };
        let receipt = match self.vice.is_none() && self.tamper.repeats() {
            true => Some(tally.take(&order)),
            false => tally.serve(&order),
        };
        let Some(mut receipt) = receipt.filter(|_| is_told) else { return };
        let mut roll = Roll::from(self.lives[0].replica.tip());
        if let Some(vice) = &mut self.vice
            && !lying::misanswer(vice, &mut receipt, &mut roll)
        {
            return;
        }
        let receipt = base::encode(&receipt).into();
        let lineage = &self.lives[0].replica.tip().lineage;
        let mut changes = lineage.since(*self.epochs.get(&order.customer).unwrap_or(&0)).to_vec();
        if let Some(vice) = &mut self.vice {
            vice.rewrite(&mut changes, &roll, self.seat, &self.stamp);
        }
        if !self.site.secrets.contains_key(&order.customer) {
            return;
        }
        let (roll, changes) = (Rc::new(roll), base::encode(&changes).into());
        let from = self.seat;
        let letter = Letter::Answer { from, number: order.number, receipt, roll, changes };
        out.send(Node(order.customer), letter);
    }

    fn send(&mut self, now: Instant, index: usize, to: Seat, message: Message, out: &mut Out<T>) {
        let Some(node) = self.site.safe.index(&to.key).map(|index| Node(index as u16)) else {
            return;
        };
        let is_biding = self.is_biding();
        if let Some(vice) = &mut self.vice {
            if vice.is_twin() && vice.side(node.0) != index {
                return;
            }
            if !is_biding {
                if let Some(message) = vice.put_off(now, to, message) {
                    self.lie(to, message, out);
                }
                return;
            }
        } else if let Message::Word(Word::Vote(vote, _), _) = &message
            && vote.what.seat == self.seat
        {
            self.voted = self.voted.max(vote.what.height);
            out.note(Note::Voted(vote.what.clone()));
        }
        if self.tamper.outward(&message) {
            let bytes = base::encode(&message).into();
            out.send(node, Letter::Member { from: self.seat, to, bytes });
        }
    }

    fn petition(&mut self, now: Instant, out: &mut Out<T>) {
        if self.lives[0].replica.is_member() || self.lives[0].is_stale {
            self.petition_at = None;
            return;
        }
        self.petition_at = Some(now + PETITION_EVERY);
        for node in 0..self.site.ledger.borrow().machines() {
            if node != self.node.0 {
                out.send(Node(node), Letter::Petition(self.seat));
            }
        }
    }

    fn on_petition(&mut self, now: Instant, seat: Seat, out: &mut Out<T>) {
        let known = self.petitions.entry(seat.key).or_insert(seat);
        *known = (*known).max(seat);
        self.wish(now, out);
    }

    /// Wishes that those machines sit here that should, each on its newest seat.
    fn wish(&mut self, now: Instant, out: &mut Out<T>) {
        let tip = self.lives[0].replica.tip();
        let mut seats: Vec<Seat> =
            self.site.ledger.borrow().wanted().map(|key| self.newest(key)).collect();
        seats.sort_unstable();
        let wished = (tip.epoch, seats.clone());
        if self.wished.as_ref() != Some(&wished) {
            self.wished = Some(wished);
            for index in 0..self.lives.len() {
                self.step(now, index, Input::Wish(seats.clone()), out);
            }
        }
    }

    /// The newest seat of a machine that is known.
    fn newest(&self, key: PublicKey) -> Seat {
        let seats = &self.lives[0].replica.tip().seats;
        let known = seats.iter().filter(|seat| seat.key == key).chain(self.petitions.get(&key));
        known.max().copied().unwrap_or(Seat { key, incarnation: 0 })
    }

    /// Begins anew if its disk is an old one, and asks an authority if it has lost touch. A liar that is alone lets
    /// others come.
    fn look_after(&mut self, now: Instant, out: &mut Out<T>) {
        if self.vice.is_some() {
            let is_alone = self.lives.iter().any(|life| life.tip.seats == [self.seat]);
            if is_alone && self.site.ledger.borrow().is_changing() {
                self.wish(now, out);
                self.please_itself(now, out);
            }
            return;
        }
        let life = &self.lives[0];
        if life.is_stale && self.tamper.heeds_stale() {
            self.begin_anew(now, out);
            return;
        }
        if !self.petitions.is_empty() || self.site.ledger.borrow().is_changing() {
            self.wish(now, out);
        }
        let life = &self.lives[0];
        if life.tip.height > self.learnt.1 {
            self.learnt = (now, life.tip.height);
        }
        let is_lost = self.site.ledger.borrow().is_lost(&life.tip);
        if is_lost && now.since(self.learnt.0) > LOST_AFTER {
            self.learnt.0 = now;
            let (tip, state) = self.site.ledger.borrow().start();
            if tip.height > self.lives[0].tip.height {
                out.mark("somebody starts from what the authority says");
                self.lives[0].disk.keep_state(tip, state, 0);
                self.lives[0].disk.settle();
                self.recover(now, out);
            }
            self.look_up(now, out);
        }
    }

    /// Finds out somewhere who may sit in the group now.
    fn look_up(&mut self, now: Instant, out: &mut Out<T>) {
        out.mark("somebody looks up who may sit there");
        let seats = self.site.ledger.borrow().tip.seats.clone();
        self.step(now, 0, Input::Hint(seats), out);
    }

    /// Sits down on a new seat, knowing only who sat here at first.
    fn begin_anew(&mut self, now: Instant, out: &mut Out<T>) {
        self.seat.incarnation += 1;
        self.site.ledger.borrow_mut().on_new_seat(self.node, self.seat);
        let pick = self.rng.next_u64();
        let ledger = Rc::clone(&self.site.ledger);
        let (tip, state, is_misled) = match ledger.borrow().has_lying_founder() || pick & 1 == 0 {
            true => ledger.borrow().invite(pick >> 1),
            false => {
                let (tip, state) = ledger.borrow().start();
                (tip, state, false)
            }
        };
        let tally = base::decode(&state, state.len()).unwrap_or_default();
        (self.first, self.may_be_misled) = (tip.clone(), is_misled);
        self.shown = Roll::from(&tip);
        self.lives = vec![self.begin(&tip, tally, now)];
        (self.voted, self.is_old, self.is_adrift) = (0, false, false);
        (self.wished, self.petition_at) = (None, Some(now));
        self.petitions.clear();
        out.note(Note::Restarted);
        self.look_up(now, out);
    }

    /// It comes back with what was safe and perhaps a little more, with less, or with nothing.
    pub(crate) fn restart(&mut self, now: Instant, out: &mut Out<T>) {
        out.mark("a member starts again");
        self.booted_at = now;
        if self.vice.is_some() {
            for index in 0..self.lives.len() {
                self.lives[index].disk.settle();
                self.recover_one(now, index, out);
            }
            return;
        }
        let Hardware { loss, rollback, .. } = self.site.hardware;
        let may_fail = self.site.ledger.borrow().may_fail(self.node);
        if may_fail && self.rng.chance(loss) {
            out.mark("a disk is lost");
            self.begin_anew(now, out);
            return;
        }
        let backup = self.backup.take().filter(|(seat, _)| *seat == self.seat);
        match backup.filter(|_| may_fail && self.rng.chance(rollback)) {
            Some((_, disk)) => {
                out.mark("an old disk is restored");
                self.lives[0].disk = disk;
                self.is_old = true;
                self.site.ledger.borrow_mut().on_forgot(self.node, self.voted);
            }
            None => {
                if self.lives[0].disk.fail(&mut self.rng) {
                    out.mark("records are lost with the power");
                }
            }
        }
        self.tamper.restarted(&mut self.lives[0].disk);
        out.note(Note::Restarted);
        self.recover(now, out);
    }

    fn recover(&mut self, now: Instant, out: &mut Out<T>) {
        self.recover_one(now, 0, out);
    }

    fn recover_one(&mut self, now: Instant, index: usize, out: &mut Out<T>) {
        let clock = self.clock(now);
        let life = &self.lives[index];
        let (state, records, mark) = life.disk.read();
        let (tip, tally) = match state {
            Some((tip, state)) => {
                (tip.clone(), base::decode(state, state.len()).unwrap_or_default())
            }
            None => (self.first.clone(), Tally::default()),
        };
        let (settings, stamp) = (self.settings_here(), self.stamp.clone());
        let held = state.map(|(tip, state)| (tip.clone(), Arc::from(state)));
        let mut outputs = Vec::new();
        let recovered = Replica::recover(
            settings,
            self.site.safe.charter(),
            self.seat,
            stamp,
            tip.clone(),
            records,
            mark,
            clock,
            &mut outputs,
        );
        match recovered {
            Ok(mut replica) => {
                if let Some((tip, state)) = held {
                    replica.hold_state(tip, state);
                }
                let life = &mut self.lives[index];
                (life.replica, life.tip, life.tally) = (replica, tip, tally);
                life.is_stale = false;
                self.wished = None;
                self.follow(now, index, outputs, out);
                self.welcome_itself(now, out);
            }
            Err(malformed) => out.note(Note::Unreadable(malformed.to_string())),
        }
        let is_outside = self.seat.incarnation > 0 && !self.lives[0].replica.is_member();
        self.petition_at = is_outside.then_some(now);
    }

    /// A mutant does not ask anybody.
    fn welcome_itself(&mut self, now: Instant, out: &mut Out<T>) {
        if self.tamper.is_greeted() || self.vice.is_some() {
            return;
        }
        let clock = self.clock(now);
        let life = &self.lives[0];
        let (height, time) = (life.tip.height, life.replica.time(clock));
        let members = life.replica.members().list().to_vec();
        let nonce = clock.as_nanos();
        let me = self.seat;
        for from in members.into_iter().filter(|seat| *seat != me) {
            let message = Message::Welcome { nonce, time, height, seen: None };
            self.step(now, 0, Input::Heard { from, message, is_fit: true }, out);
        }
    }
}
