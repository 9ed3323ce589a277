//! A client's node: a holder, what it knows, and a user who acts on it.

mod errand;
mod habit;

use std::{collections::BTreeMap, rc::Rc};

use base::{Duration, Instant, Machine, Rng};
use lease::{
    Holder, Kind, Knowledge, Scope, Terms,
    holder::{Input, Output},
    message::{Down, Grant, Return, Up, Want},
};

use super::{
    actor::{Message, Note, Out, SERVER, Value},
    place::{Leaf, Place},
    tamper::Tamper,
};

use self::errand::Errand;
pub(crate) use self::habit::{BUNDLE_MAX, Habit, NEEDS_MAX};

/// A client and its user.
pub(crate) struct User<T> {
    place: Rc<Place>,
    terms: Terms,
    habit: Habit,
    rng: Rng,
    holder: Holder,
    /// How often it has started.
    starts: u64,
    /// The number of the session, as it was last said.
    session: u64,
    /// What it last saw of each register, or made of it.
    copies: Vec<Copy>,
    /// Leases that it was given at some time.
    given: Vec<(Scope, Kind)>,
    /// What the holder has accepted and not given back, by scope and whether it is about the others'
    /// booleans; and the parts that it has not.
    held: BTreeMap<(Scope, bool), Vec<Scope>>,
    /// Requests that are not answered.
    needs: Vec<u64>,
    errands: Vec<Errand>,
    token_next: u64,
    act_at: Option<Instant>,
    outputs: Vec<Output>,
    tamper: T,
}

#[derive(Clone, Copy, Debug, Default)]
struct Copy {
    value: Value,
    /// What it was before it was changed, as far as is known.
    before: Value,
    /// Changed, and not known to be pushed.
    is_dirty: bool,
}

impl Copy {
    /// Takes over a newer value, unless it has changed it itself.
    fn see(&mut self, value: Value) {
        if value.version >= self.before.version {
            self.before = value;
        }
        if !self.is_dirty && value.version >= self.value.version {
            self.value = value;
        }
    }

    fn write(&mut self, number: u64) {
        (self.value.number, self.is_dirty) = (number, true);
    }

    /// A change has got through, and this is what it has become.
    fn settle(&mut self, value: Value) {
        self.see(value);
        if self.is_dirty && self.value.number == value.number {
            (self.value, self.is_dirty) = (self.before, false);
        }
    }

    /// The change will never get through.
    fn undo(&mut self) {
        (self.value, self.is_dirty) = (self.before, false);
    }
}

/// As many leases it remembers having been given.
const GIVEN_MAX: usize = 16;
/// Sessions after a restart have numbers greater than any before.
const SESSIONS_PER_START: u64 = 1 << 32;

impl<T: Tamper> User<T> {
    pub(crate) fn new(
        place: Rc<Place>,
        terms: Terms,
        habit: Habit,
        rng: Rng,
        tamper: T,
    ) -> User<T> {
        User {
            copies: vec![Copy::default(); place.leaves.len()],
            place,
            terms,
            act_at: habit.is_active().then_some(Instant::START),
            habit,
            rng,
            holder: Holder::new(terms, 1),
            starts: 0,
            session: 0,
            given: Vec::new(),
            held: BTreeMap::new(),
            needs: Vec::new(),
            errands: Vec::new(),
            token_next: 1,
            outputs: Vec::new(),
            tamper,
        }
    }

    /// What it believes to know of a leaf at this moment of its clock.
    pub(crate) fn knows(&self, now: Instant, leaf: Leaf) -> Knowledge {
        self.holder.knows(self.tamper.belief_now(now), &self.place.leaves[leaf])
    }

    /// What it believes of the others' booleans.
    pub(crate) fn knows_others(&self, now: Instant, leaf: Leaf) -> Option<bool> {
        self.holder.knows_others(self.tamper.belief_now(now), &self.place.leaves[leaf])
    }

    /// Its own boolean.
    pub(crate) fn own(&self, leaf: Leaf) -> bool {
        self.holder.own(&self.place.leaves[leaf])
    }

    /// The session that it last spoke in.
    pub(crate) fn session(&self) -> u64 {
        self.session
    }

    /// How many requests are not answered.
    pub(crate) fn need_count(&self) -> usize {
        self.needs.len()
    }

    /// Stops wanting anything new.
    pub(crate) fn rest(&mut self) {
        self.habit.is_resting = true;
    }

    pub(crate) fn deliver(&mut self, now: Instant, message: Message, out: &mut Out<T>) {
        match message {
            Message::Down(message, values) => {
                let Some(message) = self.tamper.learnt(now, message) else { return };
                let grants = self.remember(&message.body);
                for (leaf, value) in values {
                    self.copies[leaf].see(value);
                }
                self.step(now, Input::Heard(message), out);
                self.accept(grants);
                out.note(Note::Heard);
            }
            Message::Pushed { token, outcome } => self.on_pushed(now, token, &outcome, out),
            Message::Up(_) | Message::Push { .. } => {}
        }
    }

    pub(crate) fn wake(&mut self, now: Instant, out: &mut Out<T>) {
        if self.holder.wake_at().is_some_and(|at| at <= now) {
            let truths = self.truths();
            self.holder.tick(now, &mut self.outputs);
            self.note_loss(truths, out);
            self.follow(now, out);
        }
        self.run_errands(now, out);
        if self.act_at.is_some_and(|at| at <= now) {
            self.act(now, out);
            self.act_at = Some(now + self.habit.draw_gap(&mut self.rng, &self.terms));
        }
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let errands = self.errands.iter().map(|errand| errand.due_at).min();
        [self.holder.wake_at(), errands, self.act_at].into_iter().flatten().min()
    }

    pub(crate) fn restart(&mut self, now: Instant, out: &mut Out<T>) {
        out.mark("a client starts again");
        out.note(Note::Restarted(self.truths()));
        self.starts += 1;
        self.holder = Holder::new(self.terms, self.starts * SESSIONS_PER_START);
        self.needs.clear();
        self.forget();
        self.act_at = self.act_at.map(|_| now + Duration::from_nanos(1));
    }

    /// Asks for these.
    pub(crate) fn need(
        &mut self,
        now: Instant,
        wants: Vec<Want>,
        together: bool,
        out: &mut Out<T>,
    ) -> u64 {
        let request = self.holder.request_next();
        self.needs.push(request);
        out.note(Note::Needed(request));
        self.step(now, Input::Need { wants, together }, out);
        request
    }

    /// Changes its own boolean, if it may.
    pub(crate) fn set(&mut self, now: Instant, leaf: Leaf, value: bool, out: &mut Out<T>) -> bool {
        let belief_now = self.tamper.belief_now(now);
        let may = self.holder.set(belief_now, &self.place.leaves[leaf], value);
        if may {
            out.note(Note::Set(leaf));
        }
        may
    }

    fn step(&mut self, now: Instant, input: Input, out: &mut Out<T>) {
        let truths = match &input {
            Input::Heard(_) => self.truths(),
            _ => Vec::new(),
        };
        self.holder.step(now, input, &mut self.outputs);
        self.note_loss(truths, out);
        self.follow(now, out);
    }

    /// A loss takes booleans away and says nothing about them: these were true before.
    fn note_loss(&mut self, truths: Vec<Leaf>, out: &mut Out<T>) {
        if self.outputs.contains(&Output::Lost) {
            if self.copies.iter().any(|copy| copy.is_dirty) {
                out.mark("changes are lost with their session");
            }
            out.note(Note::Lost(truths));
            self.forget();
        }
    }

    /// Does what the holder wants done.
    fn follow(&mut self, now: Instant, out: &mut Out<T>) {
        while !self.outputs.is_empty() {
            let mut outputs = std::mem::take(&mut self.outputs);
            for output in outputs.drain(..) {
                match output {
                    Output::Send(message) => {
                        self.session = message.session;
                        if let Up::Return { returns, .. } = &message.body {
                            returns.iter().for_each(|returned| self.give_back(returned, out));
                        }
                        for message in self.tamper.told(now, message) {
                            out.send(SERVER, Message::Up(message));
                        }
                    }
                    Output::Met(request) => {
                        self.needs.retain(|need| *need != request);
                        out.note(Note::Met(request));
                    }
                    Output::Refused(request, _) => {
                        self.needs.retain(|need| *need != request);
                        out.note(Note::Refused(request));
                    }
                    Output::Push { lease, kind, part } => {
                        self.take_errand(now, Some((lease, kind)), part);
                    }
                    Output::Lost => {}
                }
            }
            // Errands that are due at once may have made the holder say more.
            if self.outputs.is_empty() {
                self.outputs = outputs;
            }
            self.run_errands(now, out);
        }
    }

    /// Notes what depends on something that the holder had and gives back now. A return of what it has
    /// not, because its grant was overtaken or it went back before, gives up nothing.
    fn give_back(&mut self, returned: &Return, out: &mut Out<T>) {
        let key = (returned.lease.clone(), is_other(returned.kind));
        let Some(parts) = self.held.get_mut(&key) else { return };
        if parts.iter().any(|part| part.contains(&returned.part)) {
            return;
        }
        if returned.part != returned.lease {
            parts.push(returned.part.clone());
        } else if !returned.kept {
            self.held.remove(&key);
        }
        for leaf in self.place.within(&returned.part) {
            if self.copies[leaf].is_dirty {
                out.note(Note::Abandoned(leaf, returned.serial));
            }
        }
    }

    fn truths(&self) -> Vec<Leaf> {
        (0..self.place.leaves.len()).filter(|&leaf| self.own(leaf)).collect()
    }

    /// Everything that depended on leases is gone.
    fn forget(&mut self) {
        self.copies.fill(Copy::default());
        self.errands.clear();
        self.given.clear();
        self.held.clear();
    }

    fn remember(&mut self, body: &Down) -> Vec<Grant> {
        let Down::Granted { grants, .. } = body else { return Vec::new() };
        for grant in grants {
            let lease = (grant.scope.clone(), grant.kind);
            if self.given.len() < GIVEN_MAX && !self.given.contains(&lease) {
                self.given.push(lease);
            }
        }
        grants.clone()
    }

    /// Notes which of these the holder has accepted.
    fn accept(&mut self, grants: Vec<Grant>) {
        for Grant { scope, kind, serial, except, .. } in grants {
            if self.holder.serial(&scope, kind) == Some(serial) {
                self.held.insert((scope, is_other(kind)), except);
            }
        }
    }
}

fn is_other(kind: Kind) -> bool {
    kind == Kind::OtherRead
}
