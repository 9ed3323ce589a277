//! Who acts in a world: driven only by what arrives and by its own clock.

use std::{
    fmt::{self, Debug},
    hash::Hash,
};

use base::Instant;

use crate::Marks;

/// A node's place in its world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u16);

impl Node {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

/// What a node does. Every `now` is of its own clock and never runs backwards.
pub trait Actor {
    /// What nodes say to each other.
    type Message: Clone + Debug + Hash;
    /// What it tells the checkers about its deeds.
    type Note: Debug;

    /// A message arrives.
    fn deliver(&mut self, now: Instant, from: Node, message: Self::Message, out: &mut Outbox<Self>);

    /// It is time for what it said in `wake_at`. Afterwards that must lie in the future.
    fn wake(&mut self, now: Instant, out: &mut Outbox<Self>);

    /// When it next wants to be woken.
    fn wake_at(&self) -> Option<Instant>;

    /// It has crashed, and starts with what it had kept on disk.
    fn restart(&mut self, now: Instant, out: &mut Outbox<Self>);
}

/// Where a node puts what it wants done.
#[derive(Debug)]
pub struct Outbox<A: Actor + ?Sized> {
    pub(crate) sends: Vec<(Node, A::Message)>,
    pub(crate) notes: Vec<A::Note>,
    pub(crate) marks: Marks,
}

impl<A: Actor + ?Sized> Outbox<A> {
    /// An empty one that counts these marks.
    pub fn new(marks: Marks) -> Outbox<A> {
        Outbox { sends: Vec::new(), notes: Vec::new(), marks }
    }

    /// Sends a message.
    pub fn send(&mut self, to: Node, message: A::Message) {
        self.sends.push((to, message));
    }

    /// Tells the checkers.
    pub fn note(&mut self, note: A::Note) {
        self.notes.push(note);
    }

    /// Passes a mark.
    pub fn mark(&mut self, name: &'static str) {
        self.marks.pass(name);
    }
}
