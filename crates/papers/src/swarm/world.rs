//! A network in time: in each second machines come and go, fingers are looked up, queries run, and machines
//! look at their balance (K17, K18).

use base::Rng;

use super::{
    network::{Network, Wiring},
    popularity::Popularity,
    population::Life,
    scheme::Scheme,
    tally::Tally,
    traffic::Traffic,
    turnover::Turnover,
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
    turnover: Turnover,
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
            turnover: Turnover::new(lives),
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
        if self.is_active() {
            self.scheme.check_some(&mut self.network, self.setup.check_s, &mut self.rng);
        }
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
        let is_active = self.is_active();
        self.turnover.step(&mut self.network, &mut *self.scheme, is_active, &mut self.rng);
    }
}
