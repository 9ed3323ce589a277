//! How machines are kept in balance: one trait, k-Choices from the product, and what it is compared with.

use base::Rng;
use overlay::{Load, Position};

use super::network::{MachineId, Network};

mod contender;
mod k_choices;
mod log_n;
mod proportion;
mod threshold;
mod transfer;

pub use contender::Contender;
pub use k_choices::{Action, KChoices};
pub use log_n::LogN;
pub use proportion::Proportion;
pub use threshold::Threshold;
pub use transfer::Transfer;

/// A way to balance.
pub trait Scheme: Send {
    /// A machine that has come takes its servers. Before a run is active there is nothing to go by.
    fn join(&mut self, network: &mut Network, machine: MachineId, is_active: bool, rng: &mut Rng);

    /// A machine looks at its balance.
    fn check(&mut self, network: &mut Network, machine: MachineId, rng: &mut Rng);

    /// One second, if each machine looks at its balance once in so many of them in the mean.
    fn check_some(&mut self, network: &mut Network, seconds: f64, rng: &mut Rng) {
        // Nobody comes or goes in between, so the list stays as it is.
        for at in 0..network.alive().len() {
            if rng.chance(1.0 / seconds) {
                let machine = network.alive()[at];
                self.check(network, machine, rng);
            }
        }
    }
}

/// No balancing: one server at the first position (K16).
pub struct None;

impl Scheme for None {
    fn join(&mut self, network: &mut Network, machine: MachineId, _: bool, _: &mut Rng) {
        stand_first(network, machine, 1);
    }

    fn check(&mut self, _: &mut Network, _: MachineId, _: &mut Rng) {}
}

/// Perfectly equal distances between so many machines, which nobody could arrange (Table I).
pub struct Even(pub u32);

impl Scheme for Even {
    fn join(&mut self, network: &mut Network, machine: MachineId, _: bool, _: &mut Rng) {
        let position = Position(((u128::from(machine) << 64) / u128::from(self.0)) as u64);
        network.stand(machine, position, Option::None, Load::default());
    }

    fn check(&mut self, _: &mut Network, _: MachineId, _: &mut Rng) {}
}

/// Puts servers on the first free ones of a machine's positions, until it has so many. How many came to stand.
fn stand_first(network: &mut Network, machine: MachineId, count: usize) -> usize {
    let before = network.machine(machine).servers.len();
    // A position is taken once in 10^14 times; then the next will do.
    for index in before as u32..before as u32 + count as u32 + 2 {
        if network.machine(machine).servers.len() < before + count {
            stand_at(network, machine, index);
        }
    }
    network.machine(machine).servers.len() - before
}

/// Puts a server on a machine's own position, with its share of the successor's work. False if it is taken.
fn stand_at(network: &mut Network, machine: MachineId, index: u32) -> bool {
    let position = network.position(machine, index);
    stand_on(network, machine, position, Some(index))
}

/// Puts a server on any position, with its share of the successor's work. False if it is taken.
fn stand_on(
    network: &mut Network,
    machine: MachineId,
    position: Position,
    index: Option<u32>,
) -> bool {
    let work = match (network.ring().before(position), network.ring().at_or_after(position)) {
        (Some((before, _)), Some((after, successor))) => {
            network.work(successor) * before.way(position) / before.way(after)
        }
        _ => 0.0,
    };
    network.stand(machine, position, index, Load::of(work)).is_some()
}
