//! Which machines come, when they go, and what they can do (G3).

use base::Rng;

/// A machine's time in the network, in seconds from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Life {
    /// When it comes.
    pub from: u32,
    /// When it dies; `u32::MAX` if it stays.
    pub to: u32,
    /// What it can do in a second.
    pub capacity: f64,
}

/// How capacities are dealt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacities {
    /// All the same.
    Equal(f64),
    /// Of each class as many as the paper's Table III counts; the mean is 92.3.
    Gnutella,
    /// Lognormal with this median over six decades, as in the trace.
    Lognormal(f64),
}

/// How long machines stay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lives {
    /// For ever.
    Endless,
    /// Pareto with α = 2 and this mean, in seconds.
    Pareto {
        /// In seconds.
        mean: f64,
        /// The rank correlation of life and capacity.
        correlation: f64,
    },
}

/// Classes of capacity, and how many machines the paper counts in each.
pub const CLASSES: [(f64, u32); 4] = [(1.0, 728), (10.0, 1_594), (100.0, 1_026), (1_000.0, 209)];

/// A network of so many machines for so many seconds: as soon as one dies, another comes. Those of the start
/// have already lived for some time, so that as many die in each second as in the next.
pub fn population(
    count: usize,
    seconds: u32,
    capacities: Capacities,
    lives: Lives,
    rng: &mut Rng,
) -> Vec<Life> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let mut from = 0;
        let mut is_first = true;
        while from < seconds {
            let (ours, theirs) = (rng.unit(), rng.unit());
            let (part, to) = match lives {
                Lives::Endless => (ours, u32::MAX),
                Lives::Pareto { mean, correlation } => {
                    // Equal ranks this often, independent else: that is the rank correlation.
                    let part = if rng.chance(correlation) { theirs } else { ours };
                    let life = if is_first { residual(mean, theirs) } else { pareto(mean, theirs) };
                    (part, from.saturating_add((life.min(4e9) as u32).max(1)))
                }
            };
            all.push(Life { from, to, capacity: capacity(capacities, part) });
            (from, is_first) = (to, false);
        }
    }
    all.sort_by_key(|life| life.from);
    all
}

/// The same machines, which come and go only every so many seconds. Who would be gone before it has come does not come.
pub fn together(lives: Vec<Life>, every: u32) -> Vec<Life> {
    let moment = |second: u32| second.checked_next_multiple_of(every).unwrap_or(u32::MAX);
    let life = |life: Life| Life { from: moment(life.from), to: moment(life.to), ..life };
    // Rounding keeps their order.
    lives.into_iter().map(life).filter(|life| life.from < life.to).collect()
}

/// The life that this part of machines do not exceed. A Pareto with α = 2 has its least at half of its mean.
fn pareto(mean: f64, part: f64) -> f64 {
    mean / 2.0 / (1.0 - part).sqrt()
}

/// What is left of the life of a machine that is met at any moment: density (1 - F(x)) / mean.
fn residual(mean: f64, part: f64) -> f64 {
    let least = mean / 2.0;
    if part < 0.5 { part * mean } else { least / (2.0 * (1.0 - part)) }
}

fn capacity(capacities: Capacities, part: f64) -> f64 {
    match capacities {
        Capacities::Equal(capacity) => capacity,
        Capacities::Gnutella => {
            let total: u32 = CLASSES.iter().map(|(_, count)| count).sum();
            let mut rank = part * f64::from(total);
            for (capacity, count) in CLASSES {
                if rank < f64::from(count) {
                    return capacity;
                }
                rank -= f64::from(count);
            }
            CLASSES[CLASSES.len() - 1].0
        }
        // A decade for each standard deviation: three on either side of the median.
        Capacities::Lognormal(median) => median * 10f64.powf(normal(part).clamp(-3.0, 3.0)),
    }
}

/// The value that this part of a normal distribution do not exceed, by the logistic approximation, which is
/// within 0.02 of a standard deviation in the middle and of 0.2 at its ends.
fn normal(part: f64) -> f64 {
    let part = part.clamp(1e-9, 1.0 - 1e-9);
    (part / (1.0 - part)).ln() / 1.702
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: f64 = 3_600.0;

    fn lives(correlation: f64) -> Vec<Life> {
        let lives = Lives::Pareto { mean: HOUR, correlation };
        population(4_000, 20_000, Capacities::Gnutella, lives, &mut Rng::new(7))
    }

    #[test]
    fn as_many_are_there_at_any_moment_and_as_many_die_at_the_start_as_later() {
        let all = lives(0.0);
        for moment in [0, 5_000, 19_999] {
            let there = all.iter().filter(|life| life.from <= moment && moment < life.to);
            assert_eq!(there.count(), 4_000);
        }
        let deaths = |from: u32, to: u32| {
            all.iter().filter(|life| (from..to).contains(&life.to)).count() as f64
        };
        // One in an hour for each.
        for (from, to) in [(0, 5_000), (5_000, 10_000), (10_000, 15_000)] {
            let expected = 4_000.0 * 5_000.0 / HOUR;
            let found = deaths(from, to);
            assert!((found / expected - 1.0).abs() < 0.05, "{from}: {found} of {expected}");
        }
    }

    #[test]
    fn together_as_many_are_there_and_they_change_at_a_few_moments_only() {
        let all = together(lives(0.0), 300);
        for moment in [0, 5_000, 19_999] {
            let there = all.iter().filter(|life| life.from <= moment && moment < life.to);
            assert_eq!(there.count(), 4_000);
        }
        assert!(all.iter().all(|life| life.from % 300 == 0 && life.to % 300 == 0));
        assert!(all.is_sorted_by_key(|life| life.from));
        assert_eq!(together(lives(0.0), 1), lives(0.0));
    }

    #[test]
    fn classes_come_as_often_as_the_paper_counts() {
        let all = lives(0.0);
        for (class, count) in CLASSES {
            let found = all.iter().filter(|life| life.capacity == class).count();
            let expected = all.len() as f64 * f64::from(count) / 3_557.0;
            assert!((found as f64 / expected - 1.0).abs() < 0.1, "{class}: {found}");
        }
        let mean = all.iter().map(|life| life.capacity).sum::<f64>() / all.len() as f64;
        assert!((85.0..100.0).contains(&mean), "{mean}");
    }

    #[test]
    fn a_correlation_is_there_if_it_is_asked_for() {
        let mean = |all: &[Life], class: f64| {
            let lives: Vec<f64> = all
                .iter()
                .filter(|life| life.from > 0 && life.capacity == class)
                .map(|life| f64::from(life.to - life.from).min(20_000.0))
                .collect();
            lives.iter().sum::<f64>() / lives.len() as f64
        };
        let (without, with) = (lives(0.0), lives(0.2));
        assert!(mean(&with, 1_000.0) > 1.4 * mean(&with, 1.0));
        assert!(mean(&without, 1_000.0) < 1.2 * mean(&without, 1.0));
    }

    #[test]
    fn the_continuous_capacity_has_its_median_and_six_decades() {
        let capacities = Capacities::Lognormal(191.0);
        let all = population(20_000, 1, capacities, Lives::Endless, &mut Rng::new(1));
        let mut values: Vec<f64> = all.iter().map(|life| life.capacity).collect();
        let median = super::super::tally::quantile(&mut values, 0.5);
        assert!((180.0..205.0).contains(&median), "{median}");
        assert!(values[0] < 1.0 && values[values.len() - 1] > 50_000.0);
    }
}
