//! What the symbols of a drawing mean; only those that it uses.

use super::ink::{Align, BROWN, Font, GREY, INK, Ink, Point, RED, measure};
use crate::{
    check::Verdict,
    graph::{Graph, Protection},
};

const NOTE: Font = Font::new(11.0, GREY);
const SYMBOL: f64 = 34.0;
const GAP: f64 = 22.0;
const ROW: f64 = 22.0;

#[derive(Clone, Copy)]
enum Symbol {
    Flow,
    Itinerant,
    Throttle,
    Infinity,
    Shed,
    Red,
}

/// Draws the legend from this point on, and says where it ends.
pub fn draw(
    ink: &mut Ink,
    graph: &Graph,
    verdict: &Verdict,
    left: f64,
    top: f64,
    right: f64,
) -> f64 {
    let (mut x, mut y) = (left, top);
    for (symbol, meaning) in used(graph, verdict) {
        let width = SYMBOL + 6.0 + measure(meaning, NOTE);
        if x > left && x + width > right {
            (x, y) = (left, y + ROW);
        }
        draw_symbol(ink, symbol, x, y);
        ink.text(x + SYMBOL + 6.0, y + 4.0, meaning, Align::Left, NOTE);
        x += width + GAP;
    }
    y + ROW
}

fn used(graph: &Graph, verdict: &Verdict) -> Vec<(Symbol, &'static str)> {
    let has = |is: fn(&Protection) -> bool| graph.nodes().iter().any(|n| is(&n.protection));
    let is_itinerant = graph.flows().iter().any(|flow| flow.is_itinerant);
    let all = [
        (true, Symbol::Flow, "flow"),
        (is_itinerant, Symbol::Itinerant, "leaves this machine and comes back"),
        (has(|p| matches!(p, Protection::Throttle { .. })), Symbol::Throttle, "stops this flow"),
        (has(Protection::is_infinite), Symbol::Infinity, "bears any load"),
        (
            has(|p| matches!(p, Protection::Shed { .. })),
            Symbol::Shed,
            "sheds; what makes up for it",
        ),
        (!verdict.is_immune() || !verdict.exceptions.is_empty(), Symbol::Red, "not immune"),
    ];
    all.into_iter().filter(|&(is_used, _, _)| is_used).map(|(_, s, meaning)| (s, meaning)).collect()
}

fn draw_symbol(ink: &mut Ink, symbol: Symbol, x: f64, y: f64) {
    let level = format!("M {x:.1} {y:.1} H {:.1}", x + SYMBOL - 6.0);
    match symbol {
        Symbol::Flow => {
            ink.path("legend", &level, INK, 1.5, "");
            ink.head(x + SYMBOL, y, Point::Right, INK);
        }
        Symbol::Itinerant => {
            ink.path("legend", &level, INK, 5.0, "");
            ink.path("legend", &level, "white", 2.2, "");
            ink.large_head(x + SYMBOL, y, Point::Right, INK);
        }
        Symbol::Throttle => {
            ink.path("legend", &level, BROWN, 1.5, "stroke-dasharray=\"6 4\"");
            ink.head(x + SYMBOL, y, Point::Right, BROWN);
        }
        Symbol::Infinity => {
            ink.text(x + SYMBOL / 2.0, y + 8.0, "∞", Align::Middle, Font::bold(22.0, INK));
        }
        Symbol::Shed => {
            let middle = x + SYMBOL / 2.0;
            let data = format!("M {middle:.1} {:.1} V {:.1}", y - 10.0, y + 4.0);
            let dots = "stroke-dasharray=\"1.5 4\" stroke-linecap=\"round\"";
            ink.path("legend", &data, INK, 2.0, dots);
            ink.head(middle, y + 11.0, Point::Down, INK);
        }
        Symbol::Red => ink.element(format_args!(
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{SYMBOL}\" height=\"14\" rx=\"5\" \
             fill=\"#fdecec\" stroke=\"{RED}\" stroke-width=\"1.6\"/>",
            y - 7.0
        )),
    }
}
