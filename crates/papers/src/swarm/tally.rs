//! What is counted in a run, and what a column of numbers says.

use std::ops::AddAssign;

/// Counts over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Seconds that these are of.
    pub seconds: u64,
    /// Queries asked.
    pub queries: u64,
    /// Queries that came where they were to come.
    pub answered: u64,
    /// Queries that met a machine without capacity left.
    pub overloads: u64,
    /// Queries that followed a finger to a dead server.
    pub stale: u64,
    /// Hops of queries, the failed ones among them.
    pub hops: u64,
    /// Hops of queries that were answered.
    pub hops_answered: u64,
    /// Messages to keep the overlay.
    pub maintenance: u64,
    /// Fingers looked up anew.
    pub refreshes: u64,
    /// Of these, those that had pointed at a dead server.
    pub refreshed_dead: u64,
    /// Actions of servers by churn: K18 counts one for each server that comes or goes.
    pub churn: u64,
    /// Servers made by balancing.
    pub creates: u64,
    /// Servers done without by balancing.
    pub destroys: u64,
    /// Servers taken elsewhere by balancing, which count as two actions.
    pub moves: u64,
    /// Servers handed to another machine by balancing.
    pub transfers: u64,
}

impl Tally {
    /// The part of queries that were answered.
    pub fn success(&self) -> f64 {
        self.answered as f64 / self.queries.max(1) as f64
    }

    /// Hops of an answered query.
    pub fn path(&self) -> f64 {
        self.hops_answered as f64 / self.answered.max(1) as f64
    }

    /// Actions by balancing, as K18 counts them.
    pub fn actions(&self) -> u64 {
        self.creates + self.destroys + 2 * self.moves + self.transfers
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.seconds += other.seconds;
        self.queries += other.queries;
        self.answered += other.answered;
        self.overloads += other.overloads;
        self.stale += other.stale;
        self.hops += other.hops;
        self.hops_answered += other.hops_answered;
        self.maintenance += other.maintenance;
        self.refreshes += other.refreshes;
        self.refreshed_dead += other.refreshed_dead;
        self.churn += other.churn;
        self.creates += other.creates;
        self.destroys += other.destroys;
        self.moves += other.moves;
        self.transfers += other.transfers;
    }
}

/// The value that this part of them do not exceed; nothing of nothing. Puts them in order.
pub fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = (part * values.len() as f64).ceil() as usize;
    values.get(at.saturating_sub(1).min(last)).copied().unwrap_or(0.0)
}

/// Their mean and standard deviation.
pub fn spread(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// The correlation of two columns, from -1 to 1.
pub fn correlation(xs: &[f64], ys: &[f64]) -> f64 {
    assert_eq!(xs.len(), ys.len(), "each has its partner");
    let ((x_mean, x_sd), (y_mean, y_sd)) = (spread(xs), spread(ys));
    let products = xs.iter().zip(ys).map(|(x, y)| (x - x_mean) * (y - y_mean));
    let covariance = products.sum::<f64>() / xs.len().max(1) as f64;
    if x_sd * y_sd > 0.0 { covariance / (x_sd * y_sd) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(quantile(&mut values, 0.95), 95.0);
        assert_eq!(quantile(&mut values, 0.0), 1.0);
        assert_eq!(quantile(&mut values, 1.0), 100.0);
        assert_eq!(quantile(&mut [], 0.5), 0.0);
    }

    #[test]
    fn correlation_tells_a_line_from_noise() {
        let xs: Vec<f64> = (0..50).map(f64::from).collect();
        let ys: Vec<f64> = xs.iter().map(|x| 3.0 - 2.0 * x).collect();
        assert!((correlation(&xs, &ys) + 1.0).abs() < 1e-12);
        let mut rng = base::Rng::new(1);
        let noise: Vec<f64> = xs.iter().map(|_| rng.unit()).collect();
        assert!(correlation(&xs, &noise).abs() < 0.4);
        assert_eq!(correlation(&xs, &[1.0; 50]), 0.0);
    }
}
