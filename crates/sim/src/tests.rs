//! Laws of the world, shown with nodes that pass a ball.

use base::{Duration, Instant, Rng};

use super::*;

/// Passes every ball on to the next node, and serves one each second.
struct Player {
    players: u16,
    serve_at: Instant,
    seen: Vec<(Instant, u64)>,
}

impl Actor for Player {
    type Message = u64;
    type Note = &'static str;

    fn deliver(&mut self, now: Instant, from: Node, ball: u64, out: &mut Outbox<Player>) {
        self.seen.push((now, ball));
        out.note("caught");
        if !ball.is_multiple_of(10) {
            out.send(Node((from.0 + 2) % self.players), ball - 1);
        }
    }

    fn wake(&mut self, now: Instant, out: &mut Outbox<Player>) {
        assert!(now >= self.serve_at);
        self.serve_at = now + Duration::from_secs(1);
        out.mark("serve");
        out.send(Node(1 % self.players), self.seen.len() as u64 * 10 + 9);
    }

    fn wake_at(&self) -> Option<Instant> {
        Some(self.serve_at)
    }

    fn restart(&mut self, now: Instant, _: &mut Outbox<Player>) {
        self.seen.clear();
        self.serve_at = now + Duration::from_secs(1);
    }
}

fn world(players: u16, faults: Faults, seed: u64) -> World<Player> {
    let mut rng = Rng::new(seed);
    let mut player = || {
        let clock = Clock::draw(&faults, &mut rng);
        let serve_at = clock.local(Instant::START);
        (Player { players, serve_at, seen: Vec::new() }, clock)
    };
    let nodes = (0..players).map(|_| player()).collect();
    World::new(faults, nodes, Marks::new(&["serve", "faint"]), &mut rng)
}

fn hostile(seed: u64) -> World<Player> {
    let mut world = world(5, Faults::draw(&mut Rng::new(seed)), seed);
    assert_eq!(world.run_until(Instant::from_secs(300), &mut ()), Ok(()));
    world
}

#[test]
fn a_seed_replays_to_the_same_digest_and_two_differ() {
    let digests: Vec<_> = (0..20).map(|seed| hostile(seed).digest()).collect();
    for (seed, digest) in digests.iter().enumerate() {
        assert_eq!(hostile(seed as u64).digest(), *digest);
        assert!(!digests[..seed].contains(digest));
    }
}

#[test]
fn every_kind_of_thing_happens_in_some_world() {
    let mut counts = Counts::default();
    for seed in 0..20 {
        counts.merge(hostile(seed).counts());
    }
    for kind in Kind::ALL {
        assert!(counts[kind] > 0, "{kind:?} never happens");
    }
}

#[test]
fn without_faults_messages_arrive_in_the_order_sent() {
    let mut world = world(2, Faults::none(), 1);
    world.run_until(Instant::from_millis(1_500), &mut ()).unwrap();
    let balls: Vec<u64> = world.actor(Node(1)).seen.iter().map(|(_, ball)| *ball).collect();
    assert_eq!(balls[..2], [9, 9], "both served to node 1 at once");
    let times = world.actor(Node(1)).seen.iter().map(|(at, _)| *at);
    assert!(times.is_sorted());
    assert_eq!(world.marks().iter().collect::<Vec<_>>(), [("serve", 4), ("faint", 0)]);
    assert_eq!(world.marks().missed().collect::<Vec<_>>(), ["faint"]);
}

#[test]
fn a_paused_node_gets_everything_when_it_thaws_and_at_its_own_late_time() {
    let mut world = world(1, Faults::none(), 1);
    world.run_until(Instant::from_millis(500), &mut ()).unwrap();
    let before = world.actor(Node(0)).seen.len();
    world.pause(Node(0), Duration::from_secs(60));
    world.run_until(Instant::from_secs(60), &mut ()).unwrap();
    assert_eq!(world.actor(Node(0)).seen.len(), before, "it stands still");
    assert!(!world.is_up(Node(0)));
    world.run_until(Instant::from_millis(60_520), &mut ()).unwrap();
    let seen = &world.actor(Node(0)).seen[before..];
    assert!(world.is_up(Node(0)) && !seen.is_empty());
    assert!(seen.iter().all(|(at, _)| *at >= Instant::from_millis(60_500)));
    assert_eq!(world.counts()[Kind::Wake], 2, "one wake for all that were due");
}

#[test]
fn a_node_that_is_down_misses_what_arrives_and_starts_again() {
    let mut world = world(2, Faults::none(), 1);
    world.run_until(Instant::from_millis(500), &mut ()).unwrap();
    world.crash(Node(1), Duration::from_secs(10));
    world.run_until(Instant::from_millis(10_400), &mut ()).unwrap();
    assert!(world.counts()[Kind::Missed] > 5);
    assert!(!world.actor(Node(1)).seen.is_empty(), "its memory is there until it starts again");
    world.run_until(Instant::from_millis(10_500), &mut ()).unwrap();
    assert_eq!(world.counts()[Kind::Restart], 1);
    assert!(world.actor(Node(1)).seen.is_empty());
}

#[test]
fn each_node_lives_by_its_own_clock() {
    let faults = Faults { rate_ppm: 100_000, ..Faults::none() };
    let mut world = world(4, faults, 3);
    world.run_until(Instant::from_secs(1_000), &mut ()).unwrap();
    let mut shown: Vec<_> = world.nodes().map(|node| world.local(node)).collect();
    shown.sort();
    shown.dedup();
    assert!(shown.len() > 1, "{shown:?}");
    assert!(
        shown[0] >= Instant::from_secs(900)
            && shown[3.min(shown.len() - 1)] <= Instant::from_secs(1_100)
    );
}

#[test]
fn a_healed_world_stays_whole() {
    for seed in 0..20 {
        let mut world = hostile(seed);
        world.heal();
        let before = *world.counts();
        world.run_until(Instant::from_secs(600), &mut ()).unwrap();
        let after = world.counts();
        for kind in [Kind::Pause, Kind::Crash, Kind::Split, Kind::Lost, Kind::Cut] {
            assert_eq!(after[kind], before[kind], "{kind:?}");
        }
        assert!(world.nodes().all(|node| world.is_up(node)));
    }
}

#[test]
fn a_checker_stops_the_world_where_it_is_broken() {
    struct NoNine;
    impl Checker<Player> for NoNine {
        fn check(&mut self, world: &World<Player>, actor: Node) -> Result<(), Broken> {
            assert!(world.notes().iter().all(|note| *note == "caught"));
            match world.actor(actor).seen.last() {
                Some((_, 5)) => Err(Broken::new("no five", format!("{actor} caught a five"))),
                _ => Ok(()),
            }
        }
    }
    let mut world = world(2, Faults::none(), 1);
    world.keep_trace(3);
    let violation = world.run_until(Instant::from_secs(9), &mut NoNine).unwrap_err();
    assert_eq!(violation.to_string(), "no five at 5ms: n1 caught a five");
    let trace: Vec<_> = world.trace().collect();
    assert_eq!(
        trace,
        ["5ms n1 (at 5ms) hears n0: 5", "5ms n1 \"caught\"", "5ms n1 tells n0 (Once(1ms)): 4"]
    );
}

#[test]
fn a_node_that_is_woken_without_end_is_reported() {
    struct Sleepless;
    impl Actor for Sleepless {
        type Message = ();
        type Note = ();
        fn deliver(&mut self, _: Instant, _: Node, (): (), _: &mut Outbox<Sleepless>) {}
        fn wake(&mut self, _: Instant, _: &mut Outbox<Sleepless>) {}
        fn wake_at(&self) -> Option<Instant> {
            Some(Instant::START)
        }
        fn restart(&mut self, _: Instant, _: &mut Outbox<Sleepless>) {}
    }
    let nodes = vec![(Sleepless, Clock::default())];
    let mut world = World::new(Faults::none(), nodes, Marks::default(), &mut Rng::new(1));
    let violation = world.run_until(Instant::from_secs(1), &mut ()).unwrap_err();
    assert_eq!(violation.broken.invariant, "wake");
}
