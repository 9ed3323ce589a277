//! The one place where this crate looks at a clock and waits by it: elsewhere a moment is data.

use std::{
    sync::{Condvar, MutexGuard, OnceLock, PoisonError},
    thread,
};

use base::Instant;

/// What the clock shows. It begins when it is first looked at.
pub(crate) fn now() -> Instant {
    static START: OnceLock<std::time::Instant> = OnceLock::new();
    Instant::START + START.get_or_init(std::time::Instant::now).elapsed()
}

/// Does nothing until then.
pub(crate) fn wait_until(at: Instant) {
    loop {
        let left = at.since(now());
        if left.is_zero() {
            return;
        }
        thread::park_timeout(left);
    }
}

/// Waits until something has changed, but not beyond that moment if there is one.
pub(crate) fn wait_for<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    until: Option<Instant>,
) -> MutexGuard<'a, T> {
    match until {
        None => changed.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(until) => {
            let waited = changed.wait_timeout(guard, until.since(now()));
            waited.unwrap_or_else(PoisonError::into_inner).0
        }
    }
}
