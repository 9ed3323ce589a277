//! Drawings of a graph with its verdict: text, DOT and SVG.

mod dot;
mod layout;
mod svg;
mod text;

pub use dot::dot;
pub use svg::svg;
pub use text::text;
