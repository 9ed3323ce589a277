//! Random tasks and random orders of events, in worlds too large for all of them.

use base::{Duration, Rng};
use load::settings::Pager as Settings;
use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};

use crate::world::{Event, Key, Mutant, Op, World};

prop_compose! {
    fn settings()(
        lookups_max in 1..12u64,
        batch_max in 1..6u64,
        loads_max in 1..6u64,
        dirty_threshold in 1..8u64,
        clean_max in 1..8u64,
        writes_max in 1..5u64,
    ) -> Settings {
        Settings {
            lookups_max,
            batch_max,
            loads_max,
            referenced_expected: 100,
            dirty_threshold,
            clean_after: Duration::from_secs(180),
            clean_max,
            discard_after: Duration::from_secs(600),
            writes_max,
        }
    }
}

/// Rounds of taking up to three objects, perhaps changing them, and letting go of them all.
fn program() -> impl Strategy<Value = Vec<Op>> {
    let round = prop::collection::btree_map(0..24 as Key, any::<bool>(), 1..4);
    prop::collection::vec(round, 1..8).prop_map(|rounds| {
        let ops = rounds.into_iter().flat_map(|round| {
            let take = round.clone().into_iter().flat_map(|(key, is_changed)| {
                [Op::Want(key)].into_iter().chain(is_changed.then_some(Op::Change(key)))
            });
            take.chain(round.into_keys().map(Op::Drop)).collect::<Vec<_>>()
        });
        ops.collect()
    })
}

/// Lets things happen by this seed until all tasks are done; time passes only when nothing else can,
/// or now and then.
fn run(world: &mut World, seed: u64) -> Result<(), TestCaseError> {
    let mut rng = Rng::new(seed);
    let mut events_left = 100_000;
    while !world.is_done() {
        events_left -= 1;
        prop_assert!(events_left > 0, "it goes on for ever");
        let mut events = world.events();
        if events.len() > 1 && rng.chance(0.95) {
            events.retain(|event| *event != Event::Wait);
        }
        prop_assert!(!events.is_empty(), "stuck");
        world.happen(*rng.pick(&events));
        prop_assert_eq!(world.fault, None);
    }
    Ok(())
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn bounds_hold_and_every_lookup_is_granted_in_the_end(
        settings in settings(),
        programs in prop::collection::vec(program(), 1..12),
        seed in any::<u64>(),
    ) {
        let mut world = World::new(settings, programs, Mutant::None);
        run(&mut world, seed)?;
    }
}

#[test]
fn a_planted_fault_is_found_by_a_random_schedule() {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config(), rng);
    for mutant in [Mutant::Unthrottled, Mutant::Forgetful, Mutant::Late] {
        let schedules = (settings(), prop::collection::vec(program(), 1..12), any::<u64>());
        let found = runner.run(&schedules, |(settings, programs, seed)| {
            run(&mut World::new(settings, programs, mutant), seed)
        });
        assert!(found.is_err(), "{mutant:?} went unnoticed");
    }
}
