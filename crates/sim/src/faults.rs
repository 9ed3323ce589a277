//! How hostile a world is.

use base::{Duration, Rng};

/// What may go wrong, and how often. Drawn from a seed, or none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// A message takes at least this long.
    pub latency_min: Duration,
    /// The slowest link takes this long, when nothing is wrong.
    pub latency_max: Duration,
    /// How much longer than its link's time a message may take, as a share of it.
    pub jitter: f64,
    /// How often a message is late beyond that, with a heavy tail.
    pub late: f64,
    /// The longest that a message is late.
    pub late_max: Duration,
    /// How often a message is lost.
    pub loss: f64,
    /// How often a message comes twice.
    pub twice: f64,
    /// How long it takes on average until links fail again; zero for never.
    pub split_gap: Duration,
    /// The longest that they fail.
    pub split_max: Duration,
    /// How long it takes on average until some node stands still again; zero for never.
    pub pause_gap: Duration,
    /// The longest that it does.
    pub pause_max: Duration,
    /// How long it takes on average until some node crashes again; zero for never.
    pub crash_gap: Duration,
    /// How wrong a clock may run, in parts per million.
    pub rate_ppm: u32,
    /// How far apart the clocks may be when the world begins.
    pub start_max: Duration,
}

impl Faults {
    /// Nothing goes wrong: every message takes 1 ms and every clock is right.
    pub const fn none() -> Faults {
        Faults {
            latency_min: Duration::from_millis(1),
            latency_max: Duration::from_millis(1),
            jitter: 0.0,
            late: 0.0,
            late_max: Duration::ZERO,
            loss: 0.0,
            twice: 0.0,
            split_gap: Duration::ZERO,
            split_max: Duration::ZERO,
            pause_gap: Duration::ZERO,
            pause_max: Duration::ZERO,
            crash_gap: Duration::ZERO,
            rate_ppm: 0,
            start_max: Duration::ZERO,
        }
    }

    /// A mixture of faults. Each kind is absent in some worlds, so that every mixture comes up.
    pub fn draw(rng: &mut Rng) -> Faults {
        let mut share =
            |most: f64| if rng.chance(0.3) { 0.0 } else { most * rng.unit() * rng.unit() };
        let (jitter, late, loss, twice) = (share(2.0), share(0.1), share(0.3), share(0.2));
        let mut gap = |least: u64, most: u64| match rng.chance(0.3) {
            true => Duration::ZERO,
            false => Duration::from_millis(least + rng.below(most - least)),
        };
        let (split_gap, pause_gap, crash_gap) =
            (gap(2_000, 120_000), gap(1_000, 90_000), gap(5_000, 200_000));
        Faults {
            latency_min: Duration::from_micros(100),
            latency_max: Duration::from_millis(1 + rng.below(100)),
            jitter,
            late,
            late_max: Duration::from_secs(1 + rng.below(30)),
            loss,
            twice,
            split_gap,
            split_max: Duration::from_secs(1 + rng.below(60)),
            pause_gap,
            pause_max: Duration::from_secs(1 + rng.below(90)),
            crash_gap,
            rate_ppm: 500,
            start_max: Duration::from_secs(365 * 24 * 60 * 60),
        }
    }

    /// The same links and clocks with nothing going wrong any more.
    pub fn healed(&self) -> Faults {
        Faults {
            latency_min: self.latency_min,
            latency_max: self.latency_max,
            jitter: self.jitter.min(1.0),
            rate_ppm: self.rate_ppm,
            start_max: self.start_max,
            ..Faults::none()
        }
    }
}

/// A gap with this mean.
pub(crate) fn draw_gap(rng: &mut Rng, mean: Duration) -> Duration {
    mean.mul_f64(2.0 * rng.unit())
}

/// From a thousandth of the longest up to the longest; every order of magnitude is as likely. Plain
/// arithmetic: logarithms differ from one machine to the next.
pub(crate) fn draw_span(rng: &mut Rng, longest: Duration) -> Duration {
    let halvings = rng.below(10) as u32;
    (longest / (1 << halvings)).mul_f64(0.5 + rng.unit() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_their_mean_and_spans_their_bounds() {
        let mut rng = Rng::new(1);
        let mean = Duration::from_secs(10);
        let total: Duration = (0..10_000).map(|_| draw_gap(&mut rng, mean)).sum();
        assert!((9.7..10.3).contains(&(total / 10_000).as_secs_f64()));
        let spans: Vec<_> = (0..1_000).map(|_| draw_span(&mut rng, mean)).collect();
        assert!(spans.iter().all(|span| (mean / 1_025..=mean).contains(span)));
        assert!(spans.iter().filter(|span| **span < mean / 100).count() > 250);
    }

    #[test]
    fn every_kind_of_fault_is_absent_now_and_then() {
        let mut rng = Rng::new(2);
        let drawn: Vec<_> = (0..200).map(|_| Faults::draw(&mut rng)).collect();
        let shares: [fn(&Faults) -> f64; 4] = [|f| f.loss, |f| f.twice, |f| f.late, |f| f.jitter];
        for share in shares {
            let absent = drawn.iter().filter(|faults| share(faults) == 0.0).count();
            assert!((20..120).contains(&absent), "{absent}");
        }
    }
}
