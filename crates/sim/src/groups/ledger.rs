//! What this world knows and no machine does: who is at fault, and what an authority would vouch for.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use group::{Roll, Seat, Tip};

use crate::Node;

/// Shared by all nodes of a world.
pub(crate) type Shared = Rc<RefCell<Ledger>>;

#[derive(Debug)]
pub(crate) struct Ledger {
    /// How many may be at fault at once.
    faults_max: usize,
    /// Who lies.
    liars: BTreeSet<Node>,
    /// Who has lost what it said, and the height at which that does not matter any more.
    amnesiacs: BTreeMap<Node, Amnesia>,
    /// Seats that machines have taken, or want to.
    seats: BTreeSet<Seat>,
    /// What the decisions so far have led to.
    pub(crate) tip: Tip,
    /// The state when the members became who they are, and when that was.
    pub(crate) began: (Tip, Rc<[u8]>),
}

#[derive(Debug)]
enum Amnesia {
    /// Until this seat is taken.
    Seat(Seat),
    /// Until this height is decided.
    Height(u64),
}

impl Ledger {
    pub(crate) fn new(tip: Tip, state: Rc<[u8]>, liars: BTreeSet<Node>) -> Shared {
        let faults_max = tip.members().faults();
        let seats = tip.seats.iter().copied().collect();
        let (amnesiacs, began) = (BTreeMap::new(), (tip.clone(), state));
        Rc::new(RefCell::new(Ledger { faults_max, liars, amnesiacs, seats, tip, began }))
    }

    /// Whether another disk may be lost.
    pub(crate) fn may_fail(&self, node: Node) -> bool {
        !self.liars.contains(&node)
            && !self.amnesiacs.contains_key(&node)
            && self.liars.len() + self.amnesiacs.len() < self.faults_max
    }

    /// A machine has forgotten what it said, up to this height.
    pub(crate) fn on_forgot(&mut self, node: Node, height: u64) {
        self.amnesiacs.insert(node, Amnesia::Height(height));
    }

    /// A machine begins anew, and is as good as any when it sits here.
    pub(crate) fn on_new_seat(&mut self, node: Node, seat: Seat) {
        self.amnesiacs.insert(node, Amnesia::Seat(seat));
        self.seats.insert(seat);
    }

    /// Something was decided for the first time.
    pub(crate) fn on_decided(&mut self, tip: Tip, state: impl FnOnce() -> Rc<[u8]>) {
        if tip.epoch != self.tip.epoch {
            self.began = (tip.clone(), state());
        }
        self.amnesiacs.retain(|_, amnesia| match amnesia {
            Amnesia::Seat(seat) => tip.seats.binary_search(seat).is_err(),
            Amnesia::Height(height) => tip.height <= *height,
        });
        self.tip = tip;
    }

    /// Whether some honest member may wish that these be the members: each machine keeps its place.
    pub(crate) fn may_wish(&self, seats: &[Seat]) -> bool {
        let keys = |seats: &[Seat]| seats.iter().map(|seat| seat.key).collect::<BTreeSet<_>>();
        seats.iter().all(|seat| self.seats.contains(seat))
            && seats.len() == self.tip.seats.len()
            && keys(seats) == keys(&self.tip.seats)
    }

    /// Who sits in the group, as an authority would say.
    pub(crate) fn roll(&self) -> Roll {
        Roll::from(&self.tip)
    }

    /// Whether this machine may say two things at once.
    pub(crate) fn is_amnesiac(&self, node: Node) -> bool {
        self.amnesiacs.contains_key(&node)
    }
}
