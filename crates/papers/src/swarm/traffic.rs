//! Queries on their way, a few abreast.
//!
//! In the paper's simulator queries of a second run one after the other, so that success falls within each
//! second as machines are used up (K21). Ours run twenty abreast: all of them take their first hop, then all
//! their second, and so on. While one waits for memory, the processor goes on with the next.

use base::Rng;
use overlay::{Hop, Position, levels};

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
    /// Where it goes next, by what the server where it is remembers.
    next: Hop<ServerId>,
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
            let Some(at) = network.draw_origin(rng) else { continue };
            self.flights.push(Flight { at, hops: 0, key, next: Hop::Successor { is_last: false } });
        }
        network.tally.queries += self.flights.len() as u64;
        self.flights.retain(|flight| {
            let server = network.server(flight.at);
            // It is responsible itself: the key lies between its predecessor and itself.
            let is_own =
                server.before.to(flight.key).wrapping_sub(1) < server.before.to(server.position);
            network.tally.answered += u64::from(is_own);
            !is_own
        });
    }

    fn land(&mut self, network: &mut Network) {
        while !self.flights.is_empty() {
            self.look_ahead(network);
            self.flights.retain_mut(|flight| {
                flight.hops += 1;
                match hop(network, flight) {
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

    /// Finds where each goes next, and reads what they will need there. That is done for all of them before any
    /// goes, in loops without a branch that hangs on what is read, so that the processor waits for the memory of
    /// all at once and not for that of one after the other.
    fn look_ahead(&mut self, network: &Network) {
        let mut read = 0;
        for flight in &self.flights {
            let server = network.server(flight.at);
            read ^= server.fingers.confirmed(levels(server.position, flight.key));
        }
        for flight in &mut self.flights {
            flight.next = next(network, flight.at, flight.key);
        }
        for flight in &self.flights {
            read ^= network.glance(target(network, flight));
        }
        std::hint::black_box(read);
    }
}

fn next(network: &Network, at: ServerId, key: Position) -> Hop<ServerId> {
    let server = network.server(at);
    server.fingers.next_hop(server.position, network.successor(at).position, key)
}

fn target(network: &Network, flight: &Flight) -> ServerId {
    match flight.next {
        Hop::Successor { .. } => network.successor(flight.at).server,
        Hop::Finger { link, .. } => link.server,
    }
}

fn hop(network: &mut Network, flight: &mut Flight) -> Outcome {
    let from = flight.at;
    let (to, is_last, level) = loop {
        let to = target(network, flight);
        match flight.next {
            Hop::Successor { is_last } => break (to, is_last, None),
            Hop::Finger { level, .. } => match network.state(to) {
                State::Here => break (to, false, Some(level)),
                State::Died => {
                    network.tally.stale += 1;
                    return Outcome::Fails;
                }
                // K17: who leaves in order has told those who point at it.
                State::Left => {
                    let now = network.now;
                    network.server_mut(from).fingers.set(level, None, now);
                    flight.next = next(network, from, flight.key);
                }
            },
        }
    };
    // Of a query that begins here nobody had to do anything yet.
    if level.is_none() && flight.hops > 1 {
        network.pass(from);
    }
    if !network.charge(to) {
        network.tally.overloads += 1;
        return Outcome::Fails;
    }
    if let Some(level) = level {
        network.used(from, level);
    }
    if is_last { Outcome::Arrives } else { Outcome::Goes(to) }
}
