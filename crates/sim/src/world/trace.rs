//! The last things that happened, in words, for whoever looks into a failing seed.

use std::{collections::VecDeque, fmt::Debug};

use base::Instant;

use crate::{Actor, Kind, Node, World, network::Fate};

/// As many lines as will be shown.
pub(super) struct Trace {
    lines: VecDeque<String>,
    lines_max: usize,
}

impl<A: Actor> World<A> {
    /// Keeps the last things that happen, in words. Slow.
    pub fn keep_trace(&mut self, lines_max: usize) {
        self.trace = Some(Trace { lines: VecDeque::new(), lines_max });
    }

    /// The last things that happened, if they were kept.
    pub fn trace(&self) -> impl Iterator<Item = &str> {
        self.trace.iter().flat_map(|trace| trace.lines.iter().map(String::as_str))
    }
}

impl Trace {
    pub(super) fn deliver(
        &mut self,
        at: Instant,
        local: Instant,
        from: Node,
        to: Node,
        message: &impl Debug,
    ) {
        self.push(format!("{at} {to} (at {local}) hears {from}: {message:?}"));
    }

    pub(super) fn send(
        &mut self,
        at: Instant,
        from: Node,
        to: Node,
        fate: Fate,
        message: &impl Debug,
    ) {
        self.push(format!("{at} {from} tells {to} ({fate:?}): {message:?}"));
    }

    pub(super) fn happen(&mut self, at: Instant, local: Instant, node: Node, kind: Kind) {
        self.push(format!("{at} {node} (at {local}) {kind:?}"));
    }

    pub(super) fn notes<N: Debug>(&mut self, at: Instant, node: Node, notes: &[N]) {
        for note in notes {
            self.push(format!("{at} {node} {note:?}"));
        }
    }

    fn push(&mut self, line: String) {
        if self.lines.len() == self.lines_max {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}
