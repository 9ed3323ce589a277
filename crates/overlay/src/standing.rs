//! How much a machine has to do, wants to do and can do (K1).
//!
//! Work is counted in routing hops for each unit of time, as a float. That is safe: what is computed here
//! decides only where a machine of its own accord wants to stand, never enters what a group agrees on, and
//! is checked by nobody but by its position. It is still the same everywhere, because only the four basic
//! operations are used, which every processor rounds alike.

/// A machine's work, target and capacity. The sum over all of its virtual servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// What it does.
    pub work: f64,
    /// What it would like to do: the middle between its two bounds.
    pub target: f64,
    /// What it can do; positive.
    pub capacity: f64,
}

impl Standing {
    /// How far the work is from the target, as a part of the machine's own capacity (K6).
    ///
    /// The paper counts |t - w| for a virtual server, and leaves open what t is where a machine has several.
    /// Ours is the machine's target less the work of its other servers, so that |t - w| is that of the
    /// machine, whichever of its servers is asked.
    pub fn mismatch(&self) -> f64 {
        (self.target - self.work).abs() / self.capacity
    }

    /// The same machine with more work, or with less.
    pub fn with(self, more: f64) -> Standing {
        Standing { work: self.work + more, ..self }
    }

    /// By how much the mismatch grows with this much more work; negative where it shrinks.
    pub fn strain(&self, more: f64) -> f64 {
        self.with(more).mismatch() - self.mismatch()
    }

    /// Work as a part of the capacity.
    pub fn utilisation(&self) -> f64 {
        self.work / self.capacity
    }
}

/// What one virtual server does, by who would have to do it in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// All of it.
    pub work: f64,
    /// Of it, messages from others that go on to the successor. Without this server they would not come to the
    /// successor a second time, but to the predecessor.
    pub passed: f64,
}

impl Load {
    /// Work of which nothing is passed on to the successor.
    pub const fn of(work: f64) -> Load {
        Load { work, passed: 0.0 }
    }

    /// What lies in the server's own part of the ring: what it answers, and what comes there on its way by
    /// fingers. Whoever takes over the part takes that over.
    pub const fn in_part(&self) -> f64 {
        (self.work - self.passed).max(0.0)
    }
}

/// Work of one virtual server for each unit of time, smoothed (K10).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work(Load);

impl Work {
    /// Starts from what is expected: at a new position, the share of the work that comes with it.
    pub const fn anticipated(load: Load) -> Work {
        Work(load)
    }

    /// Takes in what was done in one more unit of time, with this weight against all before.
    pub fn observe(&mut self, done: Load, weight: f64) {
        self.0.work += weight * (done.work - self.0.work);
        self.0.passed += weight * (done.passed - self.0.passed);
    }

    /// How much it is.
    pub const fn get(self) -> Load {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mismatch_is_a_part_of_the_own_capacity() {
        let standing = Standing { work: 80.0, target: 50.0, capacity: 100.0 };
        assert_eq!(standing.mismatch(), 0.3);
        assert_eq!(standing.utilisation(), 0.8);
        assert_eq!(standing.strain(-30.0), -0.3);
        assert_eq!(standing.strain(-60.0), 0.0);
        assert!((standing.strain(20.0) - 0.2).abs() < 1e-12);
    }

    #[test]
    fn smoothed_work_comes_close_to_what_is_done_and_forgets_what_was() {
        let mut work = Work::anticipated(Load::of(10.0));
        let done = Load { work: 20.0, passed: 5.0 };
        work.observe(done, 0.1);
        assert_eq!(work.get(), Load { work: 11.0, passed: 0.5 });
        (0..100).for_each(|_| work.observe(done, 0.1));
        let Load { work, passed } = work.get();
        assert!((work - 20.0).abs() < 0.001 && (passed - 5.0).abs() < 0.001, "{work} {passed}");
    }
}
