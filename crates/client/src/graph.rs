//! Where work can pile up in a client, and what keeps it from overflowing.
//!
//! A program that is faster than the group is slowed down: what it asks for waits until there is room in the
//! list of operations that the group has not acknowledged. What is only known, and not owed, is forgotten.

use load::{Flow, Graph, Place, Release, Throttle};

use crate::client::Settings;

/// Calls of programs that wait for something.
const CALLS: Place<Throttle> = Place::new("1A", "waiting calls").of("calls");
/// Operations that were performed here and that the group has not acknowledged.
const PENDING: Place<Throttle> = Place::new("1B", "pending operations").of("operations");
/// Open files.
const HANDLES: Place<Throttle> = Place::new("1C", "open files").of("handles");
/// Whoever has locked open files.
const LOCKERS: Place<Throttle> = Place::new("1F", "lockers of files").of("lockers");
/// Files and names that are remembered.
const FACTS: Place<Release> = Place::new("1D", "remembered facts").of("facts");
/// Leases that are held.
const LEASES: Place<Release> = Place::new("1E", "held leases").of("leases");

/// The graph of a client with these settings.
pub fn graph(settings: &Settings) -> Graph {
    let mut graph = Graph::new("calls", "what programs ask for, until the group has heard of it");

    let ask = graph.flow(Flow::entry("a program asks", CALLS));
    graph.flow(Flow::exit("answered", CALLS).waits_for("the group"));
    let perform = graph.flow(Flow::between("performed", CALLS, PENDING));
    graph.flow(Flow::exit("acknowledged", PENDING).waits_for("the group"));

    let open = graph.flow(Flow::entry("a program opens", HANDLES));
    graph.flow(Flow::exit("closed", HANDLES).waits_for("the program"));
    let lock = graph.flow(Flow::entry("a program locks", LOCKERS));
    graph.flow(Flow::exit("unlocked or closed", LOCKERS).waits_for("the program"));

    graph.flow(Flow::arrival("the group tells", FACTS));
    let forget = graph.flow(Flow::exit("forgotten", FACTS));
    graph.flow(Flow::arrival("granted", LEASES));
    let give_back = graph.flow(Flow::exit("given back", LEASES));

    graph.throttle(CALLS, settings.calls_max as u64, &[ask]);
    graph.throttle(PENDING, settings.pending_max as u64, &[perform]);
    graph.throttle(HANDLES, settings.handles_max as u64, &[open]);
    graph.throttle(LOCKERS, settings.lockers_max as u64, &[lock]);
    graph.release(FACTS, settings.facts_max as u64, forget);
    graph.release(LEASES, settings.budget as u64, give_back);
    graph
}

/// These settings with the limits that the graph hands out for them.
///
/// # Panics
///
/// If something could pile up without a bound.
pub(crate) fn limited(settings: Settings) -> Settings {
    let graph = graph(&settings);
    let mut plan = graph.plan().unwrap_or_else(|not_immune| panic!("{not_immune}"));
    let limited = Settings {
        calls_max: plan.spec(CALLS).threshold as usize,
        pending_max: plan.spec(PENDING).threshold as usize,
        handles_max: plan.spec(HANDLES).threshold as usize,
        lockers_max: plan.spec(LOCKERS).threshold as usize,
        facts_max: plan.spec(FACTS).threshold as usize,
        budget: plan.spec(LEASES).threshold as usize,
        ..settings
    };
    plan.finish();
    limited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_piles_up_without_a_bound() {
        let verdict = graph(&Settings::of(lease::Client(1))).check();
        assert!(verdict.is_immune(), "{verdict:?}");
    }

    #[test]
    fn the_limits_in_force_are_those_of_the_graph() {
        let mut settings = Settings::of(lease::Client(1));
        assert_eq!(limited(settings), settings);
        (settings.calls_max, settings.pending_max, settings.handles_max) = (2, 1, 1);
        assert_eq!(limited(settings), settings, "also if they are small");
    }
}
