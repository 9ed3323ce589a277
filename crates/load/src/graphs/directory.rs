//! The directory server (figure 7): from a client's update to enough replicas.

use crate::{
    graph::{Flow, Graph},
    place::{ClownCar, Place, Throttle},
    settings,
};

/// Files written a short while ago, which may soon be written again.
pub const ABSORBED: Place<ClownCar> = Place::new("7A", "write-absorption set").of("files");
/// Files that lack a replica, by the rank of the lowest that is missing.
pub const MISSING: Place<ClownCar> = Place::new("7B", "replication multi-queue").of("files");
/// Replica requests that hosts have not answered.
pub const REQUESTS: Place<Throttle> = Place::new("7C", "outstanding requests").of("requests");

/// The directory server's graph.
pub fn graph(settings: &settings::Directory) -> Graph {
    let mut graph = Graph::new("directory", "replicas that directory servers must have made");

    graph.flow(Flow::arrival("client update", ABSORBED));
    graph.flow(Flow::between("absorbed", ABSORBED, MISSING).after(settings.absorb_period));
    // L50: what hosts eject is missing again.
    graph.flow(Flow::arrival("replica ejected", MISSING));
    let request = graph.flow(Flow::between("request", MISSING, REQUESTS));
    // L47: on an answer, or when time is up, the next rank is due or the file is done.
    graph.flow(Flow::between("next rank", REQUESTS, MISSING).waits_for("a host, or time is up"));
    graph.flow(Flow::exit("done", REQUESTS).waits_for("a host, or time is up"));
    // L49: after several failures the source is suspected.
    graph.flow(Flow::between("source suspected", REQUESTS, ABSORBED));

    // L44, L45: both sets are fields in the files' records, and the later update wins.
    let bound = "files of the group, bounded by the quota on files";
    graph.clown_car(ABSORBED, settings.files_max, bound);
    graph.clown_car(MISSING, settings.files_max, bound);
    // L46
    graph.throttle(REQUESTS, settings.requests_max, &[request]);
    graph
}
