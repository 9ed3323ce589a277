//! Queries on their way, a few abreast.
//!
//! In the paper's simulator queries of a second run one after the other, so that success falls within each
//! second as machines are used up (K21). Ours run twenty abreast: all of them take their first hop, then all
//! their second, and so on. While one waits for memory, the processor goes on with the next.

use base::Rng;
use overlay::{Hop, Link, Position};

use super::{
    network::{Network, ServerId, State},
    popularity::Popularity,
};

/// A query under way.
#[derive(Clone, Copy)]
struct Flight {
    at: ServerId,
    hops: u32,
    key: Position,
}

/// So many abreast. The paper's own averages are of twenty queries (section VI-H).
pub const ABREAST: usize = 20;

/// Queries, with room that is used again in the next second.
#[derive(Default)]
pub struct Traffic {
    flights: Vec<Flight>,
}

enum Outcome {
    Goes(ServerId),
    Arrives,
    Fails,
}

impl Traffic {
    /// So many queries from machines at random, to where popularity says; all of them end in this second.
    /// Whoever watches is called after each few of them.
    pub(super) fn run(
        &mut self,
        network: &mut Network,
        count: usize,
        popularity: &Popularity,
        rng: &mut Rng,
        watch: &mut dyn FnMut(&Network),
    ) {
        for start in (0..count).step_by(ABREAST) {
            self.launch(network, ABREAST.min(count - start), popularity, rng);
            self.land(network);
            watch(network);
        }
    }

    fn launch(
        &mut self,
        network: &mut Network,
        count: usize,
        popularity: &Popularity,
        rng: &mut Rng,
    ) {
        self.flights.clear();
        for _ in 0..count {
            let key = popularity.draw(rng);
            let Some(at) = source(network, rng) else { continue };
            network.tally.queries += 1;
            let server = network.server(at);
            // It is responsible itself: the key lies between its predecessor and itself.
            if server.before.to(key).wrapping_sub(1) < server.before.to(server.position) {
                network.tally.answered += 1;
            } else {
                self.flights.push(Flight { at, hops: 0, key });
            }
        }
    }

    fn land(&mut self, network: &mut Network) {
        while !self.flights.is_empty() {
            self.flights.retain_mut(|flight| {
                flight.hops += 1;
                match hop(network, flight.at, flight.key) {
                    Outcome::Goes(at) => {
                        flight.at = at;
                        return true;
                    }
                    Outcome::Arrives => {
                        network.tally.answered += 1;
                        network.tally.hops_answered += u64::from(flight.hops);
                    }
                    Outcome::Fails => {}
                }
                network.tally.hops += u64::from(flight.hops);
                false
            });
        }
    }
}

/// One of the servers of a machine at random.
fn source(network: &Network, rng: &mut Rng) -> Option<ServerId> {
    let alive = network.alive();
    let machine = network.machine(*alive.get(rng.index(alive.len().max(1)))?);
    match machine.servers.len() {
        0 => None,
        1 => Some(machine.servers[0]),
        count => Some(machine.servers[rng.index(count)]),
    }
}

fn hop(network: &mut Network, from: ServerId, key: Position) -> Outcome {
    let here = network.server(from).position;
    let Link { position, server: successor } = network.successor(from);
    let (to, is_last, level) = loop {
        match network.server(from).fingers.next_hop(here, position, key) {
            Hop::Successor { is_last } => break (successor, is_last, None),
            Hop::Finger { level, link } => match network.server(link.server).state {
                State::Here => break (link.server, false, Some(level)),
                State::Died => {
                    network.tally.stale += 1;
                    return Outcome::Fails;
                }
                // K17: who leaves in order has told those who point at it.
                State::Left => {
                    let now = network.now;
                    network.server_mut(from).fingers.set(level, None, now);
                }
            },
        }
    };
    if !network.charge(to) {
        network.tally.overloads += 1;
        return Outcome::Fails;
    }
    if let Some(level) = level {
        let now = network.now;
        network.server_mut(from).fingers.confirm(level, now);
    }
    if is_last { Outcome::Arrives } else { Outcome::Goes(to) }
}
