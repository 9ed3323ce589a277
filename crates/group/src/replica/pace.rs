//! How fast those are who lead, as far as this member has seen: who is much slower than others loses the lead.
//!
//! A leader behind a narrow wire need not be late, and no wait ends because of it, but all wait for it. So every so
//! often a member looks at how soon decisions followed on one another. If they did so slowly, and another member
//! may do better, it does not vote for what the leader proposes next. All members look at the same places, so those
//! who have seen the same do so together. One alone, who may lie, changes nothing.

use std::collections::BTreeMap;

use base::{Duration, Instant};

use crate::seat::{Seat, Seats};

/// After every so many decisions it is looked at.
const TERM: u64 = 32;
/// With fewer to go by nothing is said.
const TIMES_MIN: usize = 16;
/// Another one must be so many times as fast.
const TIMES_FASTER: u32 = 2;
/// Nobody loses the lead for less than this, and to somebody who has not led yet for no less than that.
const SLOW: Duration = Duration::from_millis(20);
const VERY_SLOW: Duration = Duration::from_millis(60);
/// Somebody who has just come to lead is left alone for so long.
const GRACE: Duration = Duration::from_secs(5);

/// What is known of who leads.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Who leads, and since when.
    leader: Option<(Seat, Instant)>,
    /// When the last decision was made, if this member had a part in it.
    last_at: Option<Instant>,
    /// How long each decision took after the one before. At most [`TERM`].
    times: Vec<Duration>,
    /// Of those who have led: a time that three of four decisions took longer than. At most one for each member.
    known: BTreeMap<Seat, Duration>,
}

impl Pace {
    /// Something was decided. If others have told so, it is not known when.
    pub(super) fn on_decided(&mut self, now: Instant, height: u64, leader: Seat, is_told: bool) {
        if self.leader.is_none_or(|(before, _)| before != leader) {
            (self.leader, self.last_at) = (Some((leader, now)), None);
            self.times.clear();
        }
        let last_at = std::mem::replace(&mut self.last_at, (!is_told).then_some(now));
        if let Some(at) = last_at.filter(|_| !is_told) {
            self.times.push(now.since(at));
        }
        if height.is_multiple_of(TERM) {
            self.times.sort_unstable();
            if self.times.len() >= TIMES_MIN {
                self.known.insert(leader, self.times[self.times.len() / 4]);
            }
            self.times.clear();
        }
    }

    /// There are other members.
    pub(super) fn retain(&mut self, members: &Seats) {
        self.known.retain(|seat, _| members.contains(seat));
    }

    /// Whether somebody else should lead than who proposes something new at this place.
    pub(super) fn is_too_slow(
        &self,
        now: Instant,
        (height, round): (u64, u32),
        leader: &Seat,
        members: &Seats,
    ) -> bool {
        let Some(pace) = self.known.get(leader).filter(|pace| **pace > SLOW) else { return false };
        let is_due = match round {
            0 => {
                let is_new = self.leader.is_some_and(|(_, since)| now.since(since) < GRACE);
                (height - 1).is_multiple_of(TERM) && !is_new
            }
            // Whoever leads has failed, and it is somebody else's turn; but everybody's in the end.
            _ => (round as usize) < members.list().len(),
        };
        let mut others = members.list().iter().filter(|seat| *seat != leader);
        let is_better = |seat: &Seat| match self.known.get(seat) {
            Some(other) => *other * TIMES_FASTER < *pace,
            None => *pace > VERY_SLOW,
        };
        is_due && others.any(is_better)
    }
}

#[cfg(test)]
mod tests {
    use base::PublicKey;

    use super::*;

    fn seat(number: u8) -> Seat {
        Seat { key: PublicKey::from_bytes([number; 32]), incarnation: 0 }
    }

    fn members() -> Seats {
        Seats::new((0..4).map(seat).collect()).unwrap()
    }

    /// One member leads from a height on, with so many milliseconds between decisions, for a term.
    fn lead(pace: &mut Pace, now: &mut Instant, height: u64, leader: u8, millis: u64) {
        for height in height..height + TERM {
            *now = *now + Duration::from_millis(millis);
            pace.on_decided(*now, height, seat(leader), false);
        }
    }

    #[test]
    fn who_is_slow_loses_the_lead_at_the_end_of_a_term_and_not_to_somebody_as_slow() {
        let (mut pace, mut now) = (Pace::default(), Instant::from_secs(1));
        lead(&mut pace, &mut now, 1, 0, 400);
        let is_slow = |pace: &Pace, now, place| pace.is_too_slow(now, place, &seat(0), &members());
        assert!(is_slow(&pace, now, (33, 0)));
        assert!(!is_slow(&pace, now, (34, 0)), "all look at the same places");
        for other in 1..4 {
            lead(&mut pace, &mut now, 1 + u64::from(other) * TERM, other, 300);
        }
        assert!(!is_slow(&pace, now, (129, 0)), "the others are hardly faster");
        lead(&mut pace, &mut now, 129, 3, 10);
        assert!(is_slow(&pace, now, (161, 1)), "the third is now");
        assert!(!is_slow(&pace, now, (161, 4)), "everybody may lead in the end");
        assert!(!pace.is_too_slow(now, (161, 0), &seat(3), &members()));
    }

    #[test]
    fn who_has_just_come_to_lead_and_who_is_quick_enough_is_left_alone() {
        let (mut pace, mut now) = (Pace::default(), Instant::from_secs(1));
        lead(&mut pace, &mut now, 1, 0, 100);
        assert!(!pace.is_too_slow(now, (33, 0), &seat(0), &members()), "it has led for 3 s");
        lead(&mut pace, &mut now, 33, 0, 400);
        assert!(pace.is_too_slow(now, (65, 0), &seat(0), &members()));
        lead(&mut pace, &mut now, 65, 0, 50);
        assert!(!pace.is_too_slow(now, (97, 0), &seat(0), &members()), "who knows of the others?");
        lead(&mut pace, &mut now, 97, 0, 10);
        assert!(!pace.is_too_slow(now, (129, 0), &seat(0), &members()));
    }

    #[test]
    fn what_was_learnt_from_others_and_long_pauses_say_nothing() {
        let (mut pace, mut now) = (Pace::default(), Instant::from_secs(1));
        for height in 1..=TERM {
            now = now + Duration::from_millis(if height % 2 == 0 { 5 } else { 5_000 });
            pace.on_decided(now, height, seat(0), false);
        }
        assert!(!pace.is_too_slow(now, (33, 0), &seat(0), &members()));
        for height in 33..=64 {
            now = now + Duration::from_millis(400);
            pace.on_decided(now, height, seat(0), height % 3 == 0);
        }
        assert!(!pace.is_too_slow(now, (65, 0), &seat(0), &members()), "too little to go by");
    }
}
