//! Limits and periods of the client (figure 6).

use base::Duration;

use super::refusal::{PERIOD_MAX, Refused, Review};
use crate::{graph::words::span, graphs};

/// The shortest time after which a cached file can be cold: what is used daily is not.
const COLD_MIN: Duration = Duration::from_secs(86_400);

const KEYS: &[(&str, &str)] = &[
    ("6A", "buffered_max"),
    ("6B", "updates_max"),
    ("6C", "sent_max"),
    ("6D", "notices_max"),
    ("6E", "cache_bytes"),
    ("6F", "clean_bytes"),
];

/// Limits and periods of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// 6A: updates that the driver keeps before it must hand them on.
    pub buffered_max: u64,
    /// How often the driver hands its updates on.
    pub flush_period: Duration,
    /// 6B: updates kept for merging. More than `buffered_max`, because those can all still arrive.
    pub updates_max: u64,
    /// How long an update waits in 6B, to be merged with others, before it is pushed; at most a day,
    /// because 6B counts on it to drain.
    pub push_period: Duration,
    /// 6C: updates pushed and not yet acknowledged.
    pub sent_max: u64,
    /// 6D: notices of a first replica that wait for their disk write.
    pub notices_max: u64,
    /// How often the client asks which of its dirty files are clean, to make up for shed notices; at
    /// most a day, because what 6D sheds is lost until then.
    pub rectify_period: Duration,
    /// 6E: all room of the cache, in bytes, and what dirty files may come to take. More than
    /// `clean_bytes`: applications can create dirty files up to `cache_bytes` − `clean_bytes`, and
    /// only by modifying clean files do they get further.
    pub cache_bytes: u64,
    /// 6F: of that, what clean files may take.
    pub clean_bytes: u64,
    /// How long a cached file must be unused to be cold, at least a day (L28).
    pub cold_after: Duration,
}

impl Default for Client {
    fn default() -> Client {
        Client {
            buffered_max: 1_024,
            flush_period: Duration::from_millis(100),
            updates_max: 16_384,
            push_period: Duration::from_secs(1),
            sent_max: 4_096,
            notices_max: 1_024,
            rectify_period: Duration::from_secs(600),
            cache_bytes: 16 << 30,
            clean_bytes: 8 << 30,
            cold_after: Duration::from_secs(7 * 86_400),
        }
    }
}

impl Client {
    /// Whether these settings can stand together.
    pub fn validate(&self) -> Result<(), Refused> {
        let mut review = Review::new("client");
        review.require_immune(&graphs::client::graph(self), KEYS);
        review.require_periods(&[
            ("flush_period", self.flush_period),
            ("push_period", self.push_period),
            ("rectify_period", self.rectify_period),
            ("cold_after", self.cold_after),
        ]);
        review.require_at_most(
            PERIOD_MAX,
            &[("push_period", self.push_period), ("rectify_period", self.rectify_period)],
        );
        let cold_after = self.cold_after;
        review.require(cold_after.is_zero() || cold_after >= COLD_MIN, || {
            let (min, is) = (span(COLD_MIN), span(cold_after));
            format!("{min} ≤ `cold_after` must hold, but it is {is}")
        });
        review.verdict()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_stand_together() {
        assert_eq!(Client::default().validate(), Ok(()));
        let labels: Vec<_> = KEYS.iter().map(|&(label, _)| label).collect();
        let graph = graphs::client::graph(&Client::default());
        assert_eq!(labels, graph.labels().collect::<Vec<_>>());
    }

    #[test]
    fn an_update_set_that_its_buffer_can_flood_is_refused_with_the_inequality() {
        let client = Client { updates_max: 500, ..Client::default() };
        assert_eq!(
            client.validate().unwrap_err().to_string(),
            "the client settings cannot be used\n\
             6B (update set): its threshold would be 500 − 1,024 (6A), which is not above 0; give \
             6B more than 1,024 updates, or 6A less, or throttle nearer to 6B (L23); \
             `buffered_max` is for 6A, `updates_max` is for 6B"
        );
    }

    #[test]
    fn a_cache_that_is_all_clean_is_refused() {
        let client = Client { clean_bytes: 16 << 30, ..Client::default() };
        let refused = client.validate().unwrap_err();
        assert_eq!(refused.breaches.len(), 1);
        assert!(refused.breaches[0].contains("16 GiB − 16 GiB (6F)"), "{refused}");
    }

    #[test]
    fn a_slow_flush_is_refused_because_a_throttle_reaches_across_it() {
        let client = Client { flush_period: Duration::from_secs(61), ..Client::default() };
        let refused = client.validate().unwrap_err();
        assert!(refused.breaches[0].contains("load takes 61 s from there"), "{refused}");
    }

    #[test]
    fn periods_are_not_zero() {
        let client = Client { push_period: Duration::ZERO, ..Client::default() };
        let refused = client.validate().unwrap_err();
        assert_eq!(refused.breaches, ["`push_period` must be above 0"]);
    }

    #[test]
    fn what_others_count_on_comes_within_a_day() {
        let (push_period, rectify_period) = (Duration::MAX, Duration::from_secs(90_000));
        let client = Client { push_period, rectify_period, ..Client::default() };
        let breaches = client.validate().unwrap_err().breaches;
        assert!(breaches[0].starts_with("`push_period` ≤ 1 d must hold, but it is "));
        assert_eq!(breaches[1..], ["`rectify_period` ≤ 1 d must hold, but it is 25 h"]);
    }

    #[test]
    fn what_was_used_today_is_not_cold() {
        let client = Client { cold_after: Duration::from_secs(3_600), ..Client::default() };
        let expected = "1 d ≤ `cold_after` must hold, but it is 1 h";
        assert_eq!(client.validate().unwrap_err().breaches, [expected]);
    }
}
