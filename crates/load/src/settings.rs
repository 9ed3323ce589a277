//! Settings: every limit and period of the four graphs, with defaults (L63).
//!
//! They are plain data; whoever reads them from a file calls `validate` before using them. Limits of
//! throttling places are capacities (but 9C's). What the place stops at follows from the threshold
//! rule (L23), and a combination that leaves nothing is refused with the inequality that it breaks.

mod client;
mod directory;
mod host;
mod pager;
mod refusal;

pub use client::Client;
pub use directory::Directory;
pub use host::Host;
pub use pager::Pager;
pub use refusal::Refused;
