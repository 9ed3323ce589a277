//! Every order of events in a world of four objects and three tasks.

use base::Duration;
use load::settings::Pager as Settings;
use stateright::{Checker, Model, Property};

use crate::world::{Event, Mutant, Op, World};

/// So small that every limit is met.
fn settings() -> Settings {
    Settings {
        lookups_max: 2,
        batch_max: 1,
        loads_max: 1,
        referenced_expected: 4,
        dirty_threshold: 1,
        clean_after: Duration::from_secs(3),
        clean_max: 2,
        discard_after: Duration::from_secs(10),
        writes_max: 1,
    }
}

/// Tasks that hold one object while they wait for another, in orders that invite deadlock.
fn programs() -> Vec<Vec<Op>> {
    use Op::{Change, Drop, Want};
    let nested = |a, b| vec![Want(a), Change(a), Want(b), Change(b), Drop(a), Drop(b)];
    let mut programs = vec![nested(0, 1), nested(2, 3), nested(1, 2)];
    programs[0].extend([Want(0), Drop(0)]);
    programs
}

struct Small(Mutant);

impl Model for Small {
    type State = World;
    type Action = Event;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(settings(), programs(), self.0)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Event>) {
        if world.fault.is_none() {
            actions.extend(world.events());
        }
    }

    fn next_state(&self, world: &World, event: Event) -> Option<World> {
        let mut world = world.clone();
        world.happen(event);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Small>> {
        vec![
            Property::always("places and matching are in order", |_, world: &World| {
                world.fault.is_none()
            }),
            Property::always("nobody is stuck", |_, world: &World| {
                world.is_done() || world.fault.is_some() || !world.events().is_empty()
            }),
            Property::sometimes("all are done", |_, world: &World| world.is_done()),
            Property::sometimes("lookups wait while matching", |_, world: &World| {
                world.pager.is_matching() && world.pager.waiting().count() > 0
            }),
            Property::sometimes("a lookup of a batch waits for the store", |_, world: &World| {
                !world.pager.is_matching() && world.pager.tickets() > 0
            }),
            Property::sometimes("a lookup has joined a load", |_, world: &World| {
                let is_loading = |key| world.pager.stage(key) == Some(load::pager::Stage::Loading);
                world.pager.waiting().any(|(key, _)| is_loading(key))
            }),
            Property::sometimes("an object has come back while written", |_, world: &World| {
                world
                    .writes
                    .iter()
                    .any(|key| world.pager.stage(key) == Some(load::pager::Stage::Referenced))
            }),
        ]
    }
}

#[test]
fn in_every_order_of_events_bounds_hold_and_nobody_is_stuck() {
    let checker = Small(Mutant::None).checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    // All of them: whoever changes the pager sees whether its world has grown or shrunk.
    assert!(checker.is_done());
    assert_eq!(checker.unique_state_count(), 44_741);
}

fn discovers(mutant: Mutant, property: &'static str) {
    let checker = Small(mutant).checker().spawn_bfs().join();
    checker.assert_any_discovery(property);
}

#[test]
fn a_pager_without_its_throttle_is_found_out() {
    discovers(Mutant::Unthrottled, "places and matching are in order");
}

#[test]
fn a_pager_that_forgets_to_release_on_cleaning_is_found_out() {
    discovers(Mutant::Forgetful, "nobody is stuck");
}

#[test]
fn a_pager_that_stops_lookups_too_late_is_found_out() {
    discovers(Mutant::Late, "places and matching are in order");
}
