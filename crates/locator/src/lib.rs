//! Which group manages a path: arrays of filters, and how they are kept up to date.
//!
//! Walking a deep path costs a round trip for each group on its way. Here a machine keeps a few bits for
//! each file of every group, and asks the right one at once. The bits are a hint and never an answer: the
//! group itself says whether it has the path, and a wrong hint, or none, costs the walk that would have
//! been necessary anyway.
//!
//! Reading order: a [`Print`] is what filters know of a path. [`Home`] is the side of a group that has
//! files: it keeps its filters and says when others hear of them. [`Seeker`] is the side that looks for
//! files; it keeps everybody's filters in an [`Array`]. What goes between them is in [`message`]. Filters are
//! the paper's [`bloom`] filter, counting at home, and the static [`fuse`] filter; those of many groups lie
//! side by side in a matrix.
//!
//! Where we deviate from the paper (H2 to H12 of its mechanisms):
//! - The second level is a binary fuse filter with a small Bloom filter of what came since; the paper's
//!   Bloom filter can be chosen instead.
//! - A miss is answered by a walk of the file map and not by a broadcast.
//! - H6: changes go as deltas; and what is below the threshold goes after a while too.
//! - H8: SipHash-1-3 with a key of the cell instead of MD5.
//! - H9 is not here: permissions of ancestors go with path leases.

mod print;

pub mod bloom;
mod counting;
pub mod fuse;

mod matrix;
mod shelf;

pub mod array;
pub mod message;

mod recent;
mod roll;

pub mod home;
pub mod seeker;

mod group;

pub use array::{Array, Bounds, Hint, Refusal};
pub use counting::Counting;
pub use group::{Found, Group};
pub use home::Home;
pub use print::{Print, Salt};
pub use recent::Sizing;
pub use seeker::Seeker;

#[cfg(test)]
mod tests;
