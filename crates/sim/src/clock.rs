//! A node's own clock: it started at some moment, runs a little wrong, and may sway.

use base::{Duration, Instant, Rng};

use crate::Faults;

/// Turns the world's time into one node's time and back.
///
/// Its time never runs backwards. `rate_ppm` is how much too fast it runs. With a sway it is ahead by
/// that much for half a period and behind by as much for the other half, as a clock that a group
/// agrees on may be; on the way from ahead to behind it stands still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// What it shows when the world begins.
    pub start: Instant,
    /// How much too fast it runs, in parts per million; more than -1,000,000.
    pub rate_ppm: i32,
    /// How far it may be from the right time.
    pub sway: Duration,
    /// How long ahead and behind take together. With a sway, at least six times it.
    pub period: Duration,
}

const MILLION: i64 = 1_000_000;
/// A clock beyond this is never reached; it leaves room for the arithmetic.
const FAR: u64 = 1 << 62;

impl Clock {
    /// A clock that is as wrong as these faults allow, and as wrong as it may be quite often.
    pub fn draw(faults: &Faults, rng: &mut Rng) -> Clock {
        let most = i64::from(faults.rate_ppm);
        let between = rng.below(2 * most as u64 + 1) as i64 - most;
        let start = (faults.start_max.as_nanos() as u64).max(1);
        Clock {
            start: Instant::from_nanos(rng.below(start)),
            rate_ppm: *rng.pick(&[-most, between, most]) as i32,
            ..Clock::default()
        }
    }

    /// What the clock shows at this moment of the world.
    pub fn local(&self, world: Instant) -> Instant {
        let straight = self.straight(world.as_nanos());
        Instant::from_nanos(if self.sway.is_zero() { straight } else { self.swayed(straight) })
    }

    /// The first moment of the world at which the clock shows at least this; none if that is too far
    /// away to matter.
    pub fn world(&self, local: Instant) -> Option<Instant> {
        let local = local.as_nanos();
        if local > FAR {
            return None;
        }
        let guess = local.saturating_sub(self.start.as_nanos()) as i64;
        let guess = guess - scaled(guess, self.rate_ppm, MILLION + i64::from(self.rate_ppm));
        let sway = self.sway.as_nanos() as i64;
        // Three times the sway reaches over the stretch in which the clock stands still.
        let (mut low, mut high) = ((guess - 3 * sway - 2).max(0), guess + 3 * sway + 2);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.local(Instant::from_nanos(middle as u64)).as_nanos() >= local {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        Some(Instant::from_nanos(low as u64))
    }

    fn straight(&self, world: u64) -> u64 {
        let world = world.min(FAR) as i64;
        (self.start.as_nanos().min(FAR) as i64 + world + scaled(world, self.rate_ppm, MILLION))
            as u64
    }

    fn swayed(&self, straight: u64) -> u64 {
        let (sway, period) = (self.sway.as_nanos() as u64, self.period.as_nanos() as u64);
        let (ahead, into) = (period / 2, straight % period.max(1));
        // Shifted by one sway, so that it is never below zero.
        match into.checked_sub(ahead) {
            None => straight + 2 * sway,
            Some(behind) => straight + (2 * sway).saturating_sub(behind),
        }
    }
}

/// `value × ppm ÷ by`, rounded down, without overflow.
fn scaled(value: i64, ppm: i32, by: i64) -> i64 {
    let ppm = i64::from(ppm);
    (value / by) * ppm + ((value % by) * ppm).div_euclid(by)
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;

    fn clocks() -> impl Iterator<Item = Clock> {
        let sways = [(0, 0), (500, 7_000)];
        [-500, -1, 0, 1, 500, 300_000].into_iter().flat_map(move |rate_ppm| {
            sways.into_iter().flat_map(move |(sway, period)| {
                [0, 5, 10_000_000].into_iter().map(move |start| Clock {
                    start: Instant::from_secs(start),
                    rate_ppm,
                    sway: Duration::from_millis(sway),
                    period: Duration::from_millis(period),
                })
            })
        })
    }

    #[test]
    fn a_clock_runs_as_wrong_as_it_is_told() {
        let clock = Clock { start: Instant::from_secs(5), rate_ppm: 500, ..Clock::default() };
        let after = clock.local(Instant::from_secs(1_000));
        assert_eq!(after, Instant::from_millis(1_005_500));
        assert_eq!(clock.world(after), Some(Instant::from_secs(1_000)));
    }

    #[test]
    fn time_never_runs_backwards_and_maps_back_to_the_first_moment() {
        let mut rng = Rng::new(1);
        for clock in clocks() {
            let mut before = Instant::START;
            let mut world = 0;
            for _ in 0..2_000 {
                world += rng.below(100_000_000);
                let now = clock.local(Instant::from_nanos(world));
                assert!(now >= before, "{clock:?}");
                before = now;
                let first = clock.world(now).unwrap().as_nanos();
                assert!(first <= world && clock.local(Instant::from_nanos(first)) >= now);
                assert!(
                    first == 0 || clock.local(Instant::from_nanos(first - 1)) < now,
                    "{clock:?}"
                );
            }
        }
    }

    #[test]
    fn a_sway_gains_at_most_twice_itself() {
        let sway = Duration::from_millis(500);
        let clock = Clock { sway, period: Duration::from_secs(7), ..Clock::default() };
        let mut rng = Rng::new(2);
        let mut most = Duration::ZERO;
        for _ in 0..100_000 {
            let from = Instant::from_nanos(rng.below(20_000_000_000));
            let to = from + Duration::from_nanos(rng.below(20_000_000_000));
            let gained = clock.local(to).since(clock.local(from)).saturating_sub(to.since(from));
            most = most.max(gained);
        }
        assert_eq!(most, 2 * sway);
    }

    #[test]
    fn the_end_of_time_is_never_reached() {
        assert_eq!(Clock::default().world(Instant::END), None);
    }
}
