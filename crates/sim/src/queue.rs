//! What will happen, in one total order: by time, then by who came first.

use std::{cmp::Reverse, collections::BinaryHeap};

use base::Instant;

/// Events waiting for their moment.
///
/// The heap orders small keys only; the events lie still in an arena.
#[derive(Debug)]
pub(crate) struct Queue<E> {
    heap: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    arena: Vec<Option<E>>,
    free: Vec<u32>,
    sequence: u64,
}

impl<E> Queue<E> {
    pub(crate) fn new() -> Queue<E> {
        Queue { heap: BinaryHeap::new(), arena: Vec::new(), free: Vec::new(), sequence: 0 }
    }

    pub(crate) fn push(&mut self, at: Instant, event: E) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.arena.push(None);
            (self.arena.len() - 1) as u32
        });
        self.arena[slot as usize] = Some(event);
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, slot)));
    }

    /// The next event, if it is due by then.
    pub(crate) fn pop(&mut self, until: Instant) -> Option<(Instant, E)> {
        let &Reverse((at, _, slot)) = self.heap.peek()?;
        if at > until {
            return None;
        }
        self.heap.pop();
        self.free.push(slot);
        let event = self.arena[slot as usize].take();
        Some((at, event.expect("a slot in the heap is filled")))
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_by_who_came_first() {
        let mut queue = Queue::new();
        for (at, name) in [(5, "late"), (1, "first"), (3, "one"), (3, "two"), (3, "three")] {
            queue.push(Instant::from_secs(at), name);
        }
        let mut seen = Vec::new();
        while let Some((_, name)) = queue.pop(Instant::from_secs(4)) {
            seen.push(name);
        }
        assert_eq!(seen, ["first", "one", "two", "three"]);
        assert_eq!(queue.len(), 1);
        queue.push(Instant::from_secs(2), "reused");
        assert_eq!(queue.pop(Instant::END), Some((Instant::from_secs(2), "reused")));
        assert_eq!(queue.pop(Instant::END), Some((Instant::from_secs(5), "late")));
    }
}
