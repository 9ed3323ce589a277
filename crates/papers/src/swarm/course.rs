//! A network from its first second to its last under one scheme: what most experiments run, and the figures
//! that they compare.

use base::Rng;

use super::{
    network::Network,
    popularity::Popularity,
    population::{Capacities, Life, Lives, population, together},
    scheme::Scheme,
    tally::{Tally, quantile, spread},
    world::{Setup, World},
};
use crate::Trial;

/// How long a window is, in seconds: figures over time have a point for each.
pub const WINDOW: u32 = 60;
/// How often a network is looked at that is watched, in seconds.
pub const SAMPLE: u32 = 30;
/// Balancing begins at the paper's 400 s, or earlier in a run so short that this part of it is less.
const ACTIVATION_PART: u32 = 10;
/// What half of the machines in the trace can do in a second, and how long half of them stay, in seconds.
const TRACE_CAPACITY: f64 = 191.0;
const TRACE_LIFE: f64 = 3_600.0;
/// Our choice for the trace: the rank correlation of life and capacity (G3).
const TRACE_CORRELATION: f64 = 0.2;

/// All that two runs have to have in common, if only their schemes are to be compared.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    /// How many machines there are at any moment.
    pub machines: usize,
    /// How long it lasts; the second half counts.
    pub seconds: u32,
    /// What machines can do.
    pub capacities: Capacities,
    /// How long machines stay.
    pub lives: Lives,
    /// Machines come and go only every so many seconds.
    pub burst: u32,
    /// α of Zipf popularity.
    pub skew: f64,
    /// Places that are asked for, where there is skew.
    pub points: usize,
    /// The rest.
    pub setup: Setup,
}

impl Course {
    /// In place of the Gnutella trace, which can't be had: machines with its medians and spread (G3).
    pub fn trace(trial: &Trial) -> Course {
        // Of a Pareto with α = 2, half are below the mean by the root of two.
        let mean = TRACE_LIFE * 2f64.sqrt();
        let lives = Lives::Pareto { mean, correlation: TRACE_CORRELATION };
        Course::new(trial, Capacities::Lognormal(TRACE_CAPACITY), lives)
    }

    /// Machines of the four Gnutella classes, which live for so many seconds in the mean.
    pub fn classes(trial: &Trial, life: f64) -> Course {
        Course::new(trial, Capacities::Gnutella, Lives::Pareto { mean: life, correlation: 0.0 })
    }

    /// Machines with the capacities of the trace, which live for so many seconds in the mean (K22).
    pub fn synthetic(trial: &Trial, life: f64) -> Course {
        let lives = Lives::Pareto { mean: life, correlation: 0.0 };
        Course::new(trial, Capacities::Lognormal(TRACE_CAPACITY), lives)
    }

    /// As large as the plan says, without skew.
    fn new(trial: &Trial, capacities: Capacities, lives: Lives) -> Course {
        let seconds = trial.duration("seconds") as u32;
        let standard = Setup::default();
        let setup = Setup {
            rate: trial.constant("rate"),
            activation: standard.activation.min(seconds / ACTIVATION_PART),
            seed: trial.rng().next_u64(),
            ..standard
        };
        let points = trial.constant("points") as usize;
        let machines = trial.size("machines") as usize;
        Course { machines, seconds, capacities, lives, burst: 1, skew: 0.0, points, setup }
    }

    /// The same with balancing from this second on.
    pub fn with_activation(self, activation: u32) -> Course {
        Course { setup: Setup { activation, ..self.setup }, ..self }
    }

    /// The same with other chances.
    pub fn with_seed(self, seed: u64) -> Course {
        Course { setup: Setup { seed, ..self.setup }, ..self }
    }

    /// The same with machines that come and go only every so many seconds.
    pub fn in_bursts(self, burst: u32) -> Course {
        Course { burst: burst.max(1), ..self }
    }

    /// The same with this skew.
    pub fn with_skew(self, skew: f64) -> Course {
        Course { skew, ..self }
    }

    /// The same with so many queries of each machine in a second.
    pub fn with_rate(self, rate: f64) -> Course {
        Course { setup: Setup { rate, ..self.setup }, ..self }
    }

    /// Its machines, in the order in which the network numbers them.
    pub fn lives(&self) -> Vec<Life> {
        self.draw().0
    }

    /// Its machines and where its queries go, and the chance that is left after these.
    pub fn draw(&self) -> (Vec<Life>, Popularity, Rng) {
        let mut rng = Rng::new(self.setup.seed);
        let lives = population(self.machines, self.seconds, self.capacities, self.lives, &mut rng);
        let lives = together(lives, self.burst);
        let popularity = Popularity::new(self.skew, self.points, &mut rng);
        (lives, popularity, rng)
    }

    /// Its first second.
    pub fn begin(&self, scheme: Box<dyn Scheme>) -> World {
        let (lives, popularity, _) = self.draw();
        World::new(self.setup, lives, popularity, scheme)
    }

    /// All of it. The figures are of the second half (K18).
    pub fn run(&self, scheme: Box<dyn Scheme>) -> Figures {
        let mut world = self.begin(scheme);
        world.run(self.seconds / 2);
        Figures::of(&mut world, self.seconds / 2)
    }

    /// All of it, with a look at the network after every [`SAMPLE`] seconds of the second half, which counts.
    pub fn watch(&self, scheme: Box<dyn Scheme>, mut look: impl FnMut(&Network)) -> Tally {
        let mut world = self.begin(scheme);
        world.run(self.seconds / 2);
        let mut total = Tally::default();
        for _ in 0..(self.seconds / 2 / SAMPLE).max(1) {
            total += world.run(SAMPLE);
            look(&world.network);
        }
        total
    }
}

/// What came out of some time.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// All of it together.
    pub total: Tally,
    /// Each window of it.
    pub windows: Vec<Tally>,
    /// Servers of a machine, in the mean over machines and windows.
    pub servers_mean: f64,
    /// Servers that 95 of 100 machines do not exceed, in the mean over windows.
    pub servers_p95: f64,
    /// The part of fingers that point at the dead, in the mean over windows.
    pub stale_fingers: f64,
}

impl Figures {
    /// Lets a world go on for so long, or for one window if that is longer.
    pub fn of(world: &mut World, seconds: u32) -> Figures {
        let mut figures = Figures::default();
        let [mut means, mut p95s, mut stale] = [const { Vec::new() }; 3];
        for _ in 0..(seconds / WINDOW).max(1) {
            let tally = world.run(WINDOW);
            figures.total += tally;
            figures.windows.push(tally);
            let mut servers = servers(&world.network);
            means.push(spread(&servers).0);
            p95s.push(quantile(&mut servers, 0.95));
            stale.push(world.network.stale_fingers());
        }
        [figures.servers_mean, figures.servers_p95, figures.stale_fingers] =
            [means, p95s, stale].map(|values| spread(&values).0);
        figures
    }

    /// The part of queries that were answered.
    pub fn success(&self) -> f64 {
        self.total.success()
    }

    /// By how much success differs from window to window: its standard deviation.
    pub fn unrest(&self) -> f64 {
        spread(&self.successes()).1
    }

    /// Success in each window.
    pub fn successes(&self) -> Vec<f64> {
        self.windows.iter().map(Tally::success).collect()
    }

    /// Hops of an answered query.
    pub fn path(&self) -> f64 {
        self.total.path()
    }

    /// Actions of balancing in a second, as K18 counts them.
    pub fn actions(&self) -> f64 {
        self.total.actions() as f64 / self.total.seconds.max(1) as f64
    }
}

fn servers(network: &Network) -> Vec<f64> {
    let machines = network.alive().iter();
    machines.map(|machine| network.machine(*machine).servers.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::scheme::Contender;

    fn course() -> Course {
        Course {
            machines: 60,
            seconds: 360,
            capacities: Capacities::Gnutella,
            lives: Lives::Pareto { mean: 300.0, correlation: 0.0 },
            burst: 1,
            skew: 1.2,
            points: 100,
            setup: Setup { activation: 30, ..Setup::default() },
        }
    }

    #[test]
    fn figures_are_of_the_second_half_and_their_windows_are_all_of_it() {
        let figures = course().run(Contender::active(8).scheme(60));
        let mut sum = Tally::default();
        figures.windows.iter().for_each(|window| sum += *window);
        assert_eq!((figures.windows.len(), sum), (3, figures.total));
        let mut world = course().begin(Contender::active(8).scheme(60));
        world.run(180);
        assert_eq!(world.run(180), figures.total);
        assert!(figures.servers_mean >= 1.0 && figures.servers_p95 >= figures.servers_mean.floor());
    }

    #[test]
    fn lives_are_those_of_the_machines_by_number() {
        let (course, lives) = (course(), course().lives());
        let mut world = course.begin(Contender::None.scheme(60));
        world.run(course.seconds);
        assert!(lives.len() > 60);
        for machine in world.network.alive() {
            let (state, life) = (world.network.machine(*machine), lives[*machine as usize]);
            assert_eq!((state.capacity, state.born), (life.capacity, life.from));
            assert!(life.to >= course.seconds);
        }
    }
}
