//! Whether a network in one process sends what one with real sockets and a real clock sends (Table IV).

mod peer;

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::{Failure, Trial, swarm::tally::spread};

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
    let seconds = trial.size("seconds");
    let [machines, runs] = ["machines", "runs"].map(|name| trial.constant(name));
    let mut rng = trial.rng();
    let (mut within, mut sockets) = (Vec::new(), Vec::new());
    for run in 0..runs as u32 {
        let seed = rng.next_u64();
        trial.say(&format!("run {run} of {runs}: in one process"));
        within.extend(in_process(Peer::network(machines as usize, seed), seconds));
        trial.say(&format!("run {run} of {runs}: {seconds} s over sockets"));
        sockets.extend(over_sockets(Peer::network(machines as usize, seed), seconds)?);
    }
    for (name, column) in COLUMNS {
        let of = |peers: &[Peer]| {
            spread(&peers.iter().map(|p| column(&p.traffic) as f64).collect::<Vec<_>>())
        };
        let ((inside, inside_sd), (outside, outside_sd)) = (of(&within), of(&sockets));
        trial.number(format!("{name}/apart"), (inside - outside).abs() / outside);
        trial.number(format!("{name}/process"), inside);
        trial.number(format!("{name}/process-sd"), inside_sd);
        trial.number(format!("{name}/sockets"), outside);
        trial.number(format!("{name}/sockets-sd"), outside_sd);
    }
    let sum = |of: fn(&Peer) -> u64| sockets.iter().map(of).sum::<u64>() as f64;
    let (sent, taken) = (sum(|p| p.traffic.packets_out), sum(|p| p.traffic.packets_in));
    trial.number("sockets/lost", sent - taken);
    trial.number("sockets/answered", sum(|p| p.answers) / sum(|p| p.queries));
    Ok(())
}

/// Runs them by a clock of their own.
fn in_process(mut peers: Vec<Peer>, seconds: u64) -> Vec<Peer> {
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
    peers
}

/// Runs each in a thread with a socket of its own on the loopback, by the clock of the computer.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real sockets and a real clock are what is compared with"
)]
fn over_sockets(peers: Vec<Peer>, seconds: u64) -> Result<Vec<Peer>, Failure> {
    use std::{
        net::{Ipv4Addr, SocketAddr, UdpSocket},
        time::{Duration, Instant},
    };
    /// Who has heard nothing for so long after the end has heard everything.
    const QUIET: Duration = Duration::from_millis(1_500);

    let failure = |error: std::io::Error| Failure::Input {
        what: "a socket on the loopback".into(),
        reason: error.to_string(),
    };
    let bind = |_: &Peer| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let sockets: Vec<UdpSocket> =
        peers.iter().map(bind).collect::<Result<_, _>>().map_err(failure)?;
    let addresses: Vec<SocketAddr> =
        sockets.iter().map(UdpSocket::local_addr).collect::<Result<_, _>>().map_err(failure)?;
    let (start, end) = (Instant::now(), seconds * 1_000_000);
    let live = |mut peer: Peer, socket: UdpSocket| -> Result<Peer, std::io::Error> {
        let (mut out, mut buffer) = (Vec::new(), [0; 2 * peer::OCTETS_MAX]);
        loop {
            let now = start.elapsed().as_micros() as u64;
            // However late a thread comes to it, it does what was due before the end, and nothing after.
            peer.tick(now.min(end - 1), &mut out);
            for Send { to, octets } in out.drain(..) {
                socket.send_to(&octets, addresses[to])?;
            }
            let is_over = peer.wake_at() >= end;
            let wait = Duration::from_micros(peer.wake_at().saturating_sub(now).max(1));
            socket.set_read_timeout(Some(if is_over { wait.max(QUIET) } else { wait }))?;
            match socket.recv_from(&mut buffer) {
                Ok((size, _)) => {
                    let now = start.elapsed().as_micros() as u64;
                    peer.take(now, &buffer[..size], &mut out);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if is_over && start.elapsed().as_micros() as u64 >= end {
                        return Ok(peer);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = peers
            .into_iter()
            .zip(sockets)
            .map(|(peer, socket)| scope.spawn(|| live(peer, socket)))
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join().expect("no peer panics"));
        ends.collect::<Result<Vec<Peer>, _>>().map_err(failure)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find;

    #[test]
    fn a_second_over_sockets_measures_every_row() {
        let report = find("K-E13").unwrap().run(0.04, &mut |_| ()).unwrap();
        assert!(report.rows.iter().all(|row| row.ours.is_some()), "{report}");
    }

    #[test]
    fn every_query_is_answered_and_everything_sent_arrives() {
        let peers = in_process(Peer::network(24, 3), 20);
        let sum = |of: fn(&Peer) -> u64| peers.iter().map(of).sum::<u64>();
        assert!(sum(|p| p.queries) > 24 * 150);
        assert_eq!(sum(|p| p.answers), sum(|p| p.queries));
        assert_eq!(sum(|p| p.traffic.packets_in), sum(|p| p.traffic.packets_out));
        assert_eq!(sum(|p| p.traffic.octets_in), sum(|p| p.traffic.octets_out));
        // With fingers a question takes about half of log2 24 hops, not half of the ring.
        let questions = sum(|p| p.traffic.packets_out) as f64 / sum(|p| p.queries) as f64;
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
