//! Habits: how often a user acts, on what, and how.

use base::{Duration, Instant, Rng};
use lease::{Field, Kind, Knowledge, Terms, holder::Input, message::Want};

use crate::leases::{
    actor::{Note, Out},
    place::{Leaf, Place},
    tamper::Tamper,
};

use super::User;

/// What a user is like.
#[derive(Clone, Debug)]
pub(crate) struct Habit {
    /// How long it takes on average until it acts again; zero for never.
    pub(crate) pace: Duration,
    /// What it mostly uses.
    pub(crate) favourites: Vec<Leaf>,
    /// How often it uses something else.
    pub(crate) wandering: f64,
    /// How often it changes what it uses.
    pub(crate) changing: f64,
    /// How often it wants more than a single field.
    pub(crate) greed: f64,
    /// How often it gives something back, or pushes, on its own account.
    pub(crate) order: f64,
    /// How often it takes a long break.
    pub(crate) breaks: f64,
    /// The longest that a push takes.
    pub(crate) push_max: Duration,
    /// Wants nothing new.
    pub(crate) is_resting: bool,
}

/// As many requests it has open at once.
pub(crate) const NEEDS_MAX: usize = 3;
/// As many wants it puts into one request.
pub(crate) const BUNDLE_MAX: usize = 3;

impl Habit {
    /// Never acts on its own account, and pushes at once.
    #[cfg(test)]
    pub(crate) fn idle() -> Habit {
        Habit {
            pace: Duration::ZERO,
            favourites: Vec::new(),
            wandering: 0.0,
            changing: 0.0,
            greed: 0.0,
            order: 0.0,
            breaks: 0.0,
            push_max: Duration::ZERO,
            is_resting: false,
        }
    }

    pub(crate) fn draw(place: &Place, pace: Duration, rng: &mut Rng) -> Habit {
        let count = 1 + rng.index(4);
        Habit {
            pace: pace.mul_f64(0.5 + rng.unit()),
            favourites: (0..count).map(|_| rng.index(place.leaves.len())).collect(),
            wandering: *rng.pick(&[0.02, 0.1, 0.5]),
            changing: *rng.pick(&[0.0, 0.1, 0.3, 0.8]),
            greed: *rng.pick(&[0.0, 0.2, 0.5]),
            order: *rng.pick(&[0.0, 0.002, 0.02]),
            breaks: *rng.pick(&[0.0, 0.0005, 0.005]),
            push_max: Duration::from_millis(*rng.pick(&[0, 10, 500, 3_000])),
            is_resting: false,
        }
    }

    pub(super) fn is_active(&self) -> bool {
        !self.pace.is_zero()
    }

    pub(super) fn draw_gap(&self, rng: &mut Rng, terms: &Terms) -> Duration {
        let gap = match rng.chance(self.breaks) {
            true => terms.session.mul_f64(3.0 * rng.unit()),
            false => self.pace.mul_f64(2.0 * rng.unit()),
        };
        gap.max(Duration::from_nanos(1))
    }

    pub(super) fn draw_push(&self, rng: &mut Rng) -> Duration {
        self.push_max.mul_f64(rng.unit())
    }
}

impl<T: Tamper> User<T> {
    /// Does one thing.
    pub(super) fn act(&mut self, now: Instant, out: &mut Out<T>) {
        if self.habit.order > 0.0 && self.rng.chance(self.habit.order) {
            return self.tidy_up(now, out);
        }
        let leaf = match self.habit.favourites.is_empty() || self.rng.chance(self.habit.wandering) {
            true => self.rng.index(self.place.leaves.len()),
            false => *self.rng.pick(&self.habit.favourites),
        };
        let changes = self.rng.chance(self.habit.changing);
        let is_known = match (self.place.is_disjunctive(leaf), changes) {
            (false, false) => self.read(now, leaf, out),
            (false, true) => self.write(now, leaf, out),
            (true, false) => self.look(now, leaf, out),
            (true, true) => {
                let value = !self.own(leaf);
                self.set(now, leaf, value, out)
            }
        };
        if is_known {
            self.holder.touch(now);
        } else if !self.habit.is_resting && self.needs.len() < NEEDS_MAX {
            self.want(now, leaf, changes, out);
        }
    }

    fn read(&mut self, now: Instant, leaf: Leaf, out: &mut Out<T>) -> bool {
        let knowledge = self.knows(now, leaf);
        let copy = &self.copies[leaf];
        match knowledge {
            Knowledge::None => return false,
            // Its right to change it is on the way back, or has expired; what became of the change
            // must be found out.
            Knowledge::Reads if copy.is_dirty => {
                out.mark("a change outlives its lease");
                self.sync(now);
            }
            Knowledge::Writes if copy.is_dirty => {}
            Knowledge::Reads | Knowledge::Writes => out.note(Note::Read(leaf, copy.value.number)),
        }
        true
    }

    fn write(&mut self, now: Instant, leaf: Leaf, out: &mut Out<T>) -> bool {
        let may = self.knows(now, leaf) == Knowledge::Writes;
        if may {
            self.copies[leaf].write(self.rng.next_u64());
            out.note(Note::Wrote(leaf));
        }
        may
    }

    fn look(&mut self, now: Instant, leaf: Leaf, out: &mut Out<T>) -> bool {
        let others = self.knows_others(now, leaf);
        if let Some(others) = others {
            out.mark(if others { "another has it open" } else { "nobody else has it open" });
            out.note(Note::Looked(leaf));
        }
        others.is_some()
    }

    fn want(&mut self, now: Instant, leaf: Leaf, changes: bool, out: &mut Out<T>) {
        let mut wants = vec![self.draw_want(leaf, changes)];
        while wants.len() < BUNDLE_MAX && self.rng.chance(self.habit.greed / 2.0) {
            let leaf = self.rng.index(self.place.leaves.len());
            let changes = self.rng.chance(self.habit.changing);
            wants.push(self.draw_want(leaf, changes));
        }
        let together = self.rng.chance(0.5);
        if wants.len() > 1 {
            out.mark(if together { "a bundle is wanted whole" } else { "a bundle may be split" });
        }
        self.need(now, wants, together, out);
    }

    /// A leaf, or something wider around it.
    fn draw_want(&mut self, leaf: Leaf, changes: bool) -> Want {
        let place = &self.place;
        let kind = if changes { place.change(leaf) } else { place.look(leaf) };
        let scope = &place.leaves[leaf];
        if self.rng.chance(self.habit.greed) {
            let wide = self.rng.pick(&place.wides);
            // Only a write of something wide says anything about the booleans in it.
            if wide.contains(scope) && (wide.field != Field::Tree || self.rng.chance(0.3)) {
                let is_plain = matches!(kind, Kind::Read);
                return Want {
                    scope: wide.clone(),
                    kind: if is_plain { Kind::Read } else { Kind::Write },
                };
            }
        }
        Want { scope: scope.clone(), kind }
    }

    fn tidy_up(&mut self, now: Instant, out: &mut Out<T>) {
        if self.given.is_empty() || self.rng.chance(0.5) {
            self.sync(now);
            return self.run_errands(now, out);
        }
        let index = self.rng.index(self.given.len());
        let (lease, kind) = self.given.swap_remove(index);
        out.mark("a lease is given back unasked");
        self.step(now, Input::Done { lease, kind }, out);
    }
}
