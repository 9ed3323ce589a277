//! Random pushes and pops on each reservoir, beside the plainest thing that does the same.

use std::collections::{BTreeMap, VecDeque};

use base::{Duration, Instant};
use load::{
    Spec,
    reservoir::{
        Cache, Duty, Fair, Full, Limit, Marks, Meter, NotInserted, Outcome, Outstanding, Popped,
        Ranks, Releasing, Shedding, Tally, Throttling,
    },
};
use proptest::{collection::vec, prelude::*};

fn spec(capacity: u64, threshold: u64) -> Spec {
    Spec { label: "T", name: "test", capacity, threshold }
}

fn at(second: usize) -> Instant {
    Instant::from_secs(second as u64)
}

/// What is true of every meter.
fn balances(meter: Meter, level: usize, spec: &Spec) -> Result<(), TestCaseError> {
    prop_assert_eq!(meter.level, level as u64);
    prop_assert_eq!(meter.entered, meter.left + meter.level);
    prop_assert!(meter.level <= meter.level_max);
    prop_assert!(meter.level_max <= spec.capacity);
    prop_assert!(meter.released + meter.expired <= meter.left);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_throttling_queue_is_a_queue_with_a_bound(
        threshold in 1..6u64,
        between in 0..4u64,
        pushes in vec(any::<bool>(), 0..99),
    ) {
        let mut queue = Throttling::new(spec(threshold + between, threshold));
        let mut naive = VecDeque::new();
        let mut closed = 0;
        for (second, is_push) in pushes.into_iter().enumerate() {
            let now = at(second);
            prop_assert_eq!(queue.is_open(), (naive.len() as u64) < threshold);
            if !is_push {
                prop_assert_eq!(queue.pop(now), naive.pop_front());
            } else if naive.len() as u64 == threshold + between {
                prop_assert_eq!(queue.push(now, second), Err(Full(second)));
            } else {
                prop_assert_eq!(queue.push(now, second), Ok(()));
                naive.push_back(second);
            }
            let later = at(second + 1);
            closed += u64::from(!queue.is_open());
            prop_assert_eq!(queue.meter(later).throttled, Duration::from_secs(closed));
            balances(queue.meter(later), naive.len(), queue.spec())?;
        }
    }

    #[test]
    fn a_releasing_queue_loses_nothing_and_keeps_the_order(
        capacity in 1..6u64,
        pushes in vec(any::<bool>(), 0..99),
    ) {
        let mut queue = Releasing::new(spec(capacity, capacity));
        let mut left = Vec::new();
        let mut pushed = 0;
        for is_push in pushes {
            if is_push {
                left.extend(queue.push(pushed));
                pushed += 1;
            } else {
                left.extend(queue.pop());
            }
            balances(queue.meter(), pushed - left.len(), queue.spec())?;
        }
        left.extend(std::iter::from_fn(|| queue.pop()));
        prop_assert_eq!(left, (0..pushed).collect::<Vec<_>>());
    }

    #[test]
    fn a_shedding_queue_loses_only_what_it_hands_back(
        capacity in 0..6u64,
        ops in vec((prop::option::of(0..9usize), any::<bool>()), 0..99),
    ) {
        let mut queue = Shedding::new(spec(capacity, capacity));
        let mut naive = VecDeque::new();
        let (mut shed, mut serving) = (0, 0);
        for (second, (patience, is_done)) in ops.into_iter().enumerate() {
            if let Some(patience) = patience {
                match queue.push(second, at(second + patience)) {
                    Ok(()) => naive.push_back((second + patience, second)),
                    Err(back) => {
                        prop_assert_eq!(back.rectify(|item| item), second);
                        prop_assert_eq!(naive.len() as u64 + serving, capacity);
                        shed += 1;
                    }
                }
            } else if is_done && serving > 0 {
                queue.done();
                serving -= 1;
            } else {
                let expected = naive.pop_front().map(|(deadline, item)| {
                    if deadline <= second { Popped::Expired(item) } else { Popped::Fresh(item) }
                });
                prop_assert_eq!(queue.pop(at(second)), expected);
                serving += u64::from(matches!(expected, Some(Popped::Fresh(_))));
            }
            prop_assert_eq!((queue.meter().shed, queue.serving()), (shed, serving));
            balances(queue.meter(), naive.len() + serving as usize, queue.spec())?;
        }
    }

    #[test]
    fn marks_hold_the_last_word_on_each_object(
        ops in vec((0..6u8, prop::option::of(0..20usize), any::<bool>()), 0..99),
    ) {
        let mut marks = Marks::new(spec(6, 6));
        let mut naive = BTreeMap::new();
        for (second, (key, wait, is_removal)) in ops.into_iter().enumerate() {
            if let Some(wait) = wait {
                let old = naive.insert(key, (at(second + wait), second));
                prop_assert_eq!(marks.mark(key, second, at(second + wait)), old.map(|old| old.1));
            } else if is_removal {
                prop_assert_eq!(marks.remove(&key), naive.remove(&key).map(|old| old.1));
            } else {
                // A later mark has a later value, so equals in due moment leave in order of values.
                let due = naive.iter().filter(|(_, mark)| mark.0 <= at(second));
                let first = due.min_by_key(|(_, mark)| **mark).map(|(&key, mark)| (key, mark.1));
                prop_assert_eq!(marks.take_due(at(second)), first);
                first.map(|(key, _)| naive.remove(&key));
            }
            prop_assert_eq!(marks.due_at(), naive.values().map(|mark| mark.0).min());
            balances(marks.meter(), naive.len(), marks.spec())?;
        }
    }

    #[test]
    fn ranks_hold_each_object_once_and_give_the_lowest_and_longest_waiting(
        ops in vec((0..6u8, prop::option::of(1..4u32), any::<bool>()), 0..99),
    ) {
        let mut ranks = Ranks::new(spec(6, 6));
        let mut naive: Vec<(u8, u32)> = Vec::new();
        for (key, rank, is_removal) in ops {
            if let Some(rank) = rank {
                ranks.put(key, rank);
                if !naive.contains(&(key, rank)) {
                    naive.retain(|entry| entry.0 != key);
                    naive.push((key, rank));
                }
            } else if is_removal {
                let before = naive.len();
                naive.retain(|entry| entry.0 != key);
                prop_assert_eq!(ranks.remove(&key), naive.len() < before);
            } else {
                let index = (0..naive.len()).min_by_key(|&index| naive[index].1);
                prop_assert_eq!(ranks.take(9), index.map(|index| naive.remove(index)));
            }
            prop_assert!(naive.iter().all(|&(key, rank)| ranks.rank(&key) == Some(rank)));
            balances(ranks.meter(), naive.len(), ranks.spec())?;
        }
    }

    /// Uses are told in any order, and things weigh different amounts.
    #[test]
    fn a_cache_gives_out_what_was_used_least_recently(
        capacity in 1..12u64,
        ops in vec((0..8u8, 0..3u8, 0..6u64, 0..20usize), 0..99),
    ) {
        let mut cache = Cache::new(spec(capacity, capacity));
        // By last use, equals by when we heard of it; each with its key and weight.
        let mut naive: Vec<(Instant, usize, u8, u64)> = Vec::new();
        for (turn, (key, op, weight, second)) in ops.into_iter().enumerate() {
            let old = naive.iter().position(|thing| thing.2 == key);
            match op {
                0 => {
                    let mut early = Vec::new();
                    cache.put(key, turn, weight, at(second), |key, _| early.push(key));
                    let weight = weight.max(1);
                    let before = old.map(|old| naive.remove(old));
                    let used_at = before.map_or(at(second), |before| at(second).max(before.0));
                    // As if there were room; then the first go, but one too heavy goes alone.
                    naive.push((used_at, turn, key, weight));
                    naive.sort_unstable();
                    let mut expected = Vec::new();
                    if weight > capacity {
                        naive.retain(|thing| thing.2 != key);
                        expected.push(key);
                    }
                    while naive.iter().map(|thing| thing.3).sum::<u64>() > capacity {
                        expected.push(naive.remove(0).2);
                    }
                    prop_assert_eq!(early, expected);
                }
                1 => {
                    prop_assert_eq!(cache.touch(&key, at(second)), old.is_some());
                    if let Some(old) = old {
                        let (used_at, heard, ..) = naive[old];
                        (naive[old].0, naive[old].1) = (used_at, heard).max((at(second), turn));
                        naive.sort_unstable();
                    }
                }
                _ => {
                    prop_assert_eq!(cache.remove(&key).is_some(), old.is_some());
                    naive.retain(|thing| thing.2 != key);
                }
            }
            let order: Vec<_> = cache.iter().map(|(used_at, &key)| (used_at, key)).collect();
            prop_assert_eq!(order, naive.iter().map(|t| (t.0, t.2)).collect::<Vec<_>>());
            let level: u64 = naive.iter().map(|thing| thing.3).sum();
            balances(cache.meter(), level as usize, cache.spec())?;
        }
    }

    #[test]
    fn a_tally_of_amounts_never_holds_more_than_fits(
        threshold in 1..20u64,
        between in 0..9u64,
        ops in vec((any::<bool>(), 0..9u64), 0..99),
    ) {
        let mut tally = Tally::new(spec(threshold + between, threshold));
        let (mut level, mut closed) = (0, 0);
        for (second, (is_entry, amount)) in ops.into_iter().enumerate() {
            if !is_entry {
                let amount = amount.min(level);
                tally.leave(at(second), amount);
                level -= amount;
            } else if level + amount > threshold + between {
                prop_assert!(!tally.has_room(amount));
                prop_assert_eq!(tally.enter(at(second), amount), Err(Full(amount)));
            } else {
                prop_assert_eq!(tally.enter(at(second), amount), Ok(()));
                level += amount;
            }
            prop_assert_eq!(tally.is_open(), level < threshold);
            closed += u64::from(!tally.is_open());
            let meter = tally.meter(at(second + 1));
            prop_assert_eq!(meter.throttled, Duration::from_secs(closed));
            balances(meter, level as usize, tally.spec())?;
        }
    }

    #[test]
    fn what_is_outstanding_is_bounded_and_answered_once(
        capacity in 1..5u64,
        ops in vec((0..8u8, any::<bool>()), 0..99),
    ) {
        let mut requests = Outstanding::new(spec(capacity, capacity));
        let mut naive = BTreeMap::new();
        for (second, (key, is_request)) in ops.into_iter().enumerate() {
            if !is_request {
                prop_assert_eq!(requests.remove(at(second), &key), naive.remove(&key));
            } else if naive.contains_key(&key) {
                let expected = Err(NotInserted::Taken(key, second));
                prop_assert_eq!(requests.insert(at(second), key, second), expected);
            } else if naive.len() as u64 == capacity {
                let expected = Err(NotInserted::Full(key, second));
                prop_assert_eq!(requests.insert(at(second), key, second), expected);
            } else {
                prop_assert_eq!(requests.insert(at(second), key, second), Ok(()));
                naive.insert(key, second);
            }
            balances(requests.meter(at(second)), naive.len(), requests.spec())?;
        }
    }

    #[test]
    fn in_a_fair_queue_nobody_waits_longer_than_a_round_for_a_turn(
        capacity in 1..20u64,
        ops in vec(prop::option::of(0..4usize), 0..200),
    ) {
        let mut queue = Fair::new(spec(capacity, capacity));
        let mut naive: [VecDeque<usize>; 4] = Default::default();
        // How many turns others have had since this source last had one or had nothing waiting.
        let mut waited = [0; 4];
        for (second, source) in ops.into_iter().enumerate() {
            let now = at(second);
            let level: usize = naive.iter().map(VecDeque::len).sum();
            if let Some(source) = source {
                let has_room = (naive[source].len() as u64) < capacity - level as u64;
                prop_assert_eq!(queue.has_room(&source), has_room);
                prop_assert_eq!(queue.push(now, source, second).is_ok(), has_room);
                if has_room {
                    naive[source].push_back(second);
                }
            } else if let Some((source, item)) = queue.pop(now) {
                prop_assert_eq!(Some(item), naive[source].pop_front());
                waited[source] = 0;
                for other in (0..4).filter(|&other| other != source) {
                    waited[other] = if naive[other].is_empty() { 0 } else { waited[other] + 1 };
                    prop_assert!(waited[other] < 4, "{} starves", other);
                }
            } else {
                prop_assert_eq!(level, 0);
            }
            let level = naive.iter().map(VecDeque::len).sum();
            balances(queue.meter(now), level, queue.spec())?;
        }
    }

    #[test]
    fn duty_keeps_its_share_whatever_the_work(
        percent in 1..=100u32,
        work in vec((0..1_000_000u64, 0..1_000u64), 1..50),
    ) {
        let mut duty = Duty::new(percent);
        let mut now = Instant::from_secs(1);
        for (nanos, delay) in work {
            now = duty.may_start_at().expect("no work runs").max(now) + Duration::from_nanos(delay);
            let start = now;
            prop_assert_eq!(duty.begin(now), Ok(()));
            now = now + Duration::from_nanos(nanos);
            duty.end(now);
            // From each start to the next possible one, the share is kept to the nanosecond.
            let next = duty.may_start_at().expect("no work runs");
            let allowed = next.since(start).as_nanos() * u128::from(percent);
            prop_assert!(u128::from(nanos) * 100 <= allowed);
            prop_assert!(u128::from(nanos) * 100 + 100 > allowed, "no longer than it must");
        }
    }

    #[test]
    fn a_limit_stays_between_one_and_its_ceiling(
        ceiling in 1..20u32,
        ops in vec((any::<bool>(), any::<prop::sample::Index>(), 0..4u8), 0..300),
    ) {
        let mut limit = Limit::new(ceiling, Duration::from_secs(20));
        let mut permits = Vec::new();
        for (second, (is_start, index, outcome)) in ops.into_iter().enumerate() {
            if is_start {
                let permit = limit.begin(at(second));
                prop_assert_eq!(permit.is_some(), (permits.len() as u32) < limit.get());
                permits.extend(permit);
            } else if !permits.is_empty() {
                let permit = permits.swap_remove(index.index(permits.len()));
                let outcome = match outcome {
                    0 => Outcome::Overloaded,
                    1 => Outcome::Neutral,
                    _ => Outcome::Done,
                };
                limit.end(at(second), permit, outcome);
            }
            prop_assert!((1..=ceiling).contains(&limit.get()));
            prop_assert_eq!(limit.running() as usize, permits.len());
            prop_assert!(limit.running() <= ceiling);
        }
    }
}
