//! A graph as SVG with the papers' symbols (L21), by our own small layered layout.
//!
//! Dashed arrows run from a throttling place to the flow that it stops, ∞ marks infinite-load
//! management, a dotted arrow downward is shedding, a double line is an itinerant flow, and red is
//! what is not immune.

mod boxes;
mod ink;
mod legend;
mod lines;

use super::{
    layout::{Layout, components},
    text::remarks,
};
use crate::{check::Verdict, graph::Graph};
use ink::{Align, BLUE, Font, GREY, INK, Ink, RED, escape, measure, wrap};

const MARGIN: f64 = 24.0;
const GAP: f64 = 40.0;
const WIDTH_MIN: f64 = 760.0;

/// A graph as an SVG document.
pub fn svg(graph: &Graph, verdict: &Verdict) -> String {
    let mut ink = Ink::default();
    let size = |what| boxes::size(graph, what);
    let title = Font::bold(17.0, INK);
    let heading = format!("{}: {}", graph.name(), graph.title());
    ink.text(MARGIN, MARGIN + 16.0, &heading, Align::Left, title);

    let mut width = WIDTH_MIN.max(measure(&heading, title) + 2.0 * MARGIN);
    let mut y = MARGIN + 48.0;
    for members in components(graph) {
        let mut layout = Layout::new(graph, &members, &size);
        let (right, bottom) = layout.extent();
        layout.cells.iter_mut().for_each(|cell| {
            cell.x += MARGIN;
            cell.y += y;
        });
        lines::draw(&mut ink, graph, &layout);
        boxes::draw(&mut ink, graph, verdict, &layout);
        width = width.max(right + 2.0 * MARGIN);
        y += bottom + GAP;
    }
    y = legend::draw(&mut ink, graph, verdict, MARGIN, y, width - MARGIN);
    y = draw_verdict(&mut ink, verdict, y + 14.0, width);
    document(graph, &ink, width, y + MARGIN)
}

fn draw_verdict(ink: &mut Ink, verdict: &Verdict, mut y: f64, width: f64) -> f64 {
    let colour = if verdict.is_immune() { BLUE } else { RED };
    ink.text(MARGIN, y, &verdict.summary(), Align::Left, Font::bold(14.0, colour));
    let red_count = verdict.findings.len() + verdict.exceptions.len();
    for (at, remark) in remarks(verdict).iter().enumerate() {
        let font = Font::new(12.0, if at < red_count { RED } else { GREY });
        y += 4.0;
        for line in wrap(remark, width - 2.0 * MARGIN, font) {
            y += 16.0;
            ink.text(MARGIN, y, &line, Align::Left, font);
        }
    }
    y
}

fn document(graph: &Graph, ink: &Ink, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"Helvetica, Arial, 'DejaVu Sans', \
         sans-serif\">\n<title>{}</title>\n<desc>{}</desc>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{}</svg>\n",
        escape(graph.name()),
        escape(graph.title()),
        ink.body,
    )
}
