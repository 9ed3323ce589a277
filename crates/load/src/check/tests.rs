//! One failing example for each rule, with the message that it gives.

use base::Duration;

use super::*;
use crate::{Bounded, ClownCar, Flow, Graph, Place, Release, Shed, Throttle, Unprotected};

const STOPS: Place<Throttle> = Place::new("1A", "queue");
const STOPS_TOO: Place<Throttle> = Place::new("1B", "second queue");
const RELEASES: Place<Release> = Place::new("1R", "buffer");
const SHEDS: Place<Shed> = Place::new("1S", "inbox");
const CAR: Place<ClownCar> = Place::new("1C", "set");
const FIXED: Place<Bounded> = Place::new("1F", "slots");
const BARE: Place<Unprotected> = Place::new("1U", "heap");

/// Builds a graph and compares all that the checker finds.
fn check(build: impl FnOnce(&mut Graph), expected: &[&str]) {
    let mut graph = Graph::new("example", "an example");
    build(&mut graph);
    let findings: Vec<_> = graph.check().findings.iter().map(Finding::to_string).collect();
    assert_eq!(findings, expected);
    assert_eq!(graph.check().is_immune(), expected.is_empty());
}

fn check_cautions(build: impl FnOnce(&mut Graph), expected: &[&str]) {
    let mut graph = Graph::new("example", "an example");
    build(&mut graph);
    let verdict = graph.check();
    assert!(verdict.is_immune(), "{:?}", verdict.findings);
    let cautions: Vec<_> = verdict.cautions.iter().map(Finding::to_string).collect();
    assert_eq!(cautions, expected);
}

#[test]
fn a_chain_that_throttles_its_entry_is_immune() {
    check(
        |graph| {
            let enter = graph.flow(Flow::entry("enter", RELEASES));
            let flush = graph.flow(Flow::between("flush", RELEASES, STOPS));
            graph.flow(Flow::exit("done", STOPS));
            graph.release(RELEASES, 10, flush);
            graph.throttle(STOPS, 11, &[enter]);
        },
        &[],
    );
}

#[test]
fn a_way_round_the_throttle_is_found() {
    check(
        |graph| {
            let front = graph.flow(Flow::entry("front door", STOPS));
            graph.flow(Flow::entry("side door", SHEDS));
            graph.flow(Flow::between("pass on", SHEDS, STOPS));
            graph.flow(Flow::exit("done", STOPS));
            graph.throttle(STOPS, 100, &[front]);
            graph.shed(SHEDS, 10, "somebody asks again");
        },
        &["1A (queue): load comes by entry \"side door\" → 1S → 1A, where it throttles nothing; \
           let it throttle a flow on that path too (L22)"],
    );
}

#[test]
fn a_throttle_of_another_place_does_not_protect() {
    check(
        |graph| {
            let enter = graph.flow(Flow::entry("enter", STOPS));
            graph.flow(Flow::between("pass on", STOPS, STOPS_TOO));
            graph.flow(Flow::exit("done", STOPS_TOO));
            graph.throttle(STOPS, 10, &[enter]);
            graph.throttle(STOPS_TOO, 10, &[]);
        },
        &[
            "1B (second queue): load comes by entry \"enter\" → 1A → 1B, where it throttles \
             nothing; let it throttle a flow on that path too (L22)",
            "1B (second queue): its threshold would be 10 − 10 (1A), which is not above 0; give \
             1B more than 10 items, or 1A less, or throttle nearer to 1B (L23)",
        ],
    );
}

/// L18: whether load comes back is the business of other machines.
#[test]
fn what_comes_back_from_other_machines_counts_as_an_entry() {
    check(
        |graph| {
            let enter = graph.flow(Flow::entry("enter", STOPS));
            graph.flow(Flow::exit("sent", STOPS));
            graph.flow(Flow::itinerant("answer", STOPS, STOPS_TOO));
            graph.flow(Flow::exit("read", STOPS_TOO));
            graph.throttle(STOPS, 10, &[enter]);
            graph.throttle(STOPS_TOO, 10, &[enter]);
        },
        &["1B (second queue): load comes by return \"answer\" → 1B, where it throttles nothing; \
           let it throttle a flow on that path too (L22)"],
    );
}

#[test]
fn what_another_machine_starts_cannot_be_throttled() {
    check(
        |graph| {
            let arrive = graph.flow(Flow::arrival("request", STOPS));
            let answer = graph.flow(Flow::itinerant("answer", STOPS, STOPS_TOO));
            let atomic = graph
                .flow(Flow::between("pass on", STOPS, STOPS_TOO).unstoppable("it must not block"));
            graph.flow(Flow::exit("done", STOPS));
            graph.flow(Flow::exit("done", STOPS_TOO));
            graph.throttle(STOPS, 10, &[arrive]);
            graph.throttle(STOPS_TOO, 10, &[answer, atomic]);
        },
        &[
            "1A (queue): it cannot throttle \"request\": it starts on another machine; throttle a \
             flow that this machine can stop, or shed (L24, L18)",
            "1B (second queue): it cannot throttle \"answer\": it comes back by way of other \
             machines; throttle a flow that this machine can stop, or shed (L24, L18)",
            "1B (second queue): it cannot throttle \"pass on\": it must not block; throttle a flow \
             that this machine can stop, or shed (L24, L18)",
        ],
    );
}

/// Two throttled entries, a feeder and a cycle: everything that can still come is subtracted.
#[test]
fn a_threshold_counts_all_that_can_still_arrive() {
    let mut graph = Graph::new("example", "a cycle");
    let one = graph.flow(Flow::entry("one", SHEDS));
    let two = graph.flow(Flow::entry("two", STOPS));
    graph.flow(Flow::between("pass on", SHEDS, STOPS));
    graph.flow(Flow::between("set aside", STOPS, CAR));
    graph.flow(Flow::between("again", CAR, STOPS).by_chance());
    graph.flow(Flow::exit("done", CAR));
    graph.shed(SHEDS, 30, "somebody asks again");
    graph.clown_car(CAR, 20, "rooms of the house");
    graph.throttle(STOPS, 100, &[one, two]);
    assert!(graph.check().is_immune());
    assert_eq!(graph.plan().unwrap().spec(STOPS).threshold, 50);
}

#[test]
fn capacities_in_different_units_cannot_be_compared() {
    const BYTES: Place<Release> = Place::new("1X", "pages").of("bytes");
    check(
        |graph| {
            let enter = graph.flow(Flow::entry("enter", BYTES));
            let flush = graph.flow(Flow::between("flush", BYTES, STOPS));
            graph.flow(Flow::exit("done", STOPS));
            graph.release(BYTES, 10, flush);
            graph.throttle(STOPS, 100, &[enter]);
        },
        &["1A (queue): it counts items, but 1X, which lies behind its throttle, counts bytes; \
           count the same in both, or throttle nearer to 1A (L23)"],
    );
}

/// The delay of the throttled flow itself lies before the throttle.
#[test]
fn a_throttle_behind_a_delay_is_fine_and_one_before_it_is_not() {
    let build = |is_before: bool| {
        move |graph: &mut Graph| {
            let enter = graph.flow(Flow::entry("enter", CAR));
            let ripe = Flow::between("ripe", CAR, STOPS).after(Duration::from_secs(61));
            let ripe = graph.flow(ripe);
            graph.flow(Flow::exit("done", STOPS));
            graph.clown_car(CAR, 10, "rooms of the house");
            graph.throttle(STOPS, 20, &[if is_before { enter } else { ripe }]);
        }
    };
    check(build(false), &[]);
    check(
        build(true),
        &["1A (queue): it throttles \"enter\", but load takes 61 s from there by entry \"enter\" \
           → 1C → 1A, longer than 1 min, so it would oscillate; throttle behind the delay, or \
           protect 1A in another way (L24)"],
    );
}

#[test]
fn load_must_not_grow_behind_the_throttle() {
    check(
        |graph| {
            let enter = graph.flow(Flow::entry("enter", RELEASES));
            let copy = graph.flow(Flow::between("copy", RELEASES, STOPS).times(4));
            graph.flow(Flow::exit("done", STOPS));
            graph.release(RELEASES, 10, copy);
            graph.throttle(STOPS, 100, &[enter]);
        },
        &["1A (queue): it throttles \"enter\", but \"copy\" makes 4 items of each on the way; \
           throttle behind that (L24)"],
    );
}

#[test]
fn a_release_must_be_free_to_go() {
    check(
        |graph| {
            graph.flow(Flow::entry("enter", RELEASES));
            let push = Flow::between("push", RELEASES, STOPS).waits_for("the server").disk_bound();
            let push = graph.flow(push);
            graph.flow(Flow::exit("done", STOPS));
            graph.release(RELEASES, 10, push);
            graph.throttle(STOPS, 10, &[push]);
        },
        &[
            "1R (buffer): it cannot release along \"push\", because 1A throttles that flow; let 1R \
             throttle what comes in instead (L25)",
            "1R (buffer): it cannot release along \"push\", which waits for the server; let 1R \
             throttle what comes in, or shed (L25)",
            "1R (buffer): it cannot release along \"push\", which costs slow disk work for each \
             item; let 1R throttle what comes in, or shed (L25)",
        ],
    );
}

/// What comes back as more than went away grows without end.
#[test]
fn load_must_not_grow_round_a_circle() {
    check(
        |graph| {
            let enter = graph.flow(Flow::entry("enter", STOPS));
            graph.flow(Flow::between("copy", STOPS, FIXED).times(4));
            graph.flow(Flow::between("back", FIXED, STOPS));
            graph.flow(Flow::exit("out", STOPS));
            graph.bounded(FIXED, 10, "ten slots");
            graph.throttle(STOPS, 100, &[enter]);
        },
        &["1A (queue): it throttles \"enter\", but \"copy\" makes 4 items of each on the way; \
           throttle behind that (L24)"],
    );
}

/// L18: how much is under way, and for how long, would be the business of another machine.
#[test]
fn a_throttle_must_not_reach_across_another_machines_answer() {
    let build = |is_behind: bool| {
        move |graph: &mut Graph| {
            let enter = graph.flow(Flow::entry("enter", CAR));
            let ask = graph.flow(Flow::between("ask", CAR, STOPS).waits_for("the server"));
            // What leaves the place is no longer on its way there.
            graph.flow(Flow::between("again", STOPS, FIXED).waits_for("the server"));
            graph.flow(Flow::between("back", FIXED, STOPS));
            graph.flow(Flow::exit("done", STOPS));
            graph.clown_car(CAR, 10, "rooms of the house");
            graph.bounded(FIXED, 10, "ten slots");
            graph.throttle(STOPS, 100, &[if is_behind { ask } else { enter }]);
        }
    };
    check(build(true), &[]);
    check(
        build(false),
        &["1A (queue): it throttles \"enter\", but on the way \"ask\" waits for the server, so \
           what is under way comes when that answers; throttle behind that (L24, L18)"],
    );
}

#[test]
fn what_a_release_needs_must_be_free_to_go_too() {
    check(
        |graph| {
            let ask = graph.flow(Flow::entry("ask", STOPS).waits_for("the server").disk_bound());
            graph.flow(Flow::entry("enter", RELEASES));
            let hit = graph.flow(Flow::exit("hit", STOPS).needs(ask).by_chance());
            graph.flow(Flow::exit("done", STOPS));
            let push = graph.flow(Flow::exit("push", RELEASES).needs(hit));
            graph.release(RELEASES, 10, push);
            graph.throttle(STOPS, 10, &[ask]);
        },
        &[
            "1R (buffer): it cannot release along \"push\", which needs \"ask\", because 1A \
             throttles that flow; let 1R throttle what comes in instead (L25)",
            "1R (buffer): it cannot release along \"push\", which needs \"ask\", which waits for \
             the server; let 1R throttle what comes in, or shed (L25)",
            "1R (buffer): it cannot release along \"push\", which needs \"ask\", which costs slow \
             disk work for each item; let 1R throttle what comes in, or shed (L25)",
            "1R (buffer): it cannot release along \"push\", which needs \"hit\", which moves only \
             if somebody happens to want that; release along a flow that 1R itself can set going \
             (L25)",
        ],
    );
}

#[test]
fn what_is_released_must_not_come_back() {
    const OTHER: Place<Release> = Place::new("1Q", "second buffer");
    const THIRD: Place<Release> = Place::new("1P", "third buffer");
    check(
        |graph| {
            graph.flow(Flow::entry("enter", THIRD));
            let before = graph.flow(Flow::between("pass on", THIRD, RELEASES));
            let there = graph.flow(Flow::between("there", RELEASES, OTHER));
            let back = graph.flow(Flow::between("back", OTHER, RELEASES));
            graph.flow(Flow::exit("done", OTHER));
            graph.release(THIRD, 10, before);
            graph.release(RELEASES, 10, there);
            graph.release(OTHER, 10, back);
        },
        &[
            "1R (buffer): what it releases comes back, because 1Q releases it in turn; release \
             along a flow that leads out of this circle (L25)",
            "1Q (second buffer): what it releases comes back, because 1R releases it in turn; \
             release along a flow that leads out of this circle (L25)",
        ],
    );
}

#[test]
fn a_place_that_throttles_needs_a_drain_that_is_not_chance() {
    let build = |graph: &mut Graph| {
        let enter = graph.flow(Flow::entry("enter", STOPS));
        graph.flow(Flow::exit("wanted", STOPS).by_chance());
        graph.throttle(STOPS, 10, &[enter]);
    };
    check(
        build,
        &["1A (queue): nothing but chance takes load away from it, so once full it stays full; \
           declare a flow that 1A can count on (L58)"],
    );
    let mut graph = Graph::new("example", "an example");
    build(&mut graph);
    assert_eq!(graph.check().cautions[0].fault, Fault::Undrained);
}

#[test]
fn a_throttle_on_what_does_not_fill_the_place_is_suspicious() {
    check_cautions(
        |graph| {
            let enter = graph.flow(Flow::entry("enter", STOPS));
            let other = graph.flow(Flow::entry("other", SHEDS));
            graph.flow(Flow::exit("done", STOPS));
            graph.flow(Flow::exit("done", SHEDS));
            graph.shed(SHEDS, 10, "somebody asks again");
            graph.throttle(STOPS, 10, &[enter, other]);
        },
        &["1A (queue): it throttles \"other\", which does not lead there; is a flow missing?"],
    );
}

#[test]
fn a_release_must_empty_its_own_place() {
    check(
        |graph| {
            graph.flow(Flow::entry("enter", RELEASES));
            graph.flow(Flow::between("pass on", RELEASES, SHEDS));
            let done = graph.flow(Flow::exit("done", SHEDS));
            graph.release(RELEASES, 10, done);
            graph.shed(SHEDS, 10, "somebody asks again");
        },
        &["1R (buffer): it releases along \"done\", which does not start there; release along a \
           flow out of 1R (L25)"],
    );
}

#[test]
fn a_release_must_not_depend_on_others_or_on_chance() {
    check(
        |graph| {
            graph.flow(Flow::entry("enter", RELEASES));
            let away = graph.flow(Flow::itinerant("send away", RELEASES, SHEDS).by_chance());
            graph.flow(Flow::exit("done", SHEDS));
            graph.release(RELEASES, 10, away);
            graph.shed(SHEDS, 10, "somebody asks again");
        },
        &[
            "1R (buffer): it cannot release along \"send away\", which waits for other machines; \
             let 1R throttle what comes in, or shed (L25)",
            "1R (buffer): it cannot release along \"send away\", which moves only if somebody \
             happens to want that; release along a flow that 1R itself can set going (L25)",
        ],
    );
}

#[test]
fn every_claim_has_its_grounds() {
    check(
        |graph| {
            for flow in [Flow::arrival("in", CAR), Flow::exit("out", CAR)] {
                graph.flow(flow);
            }
            for flow in [Flow::arrival("in", SHEDS), Flow::exit("out", SHEDS)] {
                graph.flow(flow);
            }
            for flow in [Flow::arrival("in", FIXED), Flow::exit("out", FIXED)] {
                graph.flow(flow);
            }
            graph.clown_car(CAR, 10, "");
            graph.shed(SHEDS, 10, "");
            graph.bounded(FIXED, 0, "");
        },
        &[
            "1C (set): it keeps one item for each object, but does not say what the objects are \
             and what bounds them; name them (L26)",
            "1S (inbox): it sheds, but nothing makes up for what is lost; name it (L16)",
            "1F (slots): its capacity is 0; give it room for something",
            "1F (slots): it needs no protection, but does not say why; give the reason",
        ],
    );
}

#[test]
fn a_place_must_not_throttle_its_own_drain() {
    check(
        |graph| {
            let enter = graph.flow(Flow::entry("enter", STOPS));
            let done = graph.flow(Flow::exit("done", STOPS));
            graph.throttle(STOPS, 10, &[enter, done]);
        },
        &[
            "1A (queue): it throttles its own drain, so once full it stays full; throttle only what \
           fills 1A (L58)",
        ],
    );
}

#[test]
fn throttles_must_not_wait_for_each_other() {
    check(
        |graph| {
            let left = graph.flow(Flow::entry("left", STOPS));
            let right = graph.flow(Flow::entry("right", STOPS_TOO));
            let left_out = graph.flow(Flow::exit("left out", STOPS));
            let right_out = graph.flow(Flow::exit("right out", STOPS_TOO));
            graph.throttle(STOPS, 10, &[left, right_out]);
            graph.throttle(STOPS_TOO, 10, &[right, left_out]);
        },
        &[
            "1A (queue): every way out of it is stopped by a throttle that waits for it in turn \
             (with 1B); free one drain in this circle (L58)",
            "1B (second queue): every way out of it is stopped by a throttle that waits for it in \
             turn (with 1A); free one drain in this circle (L58)",
        ],
    );
}

#[test]
fn flows_lead_to_declared_places() {
    check(
        |graph| {
            graph.flow(Flow::arrival("in", SHEDS));
            graph.flow(Flow::between("pass on", SHEDS, CAR));
            graph.shed(SHEDS, 10, "somebody asks again");
        },
        &["1C (undeclared): \"pass on\" leads there, but the graph has no such place; declare it \
           with its technique"],
    );
}

#[test]
fn dangling_places_are_suspicious() {
    check_cautions(
        |graph| {
            graph.flow(Flow::arrival("in", SHEDS));
            graph.flow(Flow::exit("out", CAR));
            graph.shed(SHEDS, 10, "somebody asks again");
            graph.clown_car(CAR, 10, "rooms of the house");
        },
        &[
            "1S (inbox): no load is sure to get away from there; is a flow missing?",
            "1C (set): no load gets there; is a flow missing?",
        ],
    );
}

#[test]
fn a_threshold_that_counts_on_an_exception_is_suspicious() {
    check_cautions(
        |graph| {
            let enter = graph.flow(Flow::entry("enter", BARE));
            graph.flow(Flow::between("drop", BARE, STOPS));
            graph.flow(Flow::exit("done", STOPS));
            graph.unprotected(BARE, 10, "it is only an example");
            graph.throttle(STOPS, 20, &[enter]);
        },
        &["1A (queue): its threshold counts on 1U holding at most 10 items, which nothing \
           enforces"],
    );
}

#[test]
fn a_system_needs_each_place_to_be_immune_once() {
    // The right half cuts "pass on", so it does not see that 1A throttles what comes that way.
    assert_eq!(right(&[]).check().vulnerable(), ["1A"]);
    check_system(vec![left(), right(&[])], &[]);
    check_system(
        vec![right(&[]), right(&[])],
        &["1A (queue): load comes by entry \"pass on\" → 1A, where it throttles nothing; let it \
           throttle a flow on that path too (L22)"; 2],
    );
}

fn check_system(graphs: Vec<Graph>, expected: &[&str]) {
    let verdict = System::new("whole", graphs).check();
    let findings: Vec<_> = verdict.findings.iter().map(Finding::to_string).collect();
    assert_eq!(findings, expected);
}

fn left() -> Graph {
    let mut graph = Graph::new("left", "all that fills 1A");
    let enter = graph.flow(Flow::entry("enter", CAR));
    graph.flow(Flow::between("pass on", CAR, STOPS));
    graph.flow(Flow::exit("done", STOPS));
    graph.clown_car(CAR, 10, "rooms of the house");
    graph.throttle(STOPS, 20, &[enter]);
    graph
}

fn right(more: &[&'static str]) -> Graph {
    let mut graph = Graph::new("right", "what 1A fills");
    graph.flow(Flow::entry("pass on", STOPS));
    more.iter().for_each(|name| _ = graph.flow(Flow::entry(name, STOPS)));
    graph.flow(Flow::between("done", STOPS, SHEDS));
    graph.flow(Flow::exit("gone", SHEDS));
    graph.shed(SHEDS, 10, "somebody asks again");
    graph.throttle(STOPS, 20, &[]);
    graph
}

#[test]
fn a_graph_that_lacks_an_entry_proves_nothing() {
    check_system(
        vec![left(), right(&["side door"])],
        &["1A (queue): load comes by entry \"pass on\" → 1A, where it throttles nothing; let it \
           throttle a flow on that path too (L22)"],
    );
    // The same a step before the place, where the other graph does not even have it.
    let mut side = Graph::new("side", "what else fills 1C");
    side.flow(Flow::entry("side door", CAR));
    side.flow(Flow::exit("pass on", CAR));
    side.clown_car(CAR, 10, "rooms of the house");
    check_system(
        vec![left(), side],
        &["1A (queue): graph left would show that it is immune, but lacks \"side door\" of graph \
           side; declare all that fills 1A in one graph (L22)"],
    );
}

#[test]
fn the_graphs_of_a_system_must_not_contradict_each_other() {
    let half = |name, is_throttled: bool| {
        let mut graph = Graph::new(name, "half of it");
        let enter = graph.flow(Flow::entry("enter", STOPS));
        graph.flow(Flow::exit("done", STOPS));
        let throttled = if is_throttled { vec![enter] } else { vec![] };
        graph.throttle(STOPS, 10, &throttled);
        graph
    };
    check_system(
        vec![half("one", true), half("other", false)],
        &["1A (queue): graphs one and other disagree about whether it throttles \"enter\"; \
           declare it alike (L22)"],
    );
    let mut other = Graph::new("other", "another place of that label");
    other.flow(Flow::entry("enter", STOPS).times(2));
    other.flow(Flow::exit("done", STOPS));
    other.shed(Place::new("1A", "pages").of("bytes"), 11, "somebody asks again");
    let disagree = |what| {
        format!("1A (pages): graphs one and other disagree about {what}; declare it alike (L22)")
    };
    let what = ["its name", "its unit", "its technique", "its capacity", "\"enter\""];
    let expected = what.map(disagree);
    check_system(vec![half("one", true), other], &expected.each_ref().map(String::as_str));
}

#[test]
#[should_panic(expected = "graph example declares place 1A twice")]
fn a_label_means_one_place() {
    check(
        |graph| {
            graph.throttle(STOPS, 10, &[]);
            graph.throttle(STOPS, 10, &[]);
        },
        &[],
    );
}
