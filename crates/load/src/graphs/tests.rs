//! The four graphs as the paper has them: immune, all but 9B, and only with every protection.

use base::Duration;

use super::{all, client, directory, find, host, pager};
use crate::{Flow, Graph, Place, Standing, Throttle, check::threshold, settings};

fn thresholds(graph: &Graph) -> Vec<(&'static str, u64)> {
    graph.nodes().iter().map(|node| (node.label, threshold(graph, node))).collect()
}

#[test]
fn every_graph_is_immune_and_9b_is_the_one_exception() {
    let verdicts: Vec<_> = all().iter().map(Graph::check).collect();
    let summaries: Vec<_> = verdicts.iter().map(|v| (v.graph, v.summary())).collect();
    let expected = [
        ("client", "immune"),
        ("directory", "immune"),
        ("host", "immune"),
        ("pager", "immune but for 9B, a known exception"),
    ];
    assert_eq!(summaries, expected.map(|(name, summary)| (name, summary.to_owned())));
    let exceptions: Vec<_> = verdicts.iter().flat_map(|v| &v.exceptions).collect();
    assert_eq!(exceptions.len(), 1);
    let text = exceptions[0].to_string();
    let start = "9B (referenced objects): not provably immune, load comes by \
                 entry \"lookup missed\" → 9A → 9B; to throttle it would deadlock";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn without_any_one_protection_the_checker_names_that_very_place() {
    let mut count = 0;
    for graph in all() {
        for label in graph.labels() {
            let ablated = graph.without_protection(label);
            let verdict = ablated.check();
            assert_eq!(verdict.vulnerable(), [label], "{}", verdict.summary());
            assert_eq!(verdict.standing(label), Standing::Vulnerable);
            let text = verdict.findings[0].to_string();
            assert!(text.contains("nothing protects it, and load comes by "), "{text}");
            assert!(text.contains(&format!("→ {label};")), "{text}");
            assert!(ablated.plan().is_err());
            count += 1;
        }
    }
    assert_eq!(count, 17);
}

#[test]
fn thresholds_leave_room_for_what_is_on_its_way() {
    let client = client::graph(&settings::Client::default());
    let gib = 1 << 30;
    let expected = [
        ("6A", 1_024),
        ("6B", 16_384 - 1_024),
        ("6C", 4_096),
        ("6D", 1_024),
        ("6E", 16 * gib - 8 * gib),
        ("6F", 8 * gib),
    ];
    assert_eq!(thresholds(&client), expected);
    let directory = directory::graph(&settings::Directory::default());
    assert_eq!(thresholds(&directory)[2], ("7C", 256));
    let host = host::graph(&settings::Host::default());
    assert_eq!(thresholds(&host)[0], ("8A", 60));
    let pager = pager::graph(&settings::Pager::default());
    let expected =
        [("9A", 4_096), ("9B", 2_500), ("9C", 2_000), ("9D", 16_384), ("9E", 64), ("9F", 256)];
    assert_eq!(thresholds(&pager), expected);
}

#[test]
fn only_9c_counts_on_a_place_that_nothing_holds() {
    let cautions: Vec<_> = all().iter().flat_map(|graph| graph.check().cautions).collect();
    assert_eq!(cautions.len(), 1);
    assert_eq!(
        cautions[0].to_string(),
        "9C (unreferenced dirty): its threshold counts on 9B holding at most 2,500 objects, which \
         nothing enforces"
    );
}

/// L24: the client may not be throttled across the write absorption, nor 7B stop its own input.
#[test]
fn a_throttle_across_the_write_absorption_is_refused() {
    const SET: Place<Throttle> = Place::new("7A", "absorption");
    const QUEUE: Place<Throttle> = Place::new("7B", "queue");
    let mut graph = Graph::new("absorption", "a throttle across an hour");
    let update = graph.flow(Flow::entry("update", SET));
    graph.flow(Flow::between("absorbed", SET, QUEUE).after(Duration::from_secs(3_600)));
    graph.flow(Flow::exit("done", QUEUE));
    graph.throttle(SET, 10, &[update]);
    graph.throttle(QUEUE, 20, &[update]);
    assert_eq!(
        graph.check().findings[0].to_string(),
        "7B (queue): it throttles \"update\", but load takes 1 h from there by entry \"update\" → \
         7A → 7B, longer than 1 min, so it would oscillate; throttle behind the delay, or protect \
         7B in another way (L24)"
    );
}

/// L61: were 9B to throttle lookups, those who hold objects would wait for themselves.
#[test]
fn to_throttle_9b_would_deadlock() {
    const HELD: Place<Throttle> = Place::new("9B", "referenced");
    let mut graph = Graph::new("held", "references held while waiting");
    let lookup = graph.flow(Flow::entry("lookup", HELD));
    graph.flow(Flow::exit("drop", HELD).needs(lookup));
    graph.throttle(HELD, 10, &[lookup]);
    assert_eq!(
        graph.check().findings[0].to_string(),
        "9B (referenced): it throttles its own drain, so once full it stays full; throttle only \
         what fills 9B (L58)"
    );
}

/// L58: the cleaner never looks up. If it did, 9C would wait for itself.
#[test]
fn a_cleaner_that_looks_up_would_deadlock() {
    let build = |cleaner_looks_up: bool| {
        const HELD: Place<crate::Bounded> = Place::new("9B", "referenced");
        const DIRTY: Place<Throttle> = Place::new("9C", "dirty");
        let mut graph = Graph::new("cleaner", "a cleaner and its lookups");
        let lookup = graph.flow(Flow::entry("lookup", HELD));
        graph.flow(Flow::between("dropped", HELD, DIRTY).needs(lookup));
        graph.flow(Flow::between("hit", DIRTY, HELD).by_chance());
        let clean = Flow::exit("clean", DIRTY);
        graph.flow(if cleaner_looks_up { clean.needs(lookup) } else { clean });
        graph.bounded(HELD, 5, "one for each of five workers");
        graph.throttle(DIRTY, 10, &[lookup]);
        graph.check()
    };
    assert!(build(false).is_immune());
    let verdict = build(true);
    assert_eq!(
        verdict.findings[0].to_string(),
        "9C (dirty): every way out of it is stopped by a throttle that waits for it in turn (with \
         9B); free one drain in this circle (L58)"
    );
}

#[test]
fn graphs_are_found_by_name() {
    assert_eq!(find("pager").map(|graph| graph.name()), Some("pager"));
    assert!(find("nobody").is_none());
}
