//! SVG by hand: elements, text that is measured and wrapped, arrowheads.

use std::fmt::Write;

pub const INK: &str = "#1f2933";
pub const GREY: &str = "#616e7c";
pub const BLUE: &str = "#33557a";
pub const BROWN: &str = "#b45309";
pub const RED: &str = "#c81e1e";

/// Elements of a drawing in the order in which they are painted.
#[derive(Default)]
pub struct Ink {
    pub body: String,
}

/// Where a text starts from its point.
#[derive(Clone, Copy)]
pub enum Align {
    Left,
    Middle,
}

/// How a text looks.
#[derive(Clone, Copy)]
pub struct Font {
    pub size: f64,
    pub colour: &'static str,
    pub is_bold: bool,
}

impl Font {
    pub const fn new(size: f64, colour: &'static str) -> Font {
        Font { size, colour, is_bold: false }
    }

    pub const fn bold(size: f64, colour: &'static str) -> Font {
        Font { size, colour, is_bold: true }
    }
}

/// Which way an arrowhead points.
#[derive(Clone, Copy)]
pub enum Point {
    Left,
    Right,
    Up,
    Down,
}

impl Ink {
    pub fn text(&mut self, x: f64, y: f64, text: &str, align: Align, font: Font) {
        let anchor = match align {
            Align::Left => "start",
            Align::Middle => "middle",
        };
        let weight = if font.is_bold { " font-weight=\"bold\"" } else { "" };
        let Font { size, colour, .. } = font;
        let text = escape(text);
        self.element(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\" \
             text-anchor=\"{anchor}\"{weight}>{text}</text>"
        ));
    }

    /// A line along path data, such as `M 0 0 H 10`; `class` is its kind, for whoever styles it.
    pub fn path(&mut self, class: &str, data: &str, stroke: &str, width: f64, more: &str) {
        let more = if more.is_empty() { String::new() } else { format!(" {more}") };
        self.element(format_args!(
            "<path class=\"{class}\" d=\"{data}\" fill=\"none\" stroke=\"{stroke}\" \
             stroke-width=\"{width}\"{more}/>"
        ));
    }

    /// An arrowhead with its tip at the point.
    pub fn head(&mut self, x: f64, y: f64, point: Point, fill: &str) {
        self.sized_head(x, y, point, fill, 4.0);
    }

    /// An arrowhead for a double line.
    pub fn large_head(&mut self, x: f64, y: f64, point: Point, fill: &str) {
        self.sized_head(x, y, point, fill, 6.5);
    }

    fn sized_head(&mut self, x: f64, y: f64, point: Point, fill: &str, half: f64) {
        let long = 2.0 * half;
        let (dx, dy) = match point {
            Point::Left => (long, 0.0),
            Point::Right => (-long, 0.0),
            Point::Up => (0.0, long),
            Point::Down => (0.0, -long),
        };
        // The base of the head lies across its direction.
        let (sx, sy) = if dx == 0.0 { (half, 0.0) } else { (0.0, half) };
        let (ax, ay, bx, by) = (x + dx + sx, y + dy + sy, x + dx - sx, y + dy - sy);
        self.element(format_args!(
            "<path d=\"M {x:.1} {y:.1} L {ax:.1} {ay:.1} L {bx:.1} {by:.1} Z\" fill=\"{fill}\"/>"
        ));
    }

    pub fn element(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{element}");
    }
}

pub fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

/// How wide a text comes out at most, in a common sans-serif font.
pub fn measure(text: &str, font: Font) -> f64 {
    let ems: f64 = text.chars().map(char_ems).sum();
    ems * font.size * if font.is_bold { 1.12 } else { 1.0 }
}

fn char_ems(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | ' ' | '.' | ',' | ':' | ';' | '\'' | '(' | ')' => 0.38,
        'f' | 't' | 'r' | '-' | '"' => 0.46,
        'm' | 'w' | 'M' | 'W' | '→' | '⇒' | '∞' => 0.98,
        'A'..='Z' | '−' | '≤' | '=' => 0.76,
        _ => 0.64,
    }
}

/// Cuts a text into lines of at most so many units.
pub fn wrap(text: &str, width_max: f64, font: Font) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if measure(&format!("{line} {word}"), font) <= width_max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
