//! What a run leaves for readers: a page, the same as text, its figures, and everything as JSON.

mod chart;
mod files;
mod markdown;
mod page;

pub use files::{Circumstances, Entry, Gallery};
