//! What a small network does, and what can be seen of it.

use base::Rng;
use overlay::{Policy, Position, Refresh};

use super::{
    network::{Network, ServerId, State, Wiring},
    popularity::Popularity,
    population::{Capacities, Lives, population},
    scheme::{Contender, KChoices, None, Scheme},
    tally::Tally,
    world::{Setup, World},
};

const MACHINES: usize = 200;

fn schemes() -> Vec<(&'static str, Box<dyn Scheme>)> {
    let all = Contender::all(Policy::default().choices);
    all.iter().map(|contender| (contender.name(), contender.scheme(MACHINES))).collect()
}

fn world(scheme: Box<dyn Scheme>, skew: f64, seconds: u32) -> World {
    let mut rng = Rng::new(3);
    let lives = Lives::Pareto { mean: 900.0, correlation: 0.2 };
    let lives = population(MACHINES, seconds, Capacities::Gnutella, lives, &mut rng);
    let popularity = Popularity::new(skew, 500, &mut rng);
    World::new(Setup { activation: 50, ..Setup::default() }, lives, popularity, scheme)
}

/// Whether what servers and machines say of themselves and of each other is true.
fn audit(network: &Network) {
    let servers: Vec<(Position, ServerId)> = network.ring().iter().collect();
    for (at, (position, id)) in servers.iter().enumerate() {
        let server = network.server(*id);
        let next = servers[(at + 1) % servers.len()];
        assert_eq!((server.position, network.state(*id)), (*position, State::Here));
        assert_eq!(network.successor(*id).position, next.0);
        assert_eq!(network.server(next.1).before, *position);
        assert!(network.machine(network.owner(*id)).servers.contains(id));
    }
    let counted: usize = network.alive().iter().map(|m| network.machine(*m).servers.len()).sum();
    assert_eq!(counted, servers.len());
    for machine in network.alive() {
        let machine = network.machine(*machine);
        let work: f64 = machine.servers.iter().map(|server| network.work(*server)).sum();
        assert!((work - machine.work).abs() < 1e-6 * (1.0 + work), "{work} {}", machine.work);
        assert!(!machine.servers.is_empty());
    }
    let mut rng = Rng::new(u64::from(network.now));
    for _ in 0..100 {
        let origin = network.draw_origin(&mut rng).expect("somebody is there");
        assert_eq!(network.state(origin), State::Here, "queries begin where somebody stands");
        assert!(network.machine(network.owner(origin)).servers.contains(&origin));
    }
    let shares: f64 = servers.iter().map(|(_, server)| network.share(*server)).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
}

#[test]
fn books_are_right_after_every_second_of_every_scheme() {
    for (name, scheme) in schemes() {
        let mut world = world(scheme, 1.2, 300);
        let mut total = Tally::default();
        for _ in 0..300 {
            total += world.step();
            audit(&world.network);
        }
        let ends = total.answered + total.overloads + total.stale;
        assert_eq!(total.queries, ends, "{name}: every query ends in one way");
        assert_eq!(total.seconds, 300);
        assert!(total.churn > 0 && total.stale > 0 && total.refreshed_dead > 0, "{name} {total:?}");
    }
}

#[test]
fn every_scheme_that_acts_is_seen_to_act() {
    for (name, scheme) in schemes() {
        let total = world(scheme, 1.2, 400).run(400);
        assert_eq!(
            total.actions() > 0,
            !["none", "log-n", "passive"].contains(&name),
            "{name} {total:?}"
        );
        assert_eq!(total.transfers > 0, name == "transfer", "{name}");
    }
}

#[test]
fn servers_stand_only_where_their_machine_may_if_the_scheme_keeps_to_that() {
    for (name, scheme) in schemes() {
        let mut world = world(scheme, 1.2, 400);
        world.run(400);
        let all: Vec<(Position, ServerId)> = world.network.ring().iter().collect();
        let is_verifiable = all.iter().all(|(position, server)| {
            let machine = world.network.owner(*server);
            let index = world.network.index(*server);
            index.is_some_and(|index| world.network.position(machine, index) == *position)
        });
        assert_eq!(is_verifiable, !["transfer", "threshold"].contains(&name), "{name}");
    }
}

#[test]
fn active_k_choices_answers_more_queries_than_none() {
    let success = |scheme| {
        let mut world = world(scheme, 1.2, 1_200);
        world.run(800);
        world.run(400).success()
    };
    let active = success(Box::new(KChoices::new(Policy::default())));
    let none = success(Box::new(None));
    assert!(active > none + 0.1, "{active} against {none}");
}

#[test]
fn with_capacity_for_all_and_nobody_dying_every_query_is_answered() {
    let mut rng = Rng::new(4);
    let lives = population(64, 50, Capacities::Equal(1e6), Lives::Endless, &mut rng);
    let mut world = World::new(Setup::default(), lives, Popularity::Uniform, Box::new(None));
    let total = world.run(50);
    assert_eq!((total.queries, total.answered), (64 * 10 * 50, 64 * 10 * 50));
    assert!((2.0..4.0).contains(&total.path()), "{}", total.path());
}

#[test]
fn a_machine_without_capacity_fails_what_it_can_not_do_and_no_more() {
    let mut rng = Rng::new(5);
    let lives = population(64, 50, Capacities::Equal(5.0), Lives::Endless, &mut rng);
    let mut world = World::new(Setup::default(), lives, Popularity::Uniform, Box::new(None));
    let total = world.run(50);
    assert!(total.hops - total.overloads <= 64 * 5 * 50, "{total:?}");
    assert!(total.overloads > 0 && total.stale == 0);
}

#[test]
fn fingers_go_stale_with_deaths_and_refreshing_finds_them() {
    let stale = |refresh, refresh_s| {
        let mut rng = Rng::new(6);
        let lives = Lives::Pareto { mean: 600.0, correlation: 0.0 };
        let lives = population(MACHINES, 400, Capacities::Equal(1e6), lives, &mut rng);
        let wiring = Wiring { refresh, refresh_s, ..Wiring::default() };
        let setup = Setup { wiring, rate: 1.0, ..Setup::default() };
        let mut world = World::new(setup, lives, Popularity::Uniform, Box::new(None));
        world.run(400);
        world.network.stale_fingers()
    };
    let (short, long) = (stale(Refresh::Always, 10.0), stale(Refresh::Always, 200.0));
    assert!(short < 0.05 && long > 2.0 * short, "{short} {long}");
}

#[test]
fn a_seed_is_a_run() {
    let run = |skew| {
        let mut world = world(Box::new(KChoices::new(Policy::default())), skew, 200);
        (world.run(200), world.network.ring().iter().collect::<Vec<_>>())
    };
    assert_eq!(run(1.2), run(1.2));
    assert_ne!(run(1.2), run(0.8));
}
