//! Calamities: nodes that stand still or crash, links that are cut; and the end of them all.

use base::Duration;

use crate::{
    Actor, Kind, Node, World,
    faults::{draw_gap, draw_span},
    network::Split,
};

use super::{Event, State};

impl<A: Actor> World<A> {
    /// Ends every fault at once and for good. Clocks go on being wrong, as they do.
    pub fn heal(&mut self) {
        self.faults = self.faults.healed();
        self.age += 1;
        self.network.mend_all();
        for node in self.nodes() {
            if self.nodes[node.index()].state != State::Up {
                self.queue.push(self.now, Event::Relief(node, self.age));
            }
        }
    }

    /// Lets a node stand still for this long.
    pub fn pause(&mut self, node: Node, span: Duration) {
        self.stop(node, span, Kind::Pause);
    }

    /// Crashes a node, which starts again after this long.
    pub fn crash(&mut self, node: Node, span: Duration) {
        self.stop(node, span, Kind::Crash);
    }

    pub(super) fn begin_calamities(&mut self) {
        for kind in [Kind::Pause, Kind::Crash, Kind::Split] {
            self.await_calamity(kind);
        }
    }

    fn await_calamity(&mut self, kind: Kind) {
        let gap = match kind {
            Kind::Pause => self.faults.pause_gap,
            Kind::Crash => self.faults.crash_gap,
            _ => self.faults.split_gap,
        };
        if !gap.is_zero() {
            let at = self.now + draw_gap(&mut self.calamity_rng, gap);
            self.queue.push(at, Event::Calamity(kind, self.age));
        }
    }

    pub(super) fn on_calamity(&mut self, kind: Kind) {
        let rng = &mut self.calamity_rng;
        match kind {
            Kind::Split => {
                let split = self.network.draw_split(rng);
                let span = draw_span(rng, self.faults.split_max);
                self.happen(Kind::Split, Node(0));
                self.network.cut(&split);
                self.queue.push(self.now + span, Event::Mend(Box::new(split), self.age));
            }
            _ => {
                let node = Node(rng.index(self.nodes.len()) as u16);
                let span = draw_span(rng, self.faults.pause_max);
                self.stop(node, span, kind);
            }
        }
        self.await_calamity(kind);
    }

    fn stop(&mut self, node: Node, span: Duration, kind: Kind) {
        if self.nodes[node.index()].state != State::Up {
            return;
        }
        self.happen(kind, node);
        let state = if kind == Kind::Crash { State::Down } else { State::Paused };
        self.nodes[node.index()].state = state;
        self.queue.push(self.now + span, Event::Relief(node, self.age));
    }

    /// A node goes on, or starts again.
    pub(super) fn on_relief(&mut self, node: Node) -> Option<Node> {
        let state = std::mem::replace(&mut self.nodes[node.index()].state, State::Up);
        match state {
            State::Up => None,
            State::Paused => {
                self.happen(Kind::Thaw, node);
                // What it sees first, its clock or its messages, is anybody's guess.
                let is_clock_first = self.calamity_rng.chance(0.5);
                if is_clock_first {
                    self.schedule_wake(node);
                }
                let backlog = std::mem::take(&mut self.nodes[node.index()].backlog);
                for (from, message) in backlog {
                    self.queue.push(self.now, Event::Deliver { from, to: node, message });
                }
                self.schedule_wake(node);
                None
            }
            State::Down => {
                self.happen(Kind::Restart, node);
                let slot = &mut self.nodes[node.index()];
                slot.actor.restart(slot.clock.local(self.now), &mut self.out);
                self.follow_up(node);
                Some(node)
            }
        }
    }

    pub(super) fn on_mend(&mut self, split: &Split) {
        self.happen(Kind::Mend, Node(0));
        self.network.mend(split);
    }

    fn happen(&mut self, kind: Kind, node: Node) {
        self.counts[kind] += 1;
        self.fold.event(self.now, node.0, kind as u8, &());
        let local = self.local(node);
        if let Some(trace) = &mut self.trace {
            trace.happen(self.now, local, node, kind);
        }
    }
}
