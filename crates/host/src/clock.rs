//! What time it is: the boot clock for promises, the wall clock for what people see, and a thread's own for what
//! its work costs.

use base::Instant;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// This machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// The boot clock. It goes on while the machine sleeps, so a lease ends in time also then.
    pub fn now(self) -> Instant {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Boottime);
        Instant::from_nanos((tv_sec as u64).saturating_mul(1_000_000_000) + tv_nsec as u64)
    }

    /// How many nanoseconds of processor time the thread that asks has used.
    pub(crate) fn used(self) -> u64 {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
        (tv_sec as u64).saturating_mul(1_000_000_000) + tv_nsec as u64
    }

    /// The wall clock, in nanoseconds since 1970.
    pub fn wall(self) -> i64 {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Realtime);
        tv_sec.saturating_mul(1_000_000_000).saturating_add(tv_nsec)
    }
}
