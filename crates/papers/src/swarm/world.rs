//! A network in time: in each second machines come and go, fingers are looked up, queries run, and machines
//! look at their balance (K17, K18).

use base::Rng;

use super::{
    network::{MachineId, Network, Wiring},
    popularity::Popularity,
    population::Life,
    scheme::Scheme,
    tally::Tally,
    traffic::Traffic,
};

/// What a world is run with.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Queries of each machine in a second.
    pub rate: f64,
    /// The mean time between two looks of a machine at its balance, in seconds.
    pub check_s: f64,
    /// Before this second machines join with one server, and nobody looks at any balance.
    pub activation: u32,
    /// How fingers are kept and work is smoothed.
    pub wiring: Wiring,
    /// The seed of everything random in the run.
    pub seed: u64,
}

impl Default for Setup {
    /// The paper's values (K18).
    fn default() -> Setup {
        let wiring = Wiring::default();
        Setup { rate: 10.0, check_s: 30.0, activation: 400, wiring, seed: 1 }
    }
}

/// A network, its future, and how it is balanced.
pub struct World {
    setup: Setup,
    /// All that there is at this moment.
    pub network: Network,
    /// Where queries go.
    pub popularity: Popularity,
    scheme: Box<dyn Scheme>,
    traffic: Traffic,
    rng: Rng,
    /// By when they come.
    arrivals: std::iter::Peekable<std::vec::IntoIter<Life>>,
    /// By when they go, the next one last.
    departures: std::collections::BinaryHeap<std::cmp::Reverse<(u32, MachineId)>>,
    /// Queries that are due and not asked.
    owed: f64,
}

impl World {
    /// A world at its first second. Those who are there from the start know each other well.
    pub fn new(
        setup: Setup,
        lives: Vec<Life>,
        popularity: Popularity,
        scheme: Box<dyn Scheme>,
    ) -> World {
        let mut world = World {
            setup,
            network: Network::new(setup.wiring, setup.seed),
            popularity,
            scheme,
            traffic: Traffic::default(),
            rng: Rng::new(setup.seed),
            arrivals: lives.into_iter().peekable(),
            departures: Default::default(),
            owed: 0.0,
        };
        world.churn();
        world.network.settle();
        world.network.tally = Tally::default();
        world
    }

    /// One more second.
    pub fn step(&mut self) -> Tally {
        self.step_watched(&mut |_| ())
    }

    /// One more second, in which somebody looks at the network after each [`ABREAST`] queries.
    ///
    /// [`ABREAST`]: super::traffic::ABREAST
    pub fn step_watched(&mut self, watch: &mut dyn FnMut(&Network)) -> Tally {
        self.churn();
        self.network.refresh(&mut self.rng);
        self.owed += self.setup.rate * self.network.alive().len() as f64;
        let count = self.owed as usize;
        self.owed -= count as f64;
        self.traffic.run(&mut self.network, count, &self.popularity, &mut self.rng, watch);
        self.balance();
        self.network.end_second();
        self.network.tally.seconds = 1;
        std::mem::take(&mut self.network.tally)
    }

    /// So many seconds together.
    pub fn run(&mut self, seconds: u32) -> Tally {
        let mut total = Tally::default();
        (0..seconds).for_each(|_| total += self.step());
        total
    }

    /// What was popular may no longer be.
    pub fn shift(&mut self) {
        self.popularity.shift(&mut self.rng);
    }

    fn is_active(&self) -> bool {
        self.network.now >= self.setup.activation
    }

    fn churn(&mut self) {
        let now = self.network.now;
        while let Some(std::cmp::Reverse((_, machine))) =
            self.departures.peek().filter(|next| next.0.0 <= now).copied()
        {
            self.departures.pop();
            self.network.tally.churn += self.network.die(machine) as u64;
        }
        while let Some(life) = self.arrivals.next_if(|life| life.from <= now) {
            let machine = self.network.arrive(life.capacity);
            if life.to != u32::MAX {
                self.departures.push(std::cmp::Reverse((life.to, machine)));
            }
            let is_active = self.is_active();
            self.scheme.join(&mut self.network, machine, is_active, &mut self.rng);
            self.network.tally.churn += self.network.machine(machine).servers.len() as u64;
        }
    }

    fn balance(&mut self) {
        if !self.is_active() {
            return;
        }
        // Nobody comes or goes in between, so the list stays as it is.
        for at in 0..self.network.alive().len() {
            if self.rng.chance(1.0 / self.setup.check_s) {
                let machine = self.network.alive()[at];
                self.scheme.check(&mut self.network, machine, &mut self.rng);
            }
        }
    }
}
