//! As many servers for each machine as the logarithm of their number, and no reaction (K12).

use base::Rng;

use super::{Scheme, stand_first};
use crate::swarm::network::{MachineId, Network};

/// So many servers for each.
pub struct LogN {
    servers: usize,
}

impl LogN {
    /// For a network of so many machines.
    pub fn new(machines: usize) -> LogN {
        LogN { servers: machines.max(2).ilog2() as usize }
    }
}

impl Scheme for LogN {
    fn join(&mut self, network: &mut Network, machine: MachineId, _: bool, _: &mut Rng) {
        stand_first(network, machine, self.servers);
    }

    fn check(&mut self, _: &mut Network, _: MachineId, _: &mut Rng) {}
}
