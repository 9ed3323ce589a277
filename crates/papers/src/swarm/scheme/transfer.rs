//! A machine with too much to do hands a server to one that it meets by chance (K14). Positions can't be
//! verified any more: a server stands where its first owner put it, or in the middle of what was split.

use base::Rng;

use super::{Scheme, stand_first, stand_on};
use crate::swarm::network::{MachineId, Network, ServerId};

/// The settings.
pub struct Transfer {
    /// Servers of a machine at the start.
    pub servers: usize,
    /// Above this part of its capacity a machine has too much to do.
    pub upper: f64,
}

impl Default for Transfer {
    fn default() -> Transfer {
        Transfer { servers: 5, upper: 0.95 }
    }
}

impl Scheme for Transfer {
    fn join(&mut self, network: &mut Network, machine: MachineId, _: bool, _: &mut Rng) {
        stand_first(network, machine, self.servers);
    }

    fn check(&mut self, network: &mut Network, machine: MachineId, rng: &mut Rng) {
        let state = network.machine(machine);
        if state.work <= self.upper * state.capacity {
            return;
        }
        if let [only] = state.servers[..] {
            split(network, machine, only);
        }
        let other = *rng.pick(network.alive());
        if other == machine || network.machine(machine).servers.len() < 2 {
            return;
        }
        if let Some(server) = self.choose(network, machine, other) {
            network.hand_over(server, other);
            network.tally.transfers += 1;
        }
    }
}

impl Transfer {
    /// Of the servers that the other can take without having too much: the lightest that ends the own
    /// overload, else the heaviest.
    fn choose(&self, network: &Network, from: MachineId, to: MachineId) -> Option<ServerId> {
        let (from, to) = (network.machine(from), network.machine(to));
        let room = self.upper * to.capacity - to.work;
        let excess = from.work - self.upper * from.capacity;
        let works = from.servers.iter().map(|server| (*server, network.work(*server)));
        let fitting = works.filter(|(_, work)| *work <= room);
        let enough = fitting.clone().filter(|(_, work)| *work >= excess);
        let lightest = enough.min_by(|one, other| one.1.total_cmp(&other.1));
        let heaviest = fitting.max_by(|one, other| one.1.total_cmp(&other.1));
        lightest.or(heaviest).map(|(server, _)| server)
    }
}

/// Makes two of one, each with half of the way. The paper prints a point beyond the server; the middle of
/// its own part must be meant.
fn split(network: &mut Network, machine: MachineId, server: ServerId) {
    let server = network.server(server);
    let middle = server.before.on(server.before.to(server.position) / 2);
    stand_on(network, machine, middle, None);
}
