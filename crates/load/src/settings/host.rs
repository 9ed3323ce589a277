//! Limits and periods of a file host (figure 8).

use base::Duration;

use super::refusal::{Refused, Review};
use crate::graphs;

const KEYS: &[(&str, &str)] = &[("8A", "requests_max"), ("8B", "replica_bytes")];

/// Limits and periods of a file host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// 8A: replica requests outstanding; more are shed (L51).
    pub requests_max: u64,
    /// 8B: room for replicas, in bytes, if nothing with a better claim wants it (L28).
    pub replica_bytes: u64,
    /// How much of the disk stays free, in bytes (L28).
    pub free_space_target: u64,
    /// The share of real time that replication may take, in percent (L55).
    pub duty_percent: u32,
    /// How often the rank ceiling rises if there is room (L32).
    pub ceiling_rise_period: Duration,
    /// Free space that counts as room, in multiples of `free_space_target`, at least 2 (L32).
    pub ceiling_rise_free_factor: u32,
    /// How often the rank ceiling rises in any case, since caches go cold (L32).
    pub ceiling_creep_period: Duration,
}

impl Default for Host {
    fn default() -> Host {
        Host {
            requests_max: 60,
            replica_bytes: 64 << 30,
            free_space_target: 4 << 30,
            duty_percent: 80,
            ceiling_rise_period: Duration::from_secs(3_600),
            ceiling_rise_free_factor: 2,
            ceiling_creep_period: Duration::from_secs(86_400),
        }
    }
}

impl Host {
    /// Whether these settings can stand together.
    pub fn validate(&self) -> Result<(), Refused> {
        let mut review = Review::new("host");
        review.require_immune(&graphs::host::graph(self), KEYS);
        review.require_periods(&[
            ("ceiling_rise_period", self.ceiling_rise_period),
            ("ceiling_creep_period", self.ceiling_creep_period),
        ]);
        let duty = self.duty_percent;
        review.require((1..=100).contains(&duty), || {
            format!("1 ≤ `duty_percent` ≤ 100 must hold, but it is {duty}")
        });
        let target = self.free_space_target;
        review.require(target > 0, || "`free_space_target` must be above 0".to_owned());
        // A ceiling that rises at the target itself would take what it must leave.
        let factor = self.ceiling_rise_free_factor;
        review.require(factor >= 2, || {
            format!("2 ≤ `ceiling_rise_free_factor` must hold, but it is {factor}")
        });
        review.require(target.checked_mul(u64::from(factor)).is_some(), || {
            let max = u64::MAX;
            format!(
                "`free_space_target` × `ceiling_rise_free_factor` ≤ {max} must hold, but it is more"
            )
        });
        review.verdict()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_stand_together() {
        assert_eq!(Host::default().validate(), Ok(()));
        let labels: Vec<_> = KEYS.iter().map(|&(label, _)| label).collect();
        let graph = graphs::host::graph(&Host::default());
        assert_eq!(labels, graph.labels().collect::<Vec<_>>());
    }

    #[test]
    fn a_share_of_time_is_a_share() {
        let refused = Host { duty_percent: 120, ..Host::default() }.validate().unwrap_err();
        let expected = "1 ≤ `duty_percent` ≤ 100 must hold, but it is 120";
        assert_eq!(refused.breaches, [expected]);
        assert!(Host { duty_percent: 0, ..Host::default() }.validate().is_err());
    }

    #[test]
    fn a_ceiling_that_rises_at_the_target_itself_is_refused() {
        let breaches = |free_space_target, ceiling_rise_free_factor| {
            Host { free_space_target, ceiling_rise_free_factor, ..Host::default() }
                .validate()
                .unwrap_err()
                .breaches
        };
        let expected = "2 ≤ `ceiling_rise_free_factor` must hold, but it is 1";
        assert_eq!(breaches(1 << 30, 1), [expected]);
        assert_eq!(breaches(0, 2), ["`free_space_target` must be above 0"]);
        let expected = "`free_space_target` × `ceiling_rise_free_factor` ≤ 18446744073709551615 \
                        must hold, but it is more";
        assert_eq!(breaches(1 << 63, 2), [expected]);
    }
}
