//! Neighbours shift the border between them when one's load has risen by a level, or the least loaded
//! anywhere comes to help (K15). One server for each machine, wherever it likes: nothing can be verified.

use base::Rng;
use overlay::Position;

use super::{Scheme, stand_first, stand_on};
use crate::swarm::network::{MachineId, Network, ServerId};

/// The settings, and what each machine remembers.
pub struct Threshold {
    /// The ratio of two levels.
    pub ratio: f64,
    /// The utilisation of level 0.
    pub base: f64,
    /// Above this part of its capacity a machine has too much to do.
    pub upper: f64,
    /// The level at the last look, by machine.
    levels: Vec<i32>,
}

impl Default for Threshold {
    fn default() -> Threshold {
        Threshold { ratio: 8.0, base: 0.01, upper: 0.95, levels: Vec::new() }
    }
}

impl Scheme for Threshold {
    fn join(&mut self, network: &mut Network, machine: MachineId, _: bool, _: &mut Rng) {
        stand_first(network, machine, 1);
    }

    fn check(&mut self, network: &mut Network, machine: MachineId, rng: &mut Rng) {
        let at = machine as usize;
        if self.levels.len() <= at {
            self.levels.resize(at + 1, 0);
        }
        let (utilisation, level) = (network.utilisation(machine), self.level(network, machine));
        let has_risen = level > std::mem::replace(&mut self.levels[at], level);
        let Some(&own) = network.machine(machine).servers.first() else { return };
        if !(has_risen || utilisation > self.upper) || network.ring().count() < 4 {
            return;
        }
        self.adjust(network, machine, own, level, rng);
    }
}

impl Threshold {
    fn level(&self, network: &Network, machine: MachineId) -> i32 {
        let utilisation = network.utilisation(machine);
        if utilisation <= self.base {
            return 0;
        }
        ((utilisation / self.base).ln() / self.ratio.ln()).floor() as i32
    }

    fn adjust(
        &mut self,
        network: &mut Network,
        machine: MachineId,
        own: ServerId,
        level: i32,
        rng: &mut Rng,
    ) {
        let (before, here) = (network.server(own).before, network.server(own).position);
        let owner = |network: &Network, server| network.owner(server);
        let (Some((_, predecessor)), Some((_, successor))) =
            (network.ring().before(here), network.ring().after(here))
        else {
            return;
        };
        let level_before = self.level(network, owner(network, predecessor));
        let level_after = self.level(network, owner(network, successor));
        if level_before.min(level_after) < level {
            // The border moves over so much of the own part.
            let step = ((1.0 - 1.0 / self.ratio) * before.way(here)) as u64;
            if level_before < level_after {
                shift(network, predecessor, before.on(step));
            } else {
                shift(network, own, Position(here.0.wrapping_sub(step)));
            }
        } else {
            self.reorder(network, machine, own, rng);
        }
    }

    /// Whoever has the least to do of a few, and whose successor can take over what it does, comes to halve
    /// the own part.
    fn reorder(&self, network: &mut Network, machine: MachineId, own: ServerId, rng: &mut Rng) {
        let count = network.alive().len().ilog2();
        let can_go = |network: &Network, server: ServerId| {
            let (_, after) = network.ring().after(network.server(server).position)?;
            let successor = network.machine(network.owner(after));
            let work = network.work(server) + successor.work;
            (work < self.upper * successor.capacity && after != own).then_some(())
        };
        let helper = (0..count)
            .map(|_| *rng.pick(network.alive()))
            .filter(|other| *other != machine)
            .filter_map(|other| Some((other, *network.machine(other).servers.first()?)))
            .filter(|(_, server)| can_go(network, *server).is_some())
            .min_by(|(one, _), (other, _)| {
                network.utilisation(*one).total_cmp(&network.utilisation(*other))
            });
        let Some((helper, server)) = helper else { return };
        let own = network.server(own);
        let middle = own.before.on(own.before.to(own.position) / 2);
        if network.ring().get(middle).is_none() && middle != own.before {
            network.leave(server);
            stand_on(network, helper, middle, None);
            network.tally.moves += 1;
        }
    }
}

/// Lets a server stand elsewhere between its neighbours. K18 does not count that as an action.
fn shift(network: &mut Network, server: ServerId, to: Position) {
    if network.ring().get(to).is_none() {
        let machine = network.owner(server);
        network.leave(server);
        stand_on(network, machine, to, None);
    }
}
