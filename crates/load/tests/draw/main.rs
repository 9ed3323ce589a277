//! Drawings of the four graphs: text and DOT against golden files, SVG for its form and its symbols.
//!
//! After a change, `croft graph NAME --format text` and `dot` write the golden files anew.

mod xml;

use load::{Graph, Verdict, draw, graphs};

fn drawn(name: &str, draw: fn(&Graph, &Verdict) -> String) -> String {
    let graph = graphs::find(name).expect("one of the four");
    draw(&graph, &graph.check())
}

#[test]
fn texts_are_as_agreed() {
    assert_eq!(drawn("client", draw::text), include_str!("golden/client.txt"));
    assert_eq!(drawn("directory", draw::text), include_str!("golden/directory.txt"));
    assert_eq!(drawn("host", draw::text), include_str!("golden/host.txt"));
    assert_eq!(drawn("pager", draw::text), include_str!("golden/pager.txt"));
}

#[test]
fn dots_are_as_agreed() {
    assert_eq!(drawn("client", draw::dot), include_str!("golden/client.dot"));
    assert_eq!(drawn("directory", draw::dot), include_str!("golden/directory.dot"));
    assert_eq!(drawn("host", draw::dot), include_str!("golden/host.dot"));
    assert_eq!(drawn("pager", draw::dot), include_str!("golden/pager.dot"));
}

/// How often each symbol stands in a picture, its legend apart.
fn symbols(svg: &str) -> [usize; 6] {
    let count = |part: &str| svg.matches(part).count();
    let legend = usize::from(svg.contains("bears any load"));
    // A double line is drawn as a thin white one on a thick one.
    let itinerant = count("class=\"itinerant\"") / 2;
    let red = count("stroke=\"#c81e1e\"") - usize::from(svg.contains(">not immune<"));
    [
        count("class=\"flow\""),
        itinerant,
        count("class=\"throttle\""),
        count(">∞<") - legend,
        count("class=\"shed\""),
        red,
    ]
}

#[test]
fn pictures_have_the_papers_symbols() {
    // Flows, itinerant flows, throttle arrows, ∞, shed arrows, red frames.
    assert_eq!(symbols(&drawn("client", draw::svg)), [10, 1, 4, 2, 1, 0]);
    assert_eq!(symbols(&drawn("directory", draw::svg)), [7, 0, 1, 2, 0, 0]);
    assert_eq!(symbols(&drawn("host", draw::svg)), [4, 0, 0, 1, 1, 0]);
    assert_eq!(symbols(&drawn("pager", draw::svg)), [10, 0, 4, 1, 0, 1]);
    assert!(drawn("pager", draw::svg).contains("9B (referenced objects): not provably immune"));
}

#[test]
fn what_is_not_immune_is_red_and_said() {
    for graph in graphs::all() {
        for label in graph.labels() {
            let graph = graph.without_protection(label);
            let verdict = graph.check();
            let svg = draw::svg(&graph, &verdict);
            let known = verdict.exceptions.len();
            assert_eq!(symbols(&svg)[5], 1 + known, "{} without {label}", graph.name());
            assert!(svg.contains(&format!(">not immune: {label}<")));
            assert!(draw::dot(&graph, &verdict).contains("color=red"));
            assert!(draw::text(&graph, &verdict).contains(&format!("{label} (NOT IMMUNE)")));
        }
    }
}

#[test]
fn pictures_are_well_formed() {
    for graph in graphs::all() {
        let svg = draw::svg(&graph, &graph.check());
        assert_eq!(xml::check(&svg), Ok(()), "{}", graph.name());
    }
}
