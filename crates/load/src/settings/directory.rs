//! Limits and periods of a directory server (figure 7).

use base::Duration;

use super::refusal::{PERIOD_MAX, Refused, Review};
use crate::graphs;

const KEYS: &[(&str, &str)] = &[("7A", "files_max"), ("7B", "files_max"), ("7C", "requests_max")];

/// Limits and periods of a directory server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// 7A, 7B: files that the group manages at most; the quota on files keeps them to that (L48).
    pub files_max: u64,
    /// How long a written file rests before its replicas are made (L10).
    ///
    /// The paper's hour is long for people who close their laptops; ours is far below. At most a day,
    /// because a file has only one copy until then.
    pub absorb_period: Duration,
    /// 7C: replica requests that hosts have not yet answered (L46).
    pub requests_max: u64,
    /// How long a host has to answer a replica request; the request says so too (L53). At
    /// most a day, because 7C counts on it to drain.
    pub request_timeout: Duration,
    /// How often in a row a file's replication may fail before its source is suspected (L49).
    pub failures_max: u32,
    /// The highest rank of a replica that is ever asked for: 4 in the paper's runs (L14).
    pub rank_max: u8,
    /// How often the server adopts the ceiling of a random host (L33).
    pub ceiling_period: Duration,
}

impl Default for Directory {
    fn default() -> Directory {
        Directory {
            files_max: 1_000_000,
            absorb_period: Duration::from_secs(300),
            requests_max: 256,
            request_timeout: Duration::from_secs(600),
            failures_max: 3,
            rank_max: 4,
            ceiling_period: Duration::from_secs(600),
        }
    }
}

impl Directory {
    /// Whether these settings can stand together.
    pub fn validate(&self) -> Result<(), Refused> {
        let mut review = Review::new("directory");
        review.require_immune(&graphs::directory::graph(self), KEYS);
        // The absorption may be switched off, so it may be zero.
        review.require_periods(&[
            ("request_timeout", self.request_timeout),
            ("ceiling_period", self.ceiling_period),
        ]);
        review.require_at_most(
            PERIOD_MAX,
            &[("absorb_period", self.absorb_period), ("request_timeout", self.request_timeout)],
        );
        review.require(self.failures_max > 0, || "`failures_max` must be above 0".to_owned());
        review.require(self.rank_max > 0, || "`rank_max` must be above 0".to_owned());
        review.verdict()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_and_the_papers_hour_stand_together() {
        assert_eq!(Directory::default().validate(), Ok(()));
        let absorb_period = Duration::from_secs(3_600);
        assert_eq!(Directory { absorb_period, ..Directory::default() }.validate(), Ok(()));
        let labels: Vec<_> = KEYS.iter().map(|&(label, _)| label).collect();
        let graph = graphs::directory::graph(&Directory::default());
        assert_eq!(labels, graph.labels().collect::<Vec<_>>());
    }

    #[test]
    fn what_others_count_on_comes_within_a_day() {
        let (absorb_period, request_timeout) = (Duration::from_secs(172_800), Duration::MAX);
        let directory = Directory { absorb_period, request_timeout, ..Directory::default() };
        let breaches = directory.validate().unwrap_err().breaches;
        assert_eq!(breaches.len(), 2);
        assert_eq!(breaches[0], "`absorb_period` ≤ 1 d must hold, but it is 2 d");
        assert!(breaches[1].starts_with("`request_timeout` ≤ 1 d must hold, but it is "));
    }

    #[test]
    fn nothing_may_be_zero() {
        let directory = Directory { requests_max: 0, rank_max: 0, ..Directory::default() };
        assert_eq!(
            directory.validate().unwrap_err().breaches,
            [
                "7C (outstanding requests): its capacity is 0; give it room for something; \
                 `requests_max` is for 7C",
                "`rank_max` must be above 0",
            ]
        );
    }
}
