//! Time as data: a moment is a number that somebody hands in.
//!
//! Nothing below the shells can ask what time it is. A [`Instant`] says how long after some agreed
//! start a thing happened; which start is the business of whoever made it (a machine's boot clock, a
//! group's agreed clock, a simulated world). Moments of two different starts must never meet.

use std::{
    fmt,
    ops::{Add, Sub},
};

use borsh::{BorshDeserialize, BorshSerialize};

pub use core::time::Duration;

/// A moment, in nanoseconds after the start of its clock.
///
/// Arithmetic saturates: a deadline that is too far away to name is the last moment there is.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    BorshSerialize,
    BorshDeserialize,
)]
pub struct Instant(u64);

impl Instant {
    /// The start of the clock.
    pub const START: Instant = Instant(0);
    /// The last moment that can be named, about 584 years after the start.
    pub const END: Instant = Instant(u64::MAX);

    /// The moment this many nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    /// The moment this many milliseconds after the start.
    pub const fn from_millis(millis: u64) -> Instant {
        Instant(millis.saturating_mul(1_000_000))
    }

    /// The moment this many seconds after the start.
    pub const fn from_secs(secs: u64) -> Instant {
        Instant(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How much later this moment is than `earlier`; zero if it is not later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_sub(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_saturate_at_both_ends() {
        assert_eq!(Instant::START - Duration::from_secs(1), Instant::START);
        assert_eq!(Instant::END + Duration::from_secs(1), Instant::END);
        assert_eq!(Instant::START + Duration::MAX, Instant::END);
        assert_eq!(Instant::from_secs(u64::MAX), Instant::END);
        assert_eq!(Instant::from_secs(1).since(Instant::from_secs(2)), Duration::ZERO);
    }

    #[test]
    fn units_agree() {
        assert_eq!(Instant::from_secs(3), Instant::from_millis(3_000));
        assert_eq!(Instant::from_millis(3), Instant::from_nanos(3_000_000));
        assert_eq!(Instant::from_secs(2) + Duration::from_millis(5), Instant::from_millis(2_005));
        assert_eq!(Instant::from_millis(2_005).to_string(), "2.005s");
    }
}
