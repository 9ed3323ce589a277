//! Lines of some width at each machine, and programs that ask as often as answers come (K20).

use std::{cmp::Reverse, collections::BinaryHeap};

use base::Rng;
use overlay::Position;

use super::pastry::Pastry;

/// Messages that wait for a line before one more is dropped: six in packets, 256 in a stream.
const QUEUE: f64 = 262.0;
/// A program asks every so often at the start, never more often than the floor, and waits this much longer.
const START_S: f64 = 5.0;
const FLOOR_S: f64 = 1.0;
const PATIENCE_S: f64 = 10.0;

/// What is asked for, and for how long.
#[derive(Clone, Copy)]
pub struct Load {
    /// Of each message: a request carries as much on each of its hops as the download that answers it.
    pub octets: f64,
    /// Of the run.
    pub seconds: u32,
}

/// What came out.
pub struct Downloads {
    /// By machine that asked.
    pub answered: Vec<u32>,
    /// Of a request, in the mean.
    pub hops: f64,
    /// Between two queries at the end, in seconds, in the mean.
    pub interval: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A program asks.
    Ask(usize),
    /// A request is at a machine.
    Request { query: usize, at: usize },
    /// A download is where it was asked for.
    Answer { query: usize },
    /// A program stops to wait.
    Timeout { query: usize },
}

struct Query {
    source: usize,
    key: Position,
    is_open: bool,
}

/// A line in one direction: until when it is busy.
#[derive(Clone, Copy, Default)]
struct Line {
    free_at: f64,
}

impl Line {
    /// When these octets are through, if they have not to wait behind too many as large as they are.
    fn send(&mut self, now: f64, octets: f64, bandwidth: f64) -> Option<f64> {
        let takes = octets * 8.0 / (bandwidth * 1e6);
        let start = self.free_at.max(now);
        if start - now > QUEUE * takes {
            return None;
        }
        self.free_at = start + takes;
        Some(self.free_at)
    }
}

struct Net<'a> {
    bandwidths: &'a [f64],
    out: Vec<Line>,
    into: Vec<Line>,
    /// By moments in microseconds, then by number, so that equal moments have an order.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    number: u64,
}

impl Net<'_> {
    fn at(&mut self, moment: f64, event: Event) {
        self.number += 1;
        self.events.push(Reverse(((moment * 1e6) as u64, self.number, event)));
    }

    /// Sends octets from one machine to another; nothing comes of it where a queue is full.
    fn send(&mut self, now: f64, from: usize, to: usize, octets: f64, event: Event) {
        let sent = self.out[from].send(now, octets, self.bandwidths[from]);
        let taken = sent.and_then(|sent| self.into[to].send(sent, octets, self.bandwidths[to]));
        if let Some(moment) = taken {
            self.at(moment, event);
        }
    }
}

/// Lets every machine ask for places at random.
pub fn downloads(pastry: &Pastry, bandwidths: &[f64], load: Load, rng: &mut Rng) -> Downloads {
    let count = bandwidths.len();
    let lines = vec![Line::default(); count];
    let mut net =
        Net { bandwidths, out: lines.clone(), into: lines, events: BinaryHeap::new(), number: 0 };
    let mut intervals = vec![START_S; count];
    let mut answered = vec![0; count];
    let (mut queries, mut hops): (Vec<Query>, u64) = (Vec::new(), 0);
    for machine in 0..count {
        net.at(START_S * rng.unit(), Event::Ask(machine));
    }
    while let Some(Reverse((moment, _, event))) = net.events.pop() {
        let now = moment as f64 / 1e6;
        if now >= f64::from(load.seconds) {
            break;
        }
        match event {
            Event::Ask(source) => {
                let query = queries.len();
                queries.push(Query { source, key: Position(rng.next_u64()), is_open: true });
                net.at(now, Event::Request { query, at: source });
                net.at(now + intervals[source] + PATIENCE_S, Event::Timeout { query });
                net.at(now + intervals[source], Event::Ask(source));
            }
            Event::Request { query, at } => {
                let Query { source, key, .. } = queries[query];
                match pastry.next(at, key) {
                    Some(to) => {
                        hops += 1;
                        let event = Event::Request { query, at: to };
                        net.send(now, at, to, load.octets, event);
                    }
                    None => net.send(now, at, source, load.octets, Event::Answer { query }),
                }
            }
            Event::Answer { query } => {
                let query = &mut queries[query];
                if std::mem::take(&mut query.is_open) {
                    answered[query.source] += 1;
                    let interval = &mut intervals[query.source];
                    *interval = (*interval - 1.0).max(FLOOR_S);
                }
            }
            Event::Timeout { query } => {
                let query = &mut queries[query];
                if std::mem::take(&mut query.is_open) {
                    intervals[query.source] += 1.0;
                }
            }
        }
    }
    Downloads {
        answered,
        hops: hops as f64 / queries.len().max(1) as f64,
        interval: intervals.iter().sum::<f64>() / count as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k_e7::pastry::View;

    #[test]
    fn a_line_takes_one_after_the_other_and_no_more_than_its_queue() {
        let mut line = Line::default();
        // A megabit on a line of one megabit a second.
        assert_eq!(line.send(0.0, 125_000.0, 1.0), Some(1.0));
        assert_eq!(line.send(0.5, 125_000.0, 1.0), Some(2.0));
        assert_eq!(line.send(9.0, 125_000.0, 1.0), Some(10.0));
        let taken = (0..1_000).filter(|_| line.send(9.0, 125_000.0, 1.0).is_some()).count();
        assert_eq!(taken, 262);
    }

    #[test]
    fn programs_ask_as_often_as_they_may_where_lines_are_wide_and_seldom_where_nothing_comes() {
        let check = |bandwidth: f64, seconds| {
            let bandwidths = vec![bandwidth; 32];
            let mut rng = Rng::new(1);
            let pastry = Pastry::new(&bandwidths, 1, View::Ring, &mut rng);
            let load = Load { octets: 8_192.0, seconds };
            downloads(&pastry, &bandwidths, load, &mut rng)
        };
        let (wide, narrow) = (check(100.0, 300), check(1e-5, 300));
        assert_eq!(wide.interval, FLOOR_S);
        assert!(wide.answered.iter().all(|count| (270..=300).contains(count)));
        assert!(narrow.interval > 10.0 && narrow.answered.iter().all(|count| *count < 20));
    }
}
