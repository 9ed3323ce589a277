//! The client (figure 6): from an application's operation to a file that is safe elsewhere.

use crate::{
    graph::{Flow, Graph},
    place::{Place, Release, Shed, Throttle},
    settings,
};

/// Updates that the driver has logged and not yet handed on.
pub const BUFFERED: Place<Release> = Place::new("6A", "kernel update buffer").of("updates");
/// Updates that wait to be merged and pushed.
pub const UPDATES: Place<Throttle> = Place::new("6B", "update set").of("updates");
/// Updates pushed and not yet acknowledged.
pub const SENT: Place<Throttle> = Place::new("6C", "sent updates").of("updates");
/// Notices that a file has its first replica, before that is written to disk.
pub const NOTICES: Place<Shed> = Place::new("6D", "replica notices").of("notices");
/// Files whose only copy is here.
pub const DIRTY: Place<Throttle> = Place::new("6E", "dirty files").of("bytes");
/// Cached files that exist elsewhere too.
pub const CLEAN: Place<Release> = Place::new("6F", "clean cached files").of("bytes");

/// The client's graph.
pub fn graph(settings: &settings::Client) -> Graph {
    let mut graph = Graph::new("client", "updates on their way, files in the cache");

    let operate = graph.flow(Flow::entry("app operation", BUFFERED));
    let flush = graph.flow(Flow::between("flush", BUFFERED, UPDATES).after(settings.flush_period));
    let push = graph.flow(Flow::between("push", UPDATES, SENT).after(settings.push_period));
    graph.flow(Flow::exit("acknowledged", SENT).waits_for("the directory"));
    graph.flow(Flow::itinerant("first replica made", SENT, NOTICES));
    graph.flow(Flow::exit("file marked clean", NOTICES).disk_bound());

    let create = graph.flow(Flow::entry("create or extend", DIRTY));
    let fetch = graph.flow(Flow::entry("open a remote file", CLEAN));
    graph.flow(Flow::between("modify", CLEAN, DIRTY).by_chance());
    graph.flow(Flow::between("marked clean", DIRTY, CLEAN).waits_for("a replica"));
    let evict = graph.flow(Flow::exit("evict", CLEAN));

    // L36: the buffer is flushed at once when it is full.
    graph.release(BUFFERED, settings.buffered_max, flush);
    // L37: no premature release here, because 6C throttles the push.
    graph.throttle(UPDATES, settings.updates_max, &[operate]);
    // L38: with L37, the client goes as fast as the directory accepts, not as it processes (L39).
    graph.throttle(SENT, settings.sent_max, &[push]);
    // L40: no premature release here, because each notice costs a disk write.
    graph.shed(
        NOTICES,
        settings.notices_max,
        "the client asks from time to time which of its dirty files are clean",
    );
    // L42: applications see an out-of-space error when the only copies fill the cache.
    graph.throttle(DIRTY, settings.cache_bytes, &[create, fetch]);
    // L41: deleting a file is a fast release (L25).
    graph.release(CLEAN, settings.clean_bytes, evict);
    graph
}
