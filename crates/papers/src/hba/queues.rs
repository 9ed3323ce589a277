//! Clients that do one operation after the other, and groups that serve them in turn: a model of time.

use std::{cmp::Reverse, collections::BinaryHeap};

/// A message to a group, and how long that works on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) group: u32,
    pub(crate) work_us: u64,
}

/// The mean time of an operation in microseconds. Each client is at one stop of its operation at a time; a
/// message takes `delay_us` each way; a group works on one thing at a time, in order of arrival.
pub(crate) fn time_per_operation(
    groups: u32,
    clients: usize,
    delay_us: u64,
    operations: &[Vec<Stop>],
) -> f64 {
    let mut free_at = vec![0u64; groups as usize];
    let mut next = 0;
    let mut total = 0;
    // (arrival, client, operation, stop, began)
    let mut events = BinaryHeap::new();
    for client in 0..clients.min(operations.len()) {
        events.push(Reverse((delay_us, client, next, 0usize, 0u64)));
        next += 1;
    }
    while let Some(Reverse((now, client, operation, at, began))) = events.pop() {
        let Stop { group, work_us } = operations[operation][at];
        let done = now.max(free_at[group as usize]) + work_us;
        free_at[group as usize] = done;
        let heard = done + delay_us;
        if at + 1 < operations[operation].len() {
            events.push(Reverse((heard + delay_us, client, operation, at + 1, began)));
            continue;
        }
        total += heard - began;
        if next < operations.len() {
            events.push(Reverse((heard + delay_us, client, next, 0, heard)));
            next += 1;
        }
    }
    total as f64 / operations.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_waits_for_messages_and_work_and_many_for_each_other() {
        let stop = |group| Stop { group, work_us: 10 };
        let operations = vec![vec![stop(0), stop(1)]; 100];
        assert_eq!(time_per_operation(2, 1, 50, &operations), 220.0);
        let one_stop = vec![vec![stop(0)]; 1_000];
        let crowded = time_per_operation(1, 100, 0, &one_stop);
        assert!((900.0..=1_000.0).contains(&crowded), "{crowded}");
    }
}
