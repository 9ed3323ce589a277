//! Who writes large files: whoever has just written one most likely writes another.
//!
//! How large a file becomes is not known when it is created, and the way of its bytes can't change while
//! it is open. The fast way for a large file costs a small one more than all its bytes; but next to what it
//! costs to start a process, that is little. So the first new file of each process is taken for a large one, and
//! whoever makes many small ones pays for one of them.

use std::sync::atomic::{AtomicU32, Ordering};

/// From here on the kernel's own way is worth a backing file at once, in bytes.
pub(super) const LARGE: u64 = 1 << 20;
/// So many writers are remembered; two that share a place take turns in it.
const PLACES: usize = 1 << 10;
/// Set beside a process whose last new file was small. The kernel's numbers of processes have 22 bits at the most.
const SMALL: u32 = 1 << 31;

/// How large the last new file of each writer became. What is wrong here costs time, and nothing else.
pub(super) struct Habits(Box<[AtomicU32]>);

impl Habits {
    pub(super) fn new() -> Habits {
        Habits((0..PLACES).map(|_| AtomicU32::new(0)).collect())
    }

    /// Notes how large a new file of a process was when it was closed.
    pub(super) fn note(&self, pid: u32, size: u64) {
        let note = if size >= LARGE { pid } else { pid | SMALL };
        self.place(pid).store(note, Ordering::Relaxed);
    }

    /// Whether the next new file of a process will be large, as far as can be known.
    pub(super) fn is_large_next(&self, pid: u32) -> bool {
        pid != 0 && self.place(pid).load(Ordering::Relaxed) != pid | SMALL
    }

    fn place(&self, pid: u32) -> &AtomicU32 {
        &self.0[pid as usize % PLACES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_wrote_a_small_file_last_is_expected_to_write_another() {
        let habits = Habits::new();
        habits.note(7, LARGE - 1);
        assert!(!habits.is_large_next(7));
        habits.note(7, LARGE);
        assert!(habits.is_large_next(7));
    }

    #[test]
    fn the_first_file_of_a_process_is_expected_to_be_large() {
        let habits = Habits::new();
        assert!(habits.is_large_next(7));
        habits.note(7, 0);
        assert!(habits.is_large_next(8), "what one writes says nothing of another");
        habits.note(7 + PLACES as u32, 0);
        assert!(habits.is_large_next(7), "it is forgotten, and begins anew");
    }

    #[test]
    fn nothing_is_expected_of_somebody_unknown() {
        assert!(!Habits::new().is_large_next(0));
    }
}
