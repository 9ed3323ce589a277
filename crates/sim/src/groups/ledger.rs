//! What this world knows and no machine does: who is at fault, and what an authority would vouch for.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use base::PublicKey;
use group::{Roll, Seat, Tip};

use crate::Node;

/// Shared by all nodes of a world.
pub(crate) type Shared = Rc<RefCell<Ledger>>;

#[derive(Debug)]
pub(crate) struct Ledger {
    /// The machines that are to sit here, one circle after another.
    circles: Vec<BTreeSet<Node>>,
    /// Which of them sits here now, and which is wanted.
    circle: usize,
    wanted: usize,
    /// The key of each machine.
    keys: Vec<PublicKey>,
    /// Who lies.
    liars: BTreeSet<Node>,
    /// Whether whoever was alone at first is two, and decides different things for different newcomers.
    is_founder_two: bool,
    /// Who has lost what it said, and the height at which that does not matter any more.
    amnesiacs: BTreeMap<Node, Amnesia>,
    /// Seats that machines have taken, or want to.
    seats: BTreeSet<Seat>,
    /// What the decisions so far have led to.
    pub(crate) tip: Tip,
    /// How everything began, and how often the members have changed since.
    first: (Tip, Rc<[u8]>),
    changes: usize,
    /// The state when the members became who they are, and when that was.
    began: (Tip, Rc<[u8]>),
}

#[derive(Debug)]
enum Amnesia {
    /// Until this seat is taken.
    Seat(Seat),
    /// Until this height is decided.
    Height(u64),
}

impl Ledger {
    /// Machines with these keys, of which the first circle sits here at first.
    pub(crate) fn new(
        circles: Vec<BTreeSet<Node>>,
        keys: Vec<PublicKey>,
        state: Rc<[u8]>,
        liars: BTreeSet<Node>,
        is_founder_two: bool,
    ) -> Shared {
        let seat = |node: &Node| Seat { key: keys[node.index()], incarnation: 0 };
        let first = circles.first().into_iter().flatten().map(seat).collect();
        let tip = Tip::first(first).expect("there are members");
        let seats = keys.iter().map(|key| Seat { key: *key, incarnation: 0 }).collect();
        let (amnesiacs, began) = (BTreeMap::new(), (tip.clone(), state));
        let (first, changes) = (began.clone(), 0);
        let (circle, wanted) = (0, 0);
        let ledger = Ledger {
            circles,
            circle,
            wanted,
            keys,
            liars,
            is_founder_two,
            amnesiacs,
            seats,
            tip,
            first,
            changes,
            began,
        };
        Rc::new(RefCell::new(ledger))
    }

    /// From now on the next circle is to sit here, as soon as the one before it does.
    pub(crate) fn want_next(&mut self) {
        self.wanted = (self.wanted + 1).min(self.circles.len() - 1);
    }

    /// Whether it was ever wanted that others sit here than at first.
    pub(crate) fn is_changing(&self) -> bool {
        self.wanted > 0
    }

    /// The machines that are to sit here, by their keys.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = PublicKey> {
        let circle = &self.circles[self.wanted.min(self.circle + 1)];
        circle.iter().map(|node| self.keys[node.index()])
    }

    /// Whether this machine is to sit here in the end.
    pub(crate) fn is_wanted(&self, node: Node) -> bool {
        self.circles[self.wanted].contains(&node)
    }

    /// Whether this machine sits here, or is to.
    pub(crate) fn may_sit(&self, node: Node) -> bool {
        self.circles[self.circle..].iter().any(|circle| circle.contains(&node))
    }

    /// How many machines there are.
    pub(crate) fn machines(&self) -> u16 {
        self.keys.len() as u16
    }

    /// Whether another disk may be lost: not if too many are at fault then, now or in a circle to come.
    pub(crate) fn may_fail(&self, node: Node) -> bool {
        let is_at_fault = |node: &Node| self.liars.contains(node) || self.is_amnesiac(*node);
        let mut circles = self.circles[self.circle..].iter().filter(|one| one.contains(&node));
        !is_at_fault(&node)
            && circles.all(|circle| {
                circle.iter().filter(|node| is_at_fault(node)).count() < liars_max(circle.len())
            })
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
            self.changes += 1;
            let next = self.circles.get(self.circle + 1);
            self.circle += usize::from(next.is_some_and(|next| self.is_circle(next, &tip.seats)));
        }
        self.amnesiacs.retain(|_, amnesia| match amnesia {
            Amnesia::Seat(seat) => tip.seats.binary_search(seat).is_err(),
            Amnesia::Height(height) => tip.height <= *height,
        });
        self.tip = tip;
    }

    /// Whether these are the machines of a circle.
    fn is_circle(&self, circle: &BTreeSet<Node>, seats: &[Seat]) -> bool {
        let keys: BTreeSet<_> = circle.iter().map(|node| self.keys[node.index()]).collect();
        seats.len() == keys.len() && seats.iter().all(|seat| keys.contains(&seat.key))
    }

    /// Whether some honest member may wish that these be the members.
    pub(crate) fn may_wish(&self, seats: &[Seat]) -> bool {
        let last = self.wanted.min(self.circle + 1);
        seats.iter().all(|seat| self.seats.contains(seat))
            && self.circles[self.circle..=last].iter().any(|one| self.is_circle(one, seats))
    }

    /// What somebody can start from who knows nothing else: who sat here at first, or who does now, if so much
    /// has changed that nobody can show all of it.
    pub(crate) fn start(&self) -> (Tip, Rc<[u8]>) {
        let shown = self.tip.lineage.changes().len() + usize::from(self.tip.unproven.is_some());
        if shown == self.changes { self.first.clone() } else { self.began.clone() }
    }

    /// Whether the members were others when somebody was last told something new.
    pub(crate) fn is_lost(&self, tip: &Tip) -> bool {
        self.began.0.epoch > tip.epoch && self.tip.seats != tip.seats
    }

    /// Whether whoever was alone at first lies: newcomers that know of nobody else have what it tells them.
    pub(crate) fn has_lying_founder(&self) -> bool {
        matches!(&self.first.0.seats[..], [founder] if self.is_liar(founder))
    }

    /// Whether that one decides different things for different newcomers while it is alone.
    pub(crate) fn is_founder_two(&self) -> bool {
        self.is_founder_two
    }

    /// Whether it is still alone. What it decides then, and whom it lets come, is its own business.
    pub(crate) fn is_at_a_liars_mercy(&self) -> bool {
        matches!(&self.tip.seats[..], [founder] if self.is_liar(founder))
    }

    fn is_liar(&self, seat: &Seat) -> bool {
        self.liars.iter().any(|node| self.keys[node.index()] == seat.key)
    }

    /// One of those who sit here invites a machine: what that machine starts from, and whether it may be misled. It
    /// is told of those who sit here, or by a founder who lies of that one alone.
    pub(crate) fn invite(&self, pick: u64) -> (Tip, Rc<[u8]>, bool) {
        let inviter = self.tip.seats[(pick % self.tip.seats.len() as u64) as usize];
        let is_misled = self.has_lying_founder() && self.first.0.seats == [inviter];
        let (first, state) = self.first.clone();
        let pinned = Tip::pinned(&self.roll()).filter(|_| !is_misled).unwrap_or(first);
        (pinned, state, is_misled)
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

/// How many of so many may be at fault.
pub(crate) fn liars_max(count: usize) -> usize {
    count.saturating_sub(1) / 3
}
