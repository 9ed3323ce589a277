//! Limits and periods of the object pager (figure 9).

use base::Duration;

use super::refusal::{Refused, Review};
use crate::graphs;

const KEYS: &[(&str, &str)] = &[
    ("9A", "lookups_max"),
    ("9B", "referenced_expected"),
    ("9C", "dirty_threshold"),
    ("9D", "clean_max"),
    ("9E", "writes_max"),
    ("9F", "loads_max"),
];

/// Limits and periods of the object pager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pager {
    /// 9A: lookups that wait for their turn.
    pub lookups_max: u64,
    /// How many waiting lookups are let go at once when rate matching ends (L59).
    pub batch_max: u64,
    /// 9F: lookups at the store.
    pub loads_max: u64,
    /// 9B: referenced objects, if the code keeps its discipline; nothing enforces it (L61).
    pub referenced_expected: u64,
    /// 9C: unreferenced dirty objects at which lookups stop (L59).
    ///
    /// The one limit that is a threshold and not a capacity, because the paper names it: 9C can come
    /// to hold as much more as there may be in 9B, 9D, 9E and 9F.
    pub dirty_threshold: u64,
    /// How long a dirty object must be unreferenced to be cleaned (L57).
    pub clean_after: Duration,
    /// 9D: unreferenced clean objects.
    pub clean_max: u64,
    /// How long a clean object must be unreferenced to be discarded (L60).
    pub discard_after: Duration,
    /// 9E: objects being written.
    pub writes_max: u64,
}

impl Default for Pager {
    fn default() -> Pager {
        Pager {
            lookups_max: 4_096,
            batch_max: 2_000,
            loads_max: 256,
            referenced_expected: 2_500,
            dirty_threshold: 2_000,
            clean_after: Duration::from_secs(180),
            clean_max: 16_384,
            discard_after: Duration::from_secs(600),
            writes_max: 64,
        }
    }
}

impl Pager {
    /// 9C: what it can come to hold, by the threshold rule (L23).
    ///
    /// If that is more than can be counted, `validate` refuses, and this is the highest number.
    pub fn dirty_max(&self) -> u64 {
        self.dirty_sum().unwrap_or(u64::MAX)
    }

    fn dirty_sum(&self) -> Option<u64> {
        let between = [self.referenced_expected, self.clean_max, self.writes_max, self.loads_max];
        between.into_iter().try_fold(self.dirty_threshold, u64::checked_add)
    }

    /// Whether these settings can stand together.
    pub fn validate(&self) -> Result<(), Refused> {
        let mut review = Review::new("pager");
        review.require(self.dirty_threshold > 0, || {
            "`dirty_threshold`, where 9C stops lookups, must be above 0".to_owned()
        });
        // What the graph would say to either is an inequality that nobody asked for.
        let counted = Pager { dirty_threshold: self.dirty_threshold.max(1), ..*self };
        if counted.dirty_sum().is_some() {
            review.require_immune(&graphs::pager::graph(&counted), KEYS);
        } else {
            review.require(false, || {
                let max = u64::MAX;
                format!(
                    "`dirty_threshold` + `referenced_expected` + `clean_max` + `writes_max` + \
                     `loads_max` ≤ {max} must hold, but it is more"
                )
            });
        }
        review.require_periods(&[
            ("clean_after", self.clean_after),
            ("discard_after", self.discard_after),
        ]);
        let (batch, referenced) = (self.batch_max, self.referenced_expected);
        // Every lookup of a batch becomes a referenced object.
        review.require(batch <= referenced, || {
            format!("`batch_max` ≤ `referenced_expected` must hold, but {batch} > {referenced}")
        });
        review.require(batch > 0, || "`batch_max` must be above 0".to_owned());
        review.verdict()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_stand_together() {
        assert_eq!(Pager::default().validate(), Ok(()));
        let labels: Vec<_> = KEYS.iter().map(|&(label, _)| label).collect();
        let graph = graphs::pager::graph(&Pager::default());
        assert_eq!(labels, graph.labels().collect::<Vec<_>>());
    }

    #[test]
    fn a_threshold_of_nothing_is_refused() {
        let refused = Pager { dirty_threshold: 0, ..Pager::default() }.validate().unwrap_err();
        assert_eq!(
            refused.breaches,
            ["`dirty_threshold`, where 9C stops lookups, must be above 0"]
        );
    }

    #[test]
    fn limits_beyond_counting_are_refused() {
        let pager = Pager { clean_max: u64::MAX - 100, ..Pager::default() };
        let expected = "`dirty_threshold` + `referenced_expected` + `clean_max` + `writes_max` + \
                        `loads_max` ≤ 18446744073709551615 must hold, but it is more";
        assert_eq!(pager.validate().unwrap_err().breaches, [expected]);
    }

    #[test]
    fn a_batch_beyond_what_may_be_referenced_is_refused() {
        let refused = Pager { batch_max: 2_501, ..Pager::default() }.validate();
        assert_eq!(
            refused.unwrap_err().breaches,
            ["`batch_max` ≤ `referenced_expected` must hold, but 2501 > 2500"]
        );
    }
}
