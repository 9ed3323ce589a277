//! How many files this process may have open at a time.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Kept for what is not a program's open file: the log, the store, the pack, sockets.
const OURS: u64 = 256;
/// Fewer would be of no use.
const HANDLES_MIN: u64 = 16;

/// Takes as many as the process may have, and says how many of them programs may use.
pub(crate) fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // No limit at all may be more than the kernel gives; then it stays as it is.
    let current = match setrlimit(Resource::Nofile, most) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    current.map_or(u64::MAX, |count| count.saturating_sub(OURS).max(HANDLES_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_may_be_open_can_be_and_some_are_kept_back() {
        let limit = getrlimit(Resource::Nofile);
        let Some(most) = limit.maximum else { return };
        let less = Rlimit { current: Some(most - 1), maximum: Some(most) };
        setrlimit(Resource::Nofile, less).unwrap();
        assert_eq!(raise(), most.saturating_sub(OURS).max(HANDLES_MIN));
        assert_eq!(getrlimit(Resource::Nofile).current, Some(most));
    }
}
