//! The object pager (figure 9): from a lookup that missed to an object written and discarded.
//!
//! The figure has no 9F. Our lookups wait in 9A until they may go, and then at the store, and every
//! queue stands in its graph.

use crate::{
    graph::{Flow, Graph},
    place::{Place, Release, Throttle, Unprotected},
    settings,
};

/// Lookups that wait for their turn.
pub const LOOKUPS: Place<Throttle> = Place::new("9A", "lookup queue").of("objects");
/// Objects that somebody works with.
pub const REFERENCED: Place<Unprotected> = Place::new("9B", "referenced objects").of("objects");
/// Changed objects that nobody works with.
pub const DIRTY: Place<Throttle> = Place::new("9C", "unreferenced dirty").of("objects");
/// Unchanged objects that nobody works with.
pub const CLEAN: Place<Release> = Place::new("9D", "unreferenced clean").of("objects");
/// Objects being written.
pub const CLEANING: Place<Throttle> = Place::new("9E", "being cleaned").of("objects");

/// Lookups at the store.
pub const LOADING: Place<Throttle> = Place::new("9F", "lookups at the store").of("objects");

/// The object pager's graph.
pub fn graph(settings: &settings::Pager) -> Graph {
    let mut graph = Graph::new("pager", "objects in memory, on their way from the store and back");

    let miss = graph.flow(Flow::entry("lookup missed", LOOKUPS));
    let lookup = graph.flow(Flow::between("lookup", LOOKUPS, LOADING));
    graph.flow(Flow::between("loaded", LOADING, REFERENCED).disk_bound());
    // Whoever holds an object may need another before it lets go.
    let drop_dirty = Flow::between("dropped dirty", REFERENCED, DIRTY)
        .needs(lookup)
        .unstoppable("set-dirty is atomic and must not block");
    graph.flow(drop_dirty);
    graph.flow(Flow::between("dropped clean", REFERENCED, CLEAN).needs(lookup));
    let clean = graph.flow(Flow::between("clean", DIRTY, CLEANING).after(settings.clean_after));
    graph.flow(Flow::between("written", CLEANING, CLEAN).disk_bound());
    let discard = graph.flow(Flow::exit("discard", CLEAN).after(settings.discard_after));
    graph.flow(Flow::between("hit dirty", DIRTY, REFERENCED).by_chance());
    graph.flow(Flow::between("hit clean", CLEAN, REFERENCED).by_chance());
    graph.flow(Flow::between("hit while written", CLEANING, REFERENCED).by_chance());
    graph.flow(Flow::between("changed while written", CLEANING, DIRTY).by_chance());
    // Lookups of one object are one: the first takes the turn, the others join when it has loaded. So
    // 9C stops them where it stops the first, and they bring no object of their own.
    let meanwhile = Flow::between("loaded meanwhile", LOOKUPS, REFERENCED).by_chance();
    let meanwhile = graph.flow(meanwhile);

    // L56
    graph.throttle(LOOKUPS, settings.lookups_max, &[miss]);
    // L61
    graph.unprotected(
        REFERENCED,
        settings.referenced_expected,
        "to throttle it would deadlock, and what is referenced can be neither released nor shed; \
         bounded batches, work in FIFO order and no caches of references keep it small",
    );
    // L58: it throttles the lookup and not set-dirty; no deadlock, for the cleaner never looks up.
    graph.throttle(DIRTY, settings.dirty_max(), &[lookup, meanwhile]);
    // L60: at the limit, the least recently referenced is discarded before its time.
    graph.release(CLEAN, settings.clean_max, discard);
    // L56
    graph.throttle(CLEANING, settings.writes_max, &[clean]);
    graph.throttle(LOADING, settings.loads_max, &[lookup]);
    graph
}
