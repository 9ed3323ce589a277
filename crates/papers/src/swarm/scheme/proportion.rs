//! Servers in proportion to capacity, made and deleted as load changes (K13).

use base::Rng;

use super::{Scheme, stand_at, stand_first};
use crate::swarm::network::{MachineId, Network, ServerId};

/// The settings.
pub struct Proportion {
    /// The capacity that one server stands for at the start.
    pub capacity_each: f64,
    /// The most servers of a machine.
    pub servers_max: usize,
    /// Above this part of its capacity a machine has too much to do.
    pub upper: f64,
    /// Below this part of its capacity a machine has too little to do.
    pub lower: f64,
    /// Whether a machine makes a server wherever it would not have too much to do with one more, and not only where it
    /// has too little. The paper's second condition says nothing after the first, if that is taken by the word: who
    /// does less than a twentieth never comes to the upper bound with one server more.
    pub is_eager: bool,
}

impl Default for Proportion {
    fn default() -> Proportion {
        Proportion {
            capacity_each: 100.0,
            servers_max: 128,
            upper: 0.95,
            lower: 0.05,
            is_eager: false,
        }
    }
}

impl Scheme for Proportion {
    fn join(&mut self, network: &mut Network, machine: MachineId, _: bool, _: &mut Rng) {
        let capacity = network.machine(machine).capacity;
        let count = (capacity / self.capacity_each).round() as usize;
        stand_first(network, machine, count.clamp(1, self.servers_max));
    }

    fn check(&mut self, network: &mut Network, machine: MachineId, _: &mut Rng) {
        let state = network.machine(machine);
        let (work, count) = (state.work, state.servers.len());
        let upper = self.upper * state.capacity;
        if work > upper && count > 1 {
            if let Some(server) = self.superfluous(network, machine) {
                network.leave(server);
                network.tally.destroys += 1;
            }
        } else if (self.is_eager || work < self.lower * state.capacity)
            && work + work / count.max(1) as f64 <= upper
            && count < self.servers_max
        {
            let used = |index| state.servers.iter().any(|s| network.index(*s) == Some(index));
            let free = (0..self.servers_max as u32).find(|index| !used(*index));
            if free.is_some_and(|index| stand_at(network, machine, index)) {
                network.tally.creates += 1;
            }
        }
    }
}

impl Proportion {
    /// The lightest whose removal ends the overload, else the heaviest.
    fn superfluous(&self, network: &Network, machine: MachineId) -> Option<ServerId> {
        let state = network.machine(machine);
        let excess = state.work - self.upper * state.capacity;
        let works = state.servers.iter().map(|server| (*server, network.work(*server)));
        let lightest = works.clone().filter(|(_, work)| *work >= excess);
        let lightest = lightest.min_by(|one, other| one.1.total_cmp(&other.1));
        let heaviest = works.max_by(|one, other| one.1.total_cmp(&other.1));
        lightest.or(heaviest).map(|(server, _)| server)
    }
}
