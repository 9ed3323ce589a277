//! `croft graph`.

use load::{draw, graphs};

use crate::binary::{check_golden, croft, text};

#[test]
fn the_list_has_a_verdict_for_each_graph() {
    check_golden("graph.txt", &["graph"]);
}

#[test]
fn each_graph_is_drawn_in_each_format() {
    for graph in graphs::all() {
        let (name, verdict) = (graph.name(), graph.check());
        for (args, drawing) in [
            (&[][..], draw::text(&graph, &verdict)),
            (&["--format", "text"], draw::text(&graph, &verdict)),
            (&["--format", "dot"], draw::dot(&graph, &verdict)),
            (&["--format", "svg"], draw::svg(&graph, &verdict)),
        ] {
            let output = croft(&[&["graph", name], args].concat());
            assert_eq!(output.status.code(), Some(0), "immune but for what is known");
            assert_eq!(text(&output.stderr), "");
            assert_eq!(text(&output.stdout), drawing);
        }
    }
}

#[test]
fn an_unknown_graph_is_answered_with_the_known_ones() {
    let output = croft(&["graph", "nobody"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    assert_eq!(
        text(&output.stderr),
        "croft: no graph is called nobody; there are: calls, member, network, client, directory, host, \
         pager\n"
    );
}

#[test]
fn a_format_needs_a_graph() {
    let output = croft(&["graph", "--format", "svg"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
}
