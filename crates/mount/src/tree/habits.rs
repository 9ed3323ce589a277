//! Who writes large files: whoever has just written one most likely writes another.
//!
//! How large a file becomes is not known when it is created, and the way of its bytes can't change while
//! it is open. The fast way for a large file costs a small one more than all its bytes.

use std::sync::atomic::{AtomicU32, Ordering};

/// From here on the kernel's own way is worth a backing file at once, in bytes.
pub(super) const LARGE: u64 = 1 << 20;
/// So many writers are remembered; two that share a place take turns in it.
const PLACES: usize = 64;

/// The writers whose last new file became large. What is wrong here costs time, and nothing else.
pub(super) struct Habits([AtomicU32; PLACES]);

impl Habits {
    pub(super) fn new() -> Habits {
        Habits([const { AtomicU32::new(0) }; PLACES])
    }

    /// Notes how large a new file of a process was when it was closed.
    pub(super) fn note(&self, pid: u32, size: u64) {
        let place = self.place(pid);
        if size >= LARGE {
            place.store(pid, Ordering::Relaxed);
        } else if place.load(Ordering::Relaxed) == pid {
            place.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the next new file of a process will be large, as far as can be known.
    pub(super) fn is_large_next(&self, pid: u32) -> bool {
        pid != 0 && self.place(pid).load(Ordering::Relaxed) == pid
    }

    fn place(&self, pid: u32) -> &AtomicU32 {
        &self.0[pid as usize % PLACES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_wrote_a_large_file_last_is_expected_to_write_another() {
        let habits = Habits::new();
        assert!(!habits.is_large_next(7));
        habits.note(7, LARGE);
        assert!(habits.is_large_next(7) && !habits.is_large_next(8));
        habits.note(8, 0);
        assert!(habits.is_large_next(7));
        habits.note(7, LARGE - 1);
        assert!(!habits.is_large_next(7));
    }

    #[test]
    fn nothing_is_expected_of_somebody_unknown() {
        let habits = Habits::new();
        habits.note(0, LARGE);
        assert!(!habits.is_large_next(0));
    }
}
