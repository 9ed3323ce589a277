//! What others ask this machine out of turn, and who is answered next by the few threads that do it.
//!
//! Those who ask take turns, and none has more than a quarter of the threads, however many requests it has. All who
//! are not of the cell count as one. What answering costs is told afterwards, and whoever has used up its allowance
//! is not heard for a while.

use std::collections::BTreeMap;

use base::{Duration, Instant};
use load::{
    Spec,
    reservoir::{Allowance, Budgets, Fair, Full},
};

use crate::mailroom::Sender;

/// What an answer costs at the least, beside what it took.
const QUERY: Duration = Duration::from_micros(500);
/// Bytes of an answer that are sent in a microsecond.
const BYTES_PER_US: u64 = 512;

/// How much there may be of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many queries are done at a time.
    pub threads: usize,
    /// The most that wait.
    pub waiting_max: usize,
    /// With so much time used up lately a machine is not heard, nor are strangers.
    pub debt_max: Duration,
    /// Of so many it is known what they have used.
    pub debtors_max: usize,
}

/// Queries that wait, and those that are being done.
#[derive(Debug)]
pub struct Queries<T> {
    limits: Limits,
    waiting: Fair<Sender, T>,
    /// How many of each are being done. None is zero.
    running: BTreeMap<Sender, usize>,
    budgets: Budgets<Sender>,
}

impl<T> Queries<T> {
    /// None yet.
    pub fn new(limits: Limits) -> Queries<T> {
        let capacity = limits.waiting_max as u64;
        let spec =
            Spec { label: "3T", name: "waiting for a thread", capacity, threshold: capacity };
        let (waiting, running) = (Fair::new(spec), BTreeMap::new());
        Queries { limits, waiting, running, budgets: Budgets::new(limits.debtors_max) }
    }

    /// Somebody asks for something. It is handed back if there is no room.
    pub fn put(&mut self, now: Instant, from: Sender, query: T) -> Result<(), Full<T>> {
        self.waiting.push(now, from, query)
    }

    /// What a thread that is free is to do, if anything.
    pub fn begin(&mut self, now: Instant) -> Option<(Sender, T)> {
        let Queries { waiting, running, limits, .. } = self;
        let each_max = limits.threads.div_ceil(4);
        let may = |from: &Sender| running.get(from).is_none_or(|count| *count < each_max);
        let (from, query) = waiting.pop_where(now, may)?;
        *running.entry(from).or_default() += 1;
        Some((from, query))
    }

    /// A query is answered: it has taken so long, and the answer has so many bytes.
    pub fn end(&mut self, now: Instant, from: Sender, took: Duration, bytes: usize) {
        if let Some(count) = self.running.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.running.remove(&from);
            }
        }
        let sent = Duration::from_micros(bytes as u64 / BYTES_PER_US);
        let cost = (QUERY + took + sent).as_nanos();
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        self.budgets.spend(now, &from, self.allowance(&from), cost);
    }

    /// How long nothing more should be heard of somebody.
    pub fn rest(&self, now: Instant, from: &Sender) -> Duration {
        self.budgets.wait(now, from, self.allowance(from))
    }

    /// A machine of the cell may use the time of one thread, and all strangers a tenth of that.
    fn allowance(&self, from: &Sender) -> Allowance {
        let burst = u64::try_from(self.limits.debt_max.as_nanos()).unwrap_or(u64::MAX);
        let per_second = if *from == Sender::Stranger { 100_000_000 } else { 1_000_000_000 };
        Allowance { burst, per_second }
    }
}

#[cfg(test)]
mod tests {
    use base::PublicKey;

    use super::*;

    const NOW: Instant = Instant::from_secs(9);

    fn machine(number: u8) -> Sender {
        Sender::Machine(PublicKey::from_bytes([number; 32]))
    }

    fn queries() -> Queries<u32> {
        let debt_max = Duration::from_secs(1);
        Queries::new(Limits { threads: 8, waiting_max: 64, debt_max, debtors_max: 9 })
    }

    #[test]
    fn one_that_asks_much_neither_fills_the_queue_nor_takes_all_threads() {
        let mut queries = queries();
        let taken = (0..99).filter(|one| queries.put(NOW, machine(1), *one).is_ok()).count();
        assert_eq!(taken, 32, "half of the queue");
        assert!(queries.put(NOW, machine(2), 7).is_ok());
        assert!(queries.put(NOW, Sender::Stranger, 8).is_ok());
        let begun: Vec<_> = std::iter::from_fn(|| queries.begin(NOW)).collect();
        let all = [(machine(1), 0), (machine(2), 7), (Sender::Stranger, 8), (machine(1), 1)];
        assert_eq!(begun, all, "and four threads are free for others");
        queries.end(NOW, machine(1), Duration::ZERO, 0);
        assert_eq!(queries.begin(NOW), Some((machine(1), 2)));
        assert_eq!(queries.begin(NOW), None);
    }

    #[test]
    fn strangers_are_one() {
        let mut queries = queries();
        (0..9).for_each(|one| assert!(queries.put(NOW, Sender::Stranger, one).is_ok()));
        assert_eq!(std::iter::from_fn(|| queries.begin(NOW)).count(), 2);
    }

    #[test]
    fn whoever_has_used_up_its_time_is_not_heard_for_a_while() {
        let mut queries = queries();
        let mut did = |from: Sender, count: u32, bytes: usize| {
            for one in 0..count {
                queries.put(NOW, from, one).unwrap();
                queries.begin(NOW).unwrap();
                queries.end(NOW, from, Duration::from_micros(500), bytes);
            }
            queries.rest(NOW, &from).as_millis()
        };
        assert_eq!(did(machine(1), 999, 0), 0);
        assert_eq!(did(machine(1), 101, 0), 100, "half a millisecond each, beside what it took");
        assert_eq!(did(machine(2), 300, 1 << 20), 0);
        assert_eq!(did(machine(2), 100, 1 << 20), 219, "3 ms each");
        assert_eq!(did(Sender::Stranger, 1_100, 0), 1_000, "a tenth of the others' time");
    }
}
