//! Drawings of the four graphs: text and DOT against golden files, SVG for its form and its symbols.
//!
//! After a change, `croft graph NAME --format text` and `dot` write the golden files anew.

mod xml;

use load::{Bounded, Flow, Graph, Place, Shed, Throttle, Verdict, draw, graphs};

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
    assert_eq!(symbols(&drawn("pager", draw::svg)), [13, 0, 5, 1, 0, 1]);
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

/// A graph whose every text needs care in XML and in DOT.
fn awkward() -> Graph {
    const QUEUE: Place<Throttle> = Place::new("<1&\"A\\", "queue <&\"q\\").of("<&\"jobs");
    const INBOX: Place<Shed> = Place::new("<1&\"S\\", "inbox <&\"i\\");
    let mut graph = Graph::new("awk<&\"ward", "a title with <&\" in it");
    let enter = graph.flow(Flow::entry("enter <&\"e\\", QUEUE).waits_for("who <&\"w"));
    graph.flow(Flow::exit("done <&\"d\\", QUEUE));
    graph.flow(Flow::arrival("come <&\"c", INBOX));
    graph.shed(INBOX, 5, "somebody <&\" asks again");
    graph.throttle(QUEUE, 10, &[enter]);
    graph
}

#[test]
fn names_are_escaped_in_pictures() {
    let graph = awkward();
    let svg = draw::svg(&graph, &graph.check());
    assert_eq!(xml::check(&svg), Ok(()));
    assert!(svg.contains("<title>awk&lt;&amp;&quot;ward</title>"));
    assert!(svg.contains(">&lt;1&amp;&quot;A\\<"));
    assert!(svg.contains(">enter &lt;&amp;&quot;e\\<"));
    assert!(svg.contains(">waits for who &lt;&amp;&quot;w<"));
    assert!(svg.contains("&lt;&amp;&quot;jobs<"));
}

#[test]
fn names_are_escaped_in_dot() {
    let graph = awkward();
    let dot = draw::dot(&graph, &graph.check());
    assert!(dot.starts_with("digraph \"awk<&\\\"ward\" {\n"), "{dot}");
    assert!(dot.contains(r#"  "<1&\"A\\" [label="<1&\"A\\ queue <&\"q\\\lstops"#), "{dot}");
    assert!(
        dot.contains(r#"[label="enter <&\"e\\\lwaits for who <&\"w\l", arrowhead=none]"#),
        "{dot}"
    );
    assert!(dot.contains(r#"[label="done <&\"d\\"];"#), "{dot}");
    // Every string ends on the line on which it begins.
    for line in dot.lines() {
        let bare = line.replace(r"\\", "").replace(r#"\""#, "");
        assert!(bare.matches('"').count().is_multiple_of(2), "{line}");
    }
}

#[test]
fn labels_do_not_clash_with_the_names_of_other_nodes() {
    const QUEUE: Place<Throttle> = Place::new("entry0", "queue");
    const INBOX: Place<Shed> = Place::new("flow0", "inbox");
    const SLOTS: Place<Bounded> = Place::new("flow0 shed", "slots");
    let mut graph = Graph::new("clash", "labels that look like something else");
    let enter = graph.flow(Flow::entry("enter", QUEUE));
    graph.flow(Flow::between("pass on", QUEUE, INBOX));
    graph.flow(Flow::between("take", INBOX, SLOTS));
    graph.flow(Flow::exit("done", SLOTS));
    graph.throttle(QUEUE, 10, &[enter]);
    graph.shed(INBOX, 10, "somebody asks again");
    graph.bounded(SLOTS, 10, "ten slots");
    let dot = draw::dot(&graph, &graph.check());
    let declared = dot.lines().filter(|line| line.starts_with("  ") && !line.contains("->"));
    let names = declared.filter_map(|line| line.split_once(" [")).map(|(name, _)| name.trim());
    let mut names: Vec<_> = names.map(|name| name.trim_matches('"')).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{dot}");
    assert!(dot.contains("  entry0_ -> flow0_ [label=\"enter\", arrowhead=none];"), "{dot}");
    assert!(dot.contains("  \"entry0\" -> flow0_ [style=dashed"), "{dot}");
    assert!(dot.contains("  \"flow0\" -> \"flow0 shed_\" [style=dotted];"), "{dot}");
}

/// A double line ends in a large head, also if it leads from right to left.
#[test]
fn an_itinerant_flow_that_leads_back_has_a_large_head() {
    const FIRST: Place<Shed> = Place::new("1A", "first");
    const SECOND: Place<Shed> = Place::new("1B", "second");
    let mut graph = Graph::new("back", "there and back");
    graph.flow(Flow::arrival("come", FIRST));
    graph.flow(Flow::between("pass on", FIRST, SECOND));
    graph.flow(Flow::itinerant("come back", SECOND, FIRST));
    graph.flow(Flow::exit("done", SECOND));
    graph.shed(FIRST, 10, "somebody asks again");
    graph.shed(SECOND, 10, "somebody asks again");
    let svg = draw::svg(&graph, &graph.check());
    // From the tip to the base, to the right if the head points left.
    let length = |line: &str| {
        let numbers: Vec<f64> = line
            .strip_prefix("<path d=\"M ")?
            .split([' ', '"'])
            .filter_map(|word| word.parse().ok())
            .collect();
        Some(numbers[2] - numbers[0])
    };
    let lengths: Vec<_> = svg.lines().filter_map(length).filter(|&long| long > 5.0).collect();
    assert_eq!(lengths.len(), 1, "{svg}");
    assert!((lengths[0] - 13.0).abs() < 0.2, "{lengths:?}");
}
