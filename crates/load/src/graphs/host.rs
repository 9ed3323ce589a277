//! The file host (figure 8): from a replica request to a stored replica.

use crate::{
    graph::{Flow, Graph},
    place::{Place, Release, Shed},
    settings,
};

/// Replica requests that wait or are being served.
pub const REQUESTS: Place<Shed> = Place::new("8A", "request queue").of("requests");
/// Replicas on disk.
pub const REPLICAS: Place<Release> = Place::new("8B", "stored replicas").of("bytes");

/// The file host's graph.
pub fn graph(settings: &settings::Host) -> Graph {
    let mut graph = Graph::new("host", "replicas of other people's files");

    graph.flow(Flow::arrival("replica request", REQUESTS));
    let copy = Flow::between("copy", REQUESTS, REPLICAS).waits_for("the source").disk_bound();
    graph.flow(copy);
    // L53: nobody waits for it any more.
    graph.flow(Flow::exit("expired", REQUESTS));
    let eject = graph.flow(Flow::exit("eject by rank", REPLICAS));

    // L51: explicit, because one blocked thread for each request is a queue without a bound (L16).
    graph.shed(
        REQUESTS,
        settings.requests_max,
        "the host tells the server to use another; if that is lost, the server's timeout does",
    );
    // L54: deleting a file is a fast release (L25).
    graph.release(REPLICAS, settings.replica_bytes, eject);
    graph
}
