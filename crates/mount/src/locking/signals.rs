//! Whether a thread that waits for an answer was interrupted.
//!
//! `fuser` does not pass on that the kernel says so, and the kernel waits for the answer even of a process
//! that was killed. So we look for signals that wait to be delivered.
//!
//! To answer EINTR to a thread that no signal waits for would be wrong: the kernel restarts its call only on
//! the way to a signal's handler, and else hands a number to the program that none is meant to see.

use std::fs;

/// More threads of one process than these are not looked at.
const THREADS_MAX: usize = 1_024;

/// How it stands with a thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plight {
    /// It waits on.
    Waits,
    /// It has been killed, or a signal waits for it.
    Interrupted,
    /// It can't be seen from here: it lives in another namespace, or is hidden.
    Unseen,
}

/// What the kernel tells of the signals of a thread, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Signals {
    process: u32,
    /// Waiting for this thread.
    own: u64,
    /// Waiting for any thread of the process.
    shared: u64,
    blocked: u64,
}

impl Signals {
    fn parse(status: &str) -> Option<Signals> {
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.strip_prefix(':')?.trim())
        };
        let bits = |name: &str| u64::from_str_radix(value(name)?, 16).ok();
        Some(Signals {
            process: value("Tgid")?.parse().ok()?,
            own: bits("SigPnd")?,
            shared: bits("ShdPnd")?,
            blocked: bits("SigBlk")?,
        })
    }

    fn of(thread: u32) -> Option<Signals> {
        Signals::parse(&fs::read_to_string(format!("/proc/{thread}/status")).ok()?)
    }
}

/// Looks at a thread.
pub(crate) fn plight(thread: u32) -> Plight {
    match Signals::of(thread).filter(|_| thread != 0) {
        Some(signals) => judge(thread, signals, || others_blocked(thread, signals.process)),
        None => Plight::Unseen,
    }
}

/// `others_blocked` tells what all other threads of the process block.
fn judge(thread: u32, signals: Signals, others_blocked: impl FnOnce() -> u64) -> Plight {
    let shared = signals.shared & !signals.blocked;
    // A signal for the process goes to its first thread if that takes it, and to some thread that does if
    // not; we are sure that this is ours only if no other can be.
    let is_interrupted = signals.own & !signals.blocked != 0
        || shared != 0 && (thread == signals.process || shared & others_blocked() != 0);
    if is_interrupted { Plight::Interrupted } else { Plight::Waits }
}

fn others_blocked(thread: u32, process: u32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return 0 };
    let mut blocked = u64::MAX;
    for (count, entry) in threads.enumerate() {
        let number = entry.ok().and_then(|entry| entry.file_name().to_str()?.parse().ok());
        match number {
            _ if count >= THREADS_MAX => return 0,
            Some(number) if number == thread => {}
            // One that has ended meanwhile takes no signal.
            Some(number) => blocked &= Signals::of(number).map_or(u64::MAX, |other| other.blocked),
            None => return 0,
        }
    }
    blocked
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: fn() -> u64 = || 0;

    #[test]
    fn signals_are_read_as_the_kernel_writes_them() {
        let status = "Name:\tcat\nTgid:\t7\nPid:\t8\nSigQ:\t1/2\nSigPnd:\t0000000000000100\n\
            ShdPnd:\t0000000000000001\nSigBlk:\tfffffffe00000000\nSigIgn:\t0000000000000006\n";
        let expected =
            Signals { process: 7, own: 0x100, shared: 1, blocked: 0xffff_fffe_0000_0000 };
        assert_eq!(Signals::parse(status), Some(expected));
        assert_eq!(Signals::parse("Tgid:\t7\nSigPnd:\tnothing"), None);
        assert_eq!(Signals::parse(""), None);
    }

    #[test]
    fn a_signal_that_is_blocked_interrupts_nobody() {
        let signals = Signals { process: 7, own: 2, shared: 4, blocked: 6 };
        assert_eq!(judge(7, signals, NONE), Plight::Waits);
        assert_eq!(judge(7, Signals { blocked: 4, ..signals }, NONE), Plight::Interrupted);
        assert_eq!(judge(7, Signals { blocked: 2, ..signals }, NONE), Plight::Interrupted);
    }

    #[test]
    fn a_signal_for_the_process_interrupts_a_thread_only_if_no_other_takes_it() {
        let signals = Signals { process: 7, shared: 4, ..Signals::default() };
        assert_eq!(judge(7, signals, NONE), Plight::Interrupted);
        assert_eq!(judge(8, signals, NONE), Plight::Waits);
        assert_eq!(judge(8, signals, || 4), Plight::Interrupted);
        assert_eq!(judge(8, Signals { own: 0x100, ..signals }, NONE), Plight::Interrupted);
    }

    #[test]
    fn this_thread_waits_for_nothing_and_nobody_is_not_seen() {
        let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        assert_eq!(plight(thread), Plight::Waits);
        assert_eq!(plight(0), Plight::Unseen);
    }
}
