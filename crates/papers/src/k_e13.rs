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
    // By moment, then by number; without octets it is a deadline, if it is the last one that its machine has set.
    let mut events = BinaryHeap::new();
    let mut deadlines: Vec<u64> = peers.iter().map(Peer::wake_at).collect();
    for (at, deadline) in deadlines.iter().enumerate() {
        events.push(Reverse((*deadline, at as u64, at, Vec::new())));
    }
    while let Some(Reverse((now, _, at, octets))) = events.pop() {
        if octets.is_empty() {
            // At the end nobody asks any more; what is under way arrives.
            if now >= end || now != deadlines[at] {
                continue;
            }
            peers[at].tick(now, &mut out);
        } else {
            peers[at].take(now, &octets, &mut out);
        }
        let deadline = peers[at].wake_at();
        if std::mem::replace(&mut deadlines[at], deadline) != deadline {
            number += 1;
            events.push(Reverse((deadline, number, at, Vec::new())));
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
    fn everything_sent_arrives_and_programs_ask_as_often_as_they_are_answered() {
        let all = in_process(Peer::network(24, 3), 120);
        let sum = |of: Column| all.iter().map(of).sum::<u64>();
        // Answered at once, each asks after 5, 4, 3, 2 s and then every second.
        for traffic in &all {
            assert!((105..=112).contains(&traffic.queries), "{}", traffic.queries);
        }
        assert_eq!(sum(|t| t.answers), sum(|t| t.queries));
        assert_eq!(sum(|t| t.packets_in), sum(|t| t.packets_out));
        assert_eq!(sum(|t| t.octets_in), sum(|t| t.octets_out));
        // With fingers a query and a finger take about half of log2 24 hops each, not half of the ring.
        let questions = sum(|t| t.packets_out) as f64 / sum(|t| t.queries) as f64;
        assert!((4.0..12.0).contains(&questions), "{questions}");
    }

    #[test]
    fn a_program_that_hears_nothing_asks_less_and_less_often() {
        let mut peer = Peer::network(24, 1).remove(0);
        let (mut out, mut asked) = (Vec::new(), Vec::new());
        while peer.wake_at() < 200_000_000 {
            let (now, before) = (peer.wake_at(), peer.traffic.queries);
            peer.tick(now, &mut out);
            if peer.traffic.queries > before && peer.traffic.queries > peer.traffic.answers {
                asked.push(now / 1_000_000);
            }
        }
        let apart: Vec<u64> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(apart.len() > 5 && apart.iter().any(|apart| *apart >= 17), "{apart:?}");
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
