//! Room for bytes that all connections share.

use std::sync::atomic::{AtomicUsize, Ordering};

/// So many bytes, wherever they are.
#[derive(Debug)]
pub(crate) struct Room {
    taken: AtomicUsize,
    bytes_max: usize,
}

impl Room {
    pub(crate) fn new(bytes_max: usize) -> Room {
        Room { taken: AtomicUsize::new(0), bytes_max }
    }

    /// Takes room for so many bytes, if there is so much.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let take = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.bytes_max);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Takes it for bytes that had it a moment ago, also if that is too much now.
    pub(crate) fn take_back(&self, bytes: usize) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn give(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// How much is taken.
    #[cfg(test)]
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// A share that grows, and is free again when it is dropped.
    pub(crate) fn share(&self) -> Share<'_> {
        Share { room: self, bytes: 0 }
    }
}

/// A share of a room.
pub(crate) struct Share<'a> {
    room: &'a Room,
    bytes: usize,
}

impl Share<'_> {
    /// Makes it larger, if there is room.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let is_taken = self.room.take(bytes);
        if is_taken {
            self.bytes += bytes;
        }
        is_taken
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.room.give(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_until_there_is_none_and_is_free_again() {
        let room = Room::new(10);
        let mut share = room.share();
        assert!(share.grow(6) && !share.grow(5) && share.grow(1));
        assert!(room.take(3) && !room.take(1) && !room.take(usize::MAX));
        drop(share);
        assert_eq!(room.taken(), 3);
        room.give(3);
        room.take_back(11);
        assert!(!room.take(0), "what had its room stays, and nothing more comes");
    }
}
