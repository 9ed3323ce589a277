//! Where bytes and calls can pile up in the network, and what keeps them from overflowing.
//!
//! It stands here and not with the graph of the member (`node::graph`), because what it counts is of the
//! transport: handshakes, lanes and windows, of which no lower crate knows. What it hands on comes to the
//! member's mailroom, 2A to 2C and 2AD to 2AE there.

use std::time::Duration;

use load::{Bounded, Flow, Graph, Place, Shed, Throttle};

use super::{
    Lane,
    herald::LINES_MAX,
    limits::{GUEST_WINDOW, KNOCK_BYTES_MAX, LINK_ASKS_MAX, LaneLimits, Limits, SEND_WINDOW},
};

/// Callers that nobody has looked at.
const KNOCKS: Place<Shed> = Place::new("3A", "callers at the door").of("callers");
/// What they have sent.
const KNOCK_BYTES: Place<Shed> = Place::new("3B", "what they have sent").of("bytes");
/// Handshakes that others have begun.
const HANDSHAKES: Place<Shed> = Place::new("3C", "handshakes").of("handshakes");
/// Everything that the transport keeps of connections, also of those that end.
const OPEN: Place<Shed> = Place::new("3D", "all connections").of("connections");
/// Connections of machines of the cell.
const CONNECTIONS: Place<Shed> = Place::new("3E", "machines' connections").of("connections");
/// Connections of strangers.
const GUESTS: Place<Shed> = Place::new("3F", "strangers").of("connections");
/// Machines with an outbox.
const PEERS: Place<Shed> = Place::new("3G", "known machines").of("machines");
/// What has come and was not read.
const RECEIVED: Place<Bounded> = Place::new("3H", "received, not read").of("bytes");
/// Frames of which a part has come.
const READING: Place<Shed> = Place::new("3I", "frames being read").of("bytes");
/// Frames that wait for one machine on one lane, and their bytes.
const OUTBOXES: [(Place<Shed>, Place<Shed>); 3] = [
    (Place::new("3J", "urgent outbox").of("frames"), Place::new("3K", "bytes in it").of("bytes")),
    (Place::new("3L", "ordinary outbox").of("frames"), Place::new("3M", "bytes in it").of("bytes")),
    (Place::new("3N", "bulk outbox").of("frames"), Place::new("3O", "bytes in it").of("bytes")),
];
/// The bytes in all outboxes.
const WAITING: Place<Shed> = Place::new("3P", "bytes in all outboxes").of("bytes");
/// What one machine has not confirmed.
const SENT: Place<Throttle> = Place::new("3Q", "on its way to one").of("bytes");
/// Requests of our own.
const ASKS: Place<Shed> = Place::new("3R", "own requests").of("requests");
/// Requests of others that have begun.
const ASKED: Place<Bounded> = Place::new("3S", "requests of others").of("requests");
/// Those among them that wait for a thread.
const QUEUE: Place<Shed> = Place::new("3T", "waiting for a thread").of("requests");
/// Those that have one.
const ANSWERING: Place<Bounded> = Place::new("3U", "being answered").of("requests");
/// What one machine has used of their time lately.
const ASK_DEBT: Place<Shed> = Place::new("3W", "time used by one").of("us");
/// Of how many that is known.
const ASK_DEBTORS: Place<Shed> = Place::new("3X", "those who used some").of("machines");
/// Lines for people, for as long as people are not to be told more.
const LINES: Place<Shed> = Place::new("3V", "lines for people").of("lines");

/// The graph of a network with these limits.
pub fn graph(limits: &Limits) -> Graph {
    let mut graph = Graph::new("network", "what machines send to one another, and who is let in");

    graph.flow(Flow::arrival("somebody calls", KNOCKS));
    graph.flow(Flow::arrival("its bytes", KNOCK_BYTES));
    graph.flow(Flow::exit("looked at", KNOCK_BYTES));
    graph.flow(Flow::between("let in", KNOCKS, HANDSHAKES));
    graph.flow(Flow::exit("turned away", KNOCKS));
    graph.flow(Flow::between("begun", KNOCKS, OPEN));
    graph.flow(Flow::entry("called", OPEN));
    graph.flow(Flow::exit("ended for good", OPEN));
    graph.flow(Flow::between("known", HANDSHAKES, CONNECTIONS));
    graph.flow(Flow::between("a stranger", HANDSHAKES, GUESTS));
    graph.flow(Flow::exit("too slow", HANDSHAKES));
    graph.flow(Flow::between("noted", CONNECTIONS, PEERS));
    graph.flow(Flow::entry("named", PEERS));
    graph.flow(Flow::exit("forgotten", PEERS));
    graph.flow(Flow::exit("idle or broken", CONNECTIONS));
    graph.flow(Flow::exit("shown out", GUESTS));
    let again = "it is told, or hears nothing, and calls again";
    let knocks = limits.knocks_max();
    graph.shed(KNOCKS, knocks as u64, again);
    graph.shed(KNOCK_BYTES, knocks as u64 * KNOCK_BYTES_MAX, again);
    graph.shed(HANDSHAKES, limits.handshakes_max as u64, again);
    graph.shed(OPEN, limits.open_max as u64, again);
    graph.shed(CONNECTIONS, limits.connections_max as u64, again);
    graph.shed(GUESTS, limits.guests_max as u64, again);
    graph.shed(PEERS, limits.peers_max as u64, "whoever wants to send to it finds it unknown");

    graph.flow(Flow::arrival("bytes come", RECEIVED));
    graph.flow(Flow::between("read", RECEIVED, READING));
    graph.flow(Flow::exit("handed on", READING));
    let (known, others) =
        (limits.connections_max as u64, limits.guests_max + limits.handshakes_max);
    graph.bounded(
        RECEIVED,
        known * SEND_WINDOW + others as u64 * u64::from(GUEST_WINDOW),
        "each connection has a window, and whoever sends more loses it",
    );
    graph.shed(READING, limits.reading_bytes_max as u64, "it is cut off, and calls again");

    let said_again = "whoever means it says it again";
    graph.flow(Flow::entry("something is to be sent", WAITING));
    let mut sent = Vec::new();
    for (lane, (frames, bytes)) in Lane::ALL.iter().zip(OUTBOXES) {
        let LaneLimits { outbox_count_max, outbox_bytes_max, .. } = limits.lane(*lane);
        graph.flow(Flow::entry("a frame is to be sent", frames));
        graph.flow(Flow::between("put", WAITING, bytes));
        graph.flow(Flow::exit("sent, or nobody is there", frames));
        graph.flow(Flow::exit("nobody is there", bytes));
        sent.push(graph.flow(Flow::between("sent", bytes, SENT)));
        graph.shed(frames, *outbox_count_max as u64, said_again);
        graph.shed(bytes, *outbox_bytes_max as u64, said_again);
    }
    graph.flow(Flow::exit("confirmed", SENT).waits_for("the machine"));
    graph.flow(Flow::exit("given up", SENT));
    graph.shed(WAITING, limits.outboxes_bytes_max as u64, said_again);
    graph.throttle(SENT, SEND_WINDOW, &sent);

    graph.flow(Flow::entry("asked", ASKS));
    graph.flow(Flow::exit("answered, or too late", ASKS));
    graph.flow(Flow::arrival("somebody asks", ASKED));
    graph.flow(Flow::between("heard to its end", ASKED, QUEUE));
    graph.flow(Flow::between("a thread is free", QUEUE, ANSWERING));
    graph.flow(Flow::exit("given back", ANSWERING));
    graph.shed(ASKS, limits.asks_max as u64, "whoever asks is told to try again");
    let asked = known * u64::from(LINK_ASKS_MAX) + limits.guests_max as u64;
    graph.bounded(
        ASKED,
        asked,
        "each connection has so many streams, and whoever opens more loses it",
    );
    graph.shed(QUEUE, limits.ask_queue_max as u64, "whoever asks is told to try again");
    graph.bounded(ANSWERING, limits.ask_threads as u64, "one for each thread");

    graph.flow(Flow::arrival("answering it takes", ASK_DEBT));
    graph.flow(Flow::exit("time passes", ASK_DEBT));
    graph.flow(Flow::between("is noted", ASKED, ASK_DEBTORS));
    graph.flow(Flow::exit("paid off", ASK_DEBTORS));
    let unheard =
        "what it asks is not heard for a while, and waits in the windows of its connection";
    graph.shed(ASK_DEBT, limits.ask_debt_max.as_micros() as u64, unheard);
    graph.shed(ASK_DEBTORS, limits.ask_debtors_max as u64, "those beyond share one allowance");

    graph.flow(Flow::entry("somebody is turned away", LINES));
    graph.flow(Flow::exit("ten seconds pass", LINES));
    graph.shed(LINES, u64::from(LINES_MAX), "the rest is counted, and the count is said");
    graph
}

/// These limits as the graph hands them out.
///
/// # Panics
///
/// If something could pile up without a bound.
pub(crate) fn limited(limits: Limits) -> Limits {
    let graph = graph(&limits);
    let mut plan = graph.plan().unwrap_or_else(|not_immune| panic!("{not_immune}"));
    let mut lanes = limits.lanes;
    for (lane, (frames, bytes)) in lanes.iter_mut().zip(OUTBOXES) {
        lane.outbox_count_max = plan.spec(frames).threshold as usize;
        lane.outbox_bytes_max = plan.spec(bytes).threshold as usize;
    }
    let limited = Limits {
        lanes,
        handshakes_max: plan.spec(HANDSHAKES).threshold as usize,
        open_max: plan.spec(OPEN).threshold as usize,
        connections_max: plan.spec(CONNECTIONS).threshold as usize,
        guests_max: plan.spec(GUESTS).threshold as usize,
        peers_max: plan.spec(PEERS).threshold as usize,
        reading_bytes_max: plan.spec(READING).threshold as usize,
        outboxes_bytes_max: plan.spec(WAITING).threshold as usize,
        asks_max: plan.spec(ASKS).threshold as usize,
        ask_queue_max: plan.spec(QUEUE).threshold as usize,
        ask_threads: plan.spec(ANSWERING).threshold as usize,
        ask_debt_max: Duration::from_micros(plan.spec(ASK_DEBT).threshold),
        ask_debtors_max: plan.spec(ASK_DEBTORS).threshold as usize,
        ..limits
    };
    // These follow from the others, or are constants of the transport.
    for place in [KNOCKS, KNOCK_BYTES, LINES] {
        plan.spec(place);
    }
    plan.spec(RECEIVED);
    plan.spec(ASKED);
    plan.spec(SENT);
    plan.finish();
    limited
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_piles_up_without_a_bound() {
        let verdict = graph(&Limits::default()).check();
        assert_eq!(verdict.summary(), "immune", "{verdict:?}");
        assert!(verdict.cautions.is_empty(), "{:?}", verdict.cautions);
    }

    #[test]
    fn without_any_one_protection_the_check_names_that_very_place() {
        let graph = graph(&Limits::default());
        for label in graph.labels() {
            let verdict = graph.without_protection(label).check();
            assert_eq!(verdict.vulnerable(), [label], "{}", verdict.summary());
        }
        assert_eq!(graph.labels().count(), 24);
    }

    #[test]
    fn the_limits_in_force_are_those_of_the_graph() {
        let usual = Limits::default();
        assert_eq!(limited(usual.clone()), usual);
        let small = Limits { asks_max: 1, guests_max: 1, open_max: 2, ..usual };
        assert_eq!(limited(small.clone()), small, "also if they are small");
    }
}
