//! Who comes and who goes, second by second.

use std::{cmp::Reverse, collections::BinaryHeap, iter::Peekable, vec::IntoIter};

use base::Rng;

use super::{
    network::{MachineId, Network},
    population::Life,
    scheme::Scheme,
};

/// The lives that are under way or still to come.
pub struct Turnover {
    /// By when they come.
    arrivals: Peekable<IntoIter<Life>>,
    /// By when they go, the next one first.
    departures: BinaryHeap<Reverse<(u32, MachineId)>>,
}

impl Turnover {
    /// These lives, by when they begin.
    pub fn new(lives: Vec<Life>) -> Turnover {
        Turnover { arrivals: lives.into_iter().peekable(), departures: BinaryHeap::new() }
    }

    /// Who has to go by now goes, who is to come comes. Whether anybody did.
    pub fn step(
        &mut self,
        network: &mut Network,
        scheme: &mut dyn Scheme,
        is_active: bool,
        rng: &mut Rng,
    ) -> bool {
        let (now, mut is_new) = (network.now, false);
        while self.departures.peek().is_some_and(|next| next.0.0 <= now) {
            let Some(Reverse((_, machine))) = self.departures.pop() else { break };
            network.tally.churn += network.die(machine) as u64;
            is_new = true;
        }
        while let Some(life) = self.arrivals.next_if(|life| life.from <= now) {
            let machine = network.arrive(life.capacity);
            if life.to != u32::MAX {
                self.departures.push(Reverse((life.to, machine)));
            }
            scheme.join(network, machine, is_active, rng);
            network.tally.churn += network.machine(machine).servers.len() as u64;
            is_new = true;
        }
        is_new
    }
}
