//! A world: nodes, their clocks, the network between them and what will happen next.

mod calamity;
mod trace;

use std::collections::VecDeque;

use base::{Digest, Instant, Rng};

use crate::{
    Actor, Broken, Checker, Clock, Counts, Faults, Kind, Marks, Node, Outbox, Violation,
    fold::Fold,
    network::{Fate, Network, Split},
    queue::Queue,
};

use self::trace::Trace;

/// Everything there is. Equal seeds give equal histories.
pub struct World<A: Actor> {
    now: Instant,
    nodes: Vec<Slot<A>>,
    network: Network,
    faults: Faults,
    /// Counted up when the world heals: calamities of an earlier age are over.
    age: u32,
    queue: Queue<Event<A::Message>>,
    out: Outbox<A>,
    /// Draws the fate of messages.
    network_rng: Rng,
    /// Draws calamities, so that they do not shift when a node says more.
    calamity_rng: Rng,
    fold: Fold,
    counts: Counts,
    trace: Option<Trace>,
}

struct Slot<A: Actor> {
    actor: A,
    clock: Clock,
    state: State,
    /// What arrived while it stood still. At most [`BACKLOG_MAX`].
    backlog: VecDeque<(Node, A::Message)>,
    /// The next wake in the queue that counts; others of this node are stale.
    wake: Option<Instant>,
    /// When the node wants to be woken, on its own clock. Not before that wake.
    due_at: Option<Instant>,
    /// How often it was woken at this very moment.
    wakes_at_once: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    /// Stands still, as after SIGSTOP or with the lid closed: nothing is lost.
    Paused,
    /// Is off: what arrives is lost.
    Down,
}

enum Event<M> {
    Deliver { from: Node, to: Node, message: M },
    Wake(Node),
    Calamity(Kind, u32),
    Relief(Node, u32),
    Mend(Box<Split>, u32),
}

/// As many messages wait for a node that stands still; more are lost, as in a full socket.
const BACKLOG_MAX: usize = 1_024;
/// A node that is woken this often without time passing is stuck.
const WAKES_AT_ONCE_MAX: u32 = 1_000;

impl<A: Actor> World<A> {
    /// A world that begins now, with these nodes in it.
    pub fn new(faults: Faults, nodes: Vec<(A, Clock)>, marks: Marks, rng: &mut Rng) -> World<A> {
        let mut network_rng = rng.fork();
        let network = Network::new(nodes.len(), &faults, &mut network_rng);
        let slot = |(actor, clock)| Slot {
            actor,
            clock,
            state: State::Up,
            backlog: VecDeque::new(),
            wake: None,
            due_at: None,
            wakes_at_once: 0,
        };
        let mut world = World {
            now: Instant::START,
            nodes: nodes.into_iter().map(slot).collect(),
            network,
            faults,
            age: 0,
            queue: Queue::new(),
            out: Outbox::new(marks),
            network_rng,
            calamity_rng: rng.fork(),
            fold: Fold::new(),
            counts: Counts::default(),
            trace: None,
        };
        for node in 0..world.nodes.len() {
            world.schedule_wake(Node(node as u16));
        }
        world.begin_calamities();
        world
    }

    /// The world's time. No node sees it.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// What this node's clock shows.
    pub fn local(&self, node: Node) -> Instant {
        self.nodes[node.index()].clock.local(self.now)
    }

    /// Who acts there.
    pub fn actor(&self, node: Node) -> &A {
        &self.nodes[node.index()].actor
    }

    /// Tells a node something from outside the world. That is no event, but what it does then is.
    pub fn tell<R>(
        &mut self,
        node: Node,
        what: impl FnOnce(&mut A, Instant, &mut Outbox<A>) -> R,
    ) -> R {
        let slot = &mut self.nodes[node.index()];
        let answer = what(&mut slot.actor, slot.clock.local(self.now), &mut self.out);
        self.follow_up(node);
        answer
    }

    /// Every node.
    pub fn nodes(&self) -> impl Iterator<Item = Node> + use<A> {
        (0..self.nodes.len() as u16).map(Node)
    }

    /// Whether the node runs: is neither paused nor down.
    pub fn is_up(&self, node: Node) -> bool {
        self.nodes[node.index()].state == State::Up
    }

    /// What the last node that acted told the checkers.
    pub fn notes(&self) -> &[A::Note] {
        &self.out.notes
    }

    /// What happened so far, in one number.
    pub fn digest(&self) -> Digest {
        self.fold.finish()
    }

    /// How often each kind of thing happened so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The marks that nodes have passed.
    pub fn marks(&self) -> &Marks {
        &self.out.marks
    }

    /// How much is still to happen.
    pub fn pending(&self) -> usize {
        self.queue.len()
    }

    /// Runs until this moment, or until something is broken.
    pub fn run_until(
        &mut self,
        until: Instant,
        checker: &mut impl Checker<A>,
    ) -> Result<(), Violation> {
        while let Some((at, event)) = self.queue.pop(until) {
            self.now = at;
            self.out.notes.clear();
            let acted = self.perform(event).and_then(|actor| match actor {
                Some(node) => checker.check(self, node),
                None => Ok(()),
            });
            acted.map_err(|broken| Violation { broken, at })?;
        }
        self.now = until;
        Ok(())
    }

    /// Lets one event happen. Answers who acted.
    fn perform(&mut self, event: Event<A::Message>) -> Result<Option<Node>, Broken> {
        match event {
            Event::Deliver { from, to, message } => Ok(self.on_deliver(from, to, message)),
            Event::Wake(node) => self.on_wake(node),
            Event::Calamity(kind, age) if age == self.age => {
                self.on_calamity(kind);
                Ok(None)
            }
            Event::Relief(node, age) if age == self.age => Ok(self.on_relief(node)),
            Event::Mend(split, age) if age == self.age => {
                self.on_mend(&split);
                Ok(None)
            }
            Event::Calamity(..) | Event::Relief(..) | Event::Mend(..) => Ok(None),
        }
    }

    fn on_deliver(&mut self, from: Node, to: Node, message: A::Message) -> Option<Node> {
        let slot = &mut self.nodes[to.index()];
        match slot.state {
            State::Up => {}
            State::Paused if slot.backlog.len() < BACKLOG_MAX => {
                slot.backlog.push_back((from, message));
                return None;
            }
            State::Paused | State::Down => {
                self.counts[Kind::Missed] += 1;
                return None;
            }
        }
        self.counts[Kind::Deliver] += 1;
        self.fold.event(self.now, to.0, Kind::Deliver as u8, &(from, &message));
        let local = slot.clock.local(self.now);
        if let Some(trace) = &mut self.trace {
            trace.deliver(self.now, local, from, to, &message);
        }
        slot.actor.deliver(local, from, message, &mut self.out);
        self.follow_up(to);
        Some(to)
    }

    fn on_wake(&mut self, node: Node) -> Result<Option<Node>, Broken> {
        let slot = &mut self.nodes[node.index()];
        if slot.wake != Some(self.now) {
            return Ok(None); // Stale: an earlier one came in between.
        }
        slot.wake = None;
        if slot.state != State::Up {
            return Ok(None);
        }
        let local = slot.clock.local(self.now);
        if slot.due_at.is_none_or(|at| at > local) {
            self.schedule_wake(node);
            return Ok(None);
        }
        self.counts[Kind::Wake] += 1;
        self.fold.event(self.now, node.0, Kind::Wake as u8, &());
        if let Some(trace) = &mut self.trace {
            trace.happen(self.now, local, node, Kind::Wake);
        }
        slot.actor.wake(local, &mut self.out);
        self.follow_up(node);
        let slot = &mut self.nodes[node.index()];
        slot.wakes_at_once = if slot.wake == Some(self.now) { slot.wakes_at_once + 1 } else { 0 };
        match slot.wakes_at_once < WAKES_AT_ONCE_MAX {
            true => Ok(Some(node)),
            false => Err(Broken::new("wake", format!("{node} is woken without end"))),
        }
    }

    /// Does what a node wanted done.
    fn follow_up(&mut self, from: Node) {
        if let Some(trace) = &mut self.trace {
            trace.notes(self.now, from, &self.out.notes);
        }
        let mut sends = std::mem::take(&mut self.out.sends);
        for (to, message) in sends.drain(..) {
            let fate = self.network.fate(from, to, &self.faults, &mut self.network_rng);
            if let Some(trace) = &mut self.trace {
                trace.send(self.now, from, to, fate, &message);
            }
            match fate {
                Fate::Cut => self.counts[Kind::Cut] += 1,
                Fate::Lost => self.counts[Kind::Lost] += 1,
                Fate::Once(after) => {
                    self.queue.push(self.now + after, Event::Deliver { from, to, message });
                }
                Fate::Twice(after, again) => {
                    let copy = Event::Deliver { from, to, message: message.clone() };
                    self.queue.push(self.now + again, copy);
                    self.queue.push(self.now + after, Event::Deliver { from, to, message });
                }
            }
        }
        self.out.sends = sends;
        self.schedule_wake(from);
    }

    fn schedule_wake(&mut self, node: Node) {
        let slot = &mut self.nodes[node.index()];
        let before = std::mem::replace(&mut slot.due_at, slot.actor.wake_at());
        if slot.wake.is_some() && slot.due_at == before {
            return;
        }
        let Some(at) = slot.due_at.and_then(|local| slot.clock.world(local)) else { return };
        let at = at.max(self.now);
        // A wake that comes too early does no harm: it schedules the right one.
        if slot.wake.is_none_or(|known| at < known) {
            slot.wake = Some(at);
            self.queue.push(at, Event::Wake(node));
        }
    }
}
