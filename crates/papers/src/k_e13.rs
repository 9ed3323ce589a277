//! Whether a network in one process sends what one of processes with sockets and a real clock sends (Table IV).

mod household;
mod peer;

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{Failure, Trial, swarm::tally::spread};

pub use household::live;
use peer::{Peer, Send, Traffic};

/// What a message takes in the process, in microseconds.
const LATENCY_US: u64 = 100;

type Column = fn(&Traffic) -> u64;

/// What is compared.
const COLUMNS: [(&str, Column); 4] = [
    ("packets-in", |traffic| traffic.packets_in),
    ("octets-in", |traffic| traffic.octets_in),
    ("packets-out", |traffic| traffic.packets_out),
    ("octets-out", |traffic| traffic.octets_out),
];

/// Measures the table.
pub(crate) fn run(trial: &mut Trial) -> Result<(), Failure> {
    let seconds = trial.duration("seconds");
    let [machines, runs] = ["machines", "runs"].map(|name| trial.constant(name));
    let mut rng = trial.rng();
    let (mut within, mut apart) = (Vec::new(), Vec::new());
    for run in 0..runs as u32 {
        let seed = rng.next_u64();
        trial.say(&format!("run {run} of {runs}: in one process"));
        within.extend(in_process(Peer::network(machines as usize, seed), seconds));
        trial.say(&format!("run {run} of {runs}: {seconds} s as {machines} processes"));
        apart.extend(household::run(machines as usize, seed, seconds)?);
    }
    for (name, column) in COLUMNS {
        let of = |all: &[Traffic]| {
            spread(&all.iter().map(|traffic| column(traffic) as f64).collect::<Vec<_>>())
        };
        let ((one, one_sd), (many, many_sd)) = (of(&within), of(&apart));
        trial.number(format!("{name}/apart"), (one - many).abs() / many);
        trial.number(format!("{name}/one-process"), one);
        trial.number(format!("{name}/one-process-sd"), one_sd);
        trial.number(format!("{name}/processes"), many);
        trial.number(format!("{name}/processes-sd"), many_sd);
    }
    let sum = |of: Column| apart.iter().map(of).sum::<u64>() as f64;
    trial.number("processes/lost", sum(|t| t.packets_out) - sum(|t| t.packets_in));
    trial.number("processes/answered", sum(|t| t.answers) / sum(|t| t.queries));
    Ok(())
}

/// Runs them by a clock of their own.
fn in_process(mut peers: Vec<Peer>, seconds: u64) -> Vec<Traffic> {
    let end = seconds * 1_000_000;
    let mut out = Vec::new();
    let mut number = 0u64;
    // By moment, then by number; without octets it is a deadline.
    let mut events = BinaryHeap::new();
    for (at, peer) in peers.iter().enumerate() {
        events.push(Reverse((peer.wake_at(), at as u64, at, Vec::new())));
    }
    while let Some(Reverse((now, _, at, octets))) = events.pop() {
        if octets.is_empty() {
            // At the end nobody asks any more; what is under way arrives.
            if now >= end {
                continue;
            }
            peers[at].tick(now, &mut out);
            number += 1;
            events.push(Reverse((peers[at].wake_at(), number, at, Vec::new())));
        } else {
            peers[at].take(now, &octets, &mut out);
        }
        for Send { to, octets } in out.drain(..) {
            number += 1;
            events.push(Reverse((now + LATENCY_US, number, to, octets)));
        }
    }
    peers.into_iter().map(|peer| peer.traffic).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_is_answered_and_everything_sent_arrives() {
        let all = in_process(Peer::network(24, 3), 20);
        let sum = |of: Column| all.iter().map(of).sum::<u64>();
        assert!(sum(|t| t.queries) > 24 * 150);
        assert_eq!(sum(|t| t.answers), sum(|t| t.queries));
        assert_eq!(sum(|t| t.packets_in), sum(|t| t.packets_out));
        assert_eq!(sum(|t| t.octets_in), sum(|t| t.octets_out));
        // With fingers a question takes about half of log2 24 hops, not half of the ring.
        let questions = sum(|t| t.packets_out) as f64 / sum(|t| t.queries) as f64;
        assert!((2.5..7.0).contains(&questions), "{questions}");
    }

    #[test]
    fn strange_octets_are_counted_and_have_no_effect() {
        let mut peers = Peer::network(4, 1);
        let mut out = Vec::new();
        let stranger = base::encode(&(1u8, 7u64, 200u8, 1u32, Vec::<u8>::new()));
        for octets in [&[][..], &[9; 18], &[255; 3_000], &stranger] {
            peers[0].take(0, octets, &mut out);
        }
        assert_eq!((peers[0].traffic.packets_in, out.len()), (4, 0));
    }
}
