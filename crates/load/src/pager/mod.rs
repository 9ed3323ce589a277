//! The object pager: more objects than fit in memory, and never more in memory than we can bear
//! (L56 to L62).
//!
//! It sits between tasks that look objects up, change them and let them go, and a store that loads
//! and writes them. Of its places, 9C is the one that matters:
//!
//! ```text
//! lookup ─► 9A waiting ─► 9F at the store ─► 9B referenced ─► 9D clean ─► discarded
//!                                             │   ▲  ▲           ▲ │
//!                                             ▼   │  └───────────┼─┘ hit
//!                                            9C dirty ─► 9E being cleaned
//! ```
//!
//! Dirty objects can pile up faster than the store can write them. Setting an object dirty must not
//! block (L58), so 9C throttles what comes earlier: the lookups. `gate.rs` is the algorithm
//! (L59). There is no deadlock: the cleaner never looks anything up.
//!
//! 9B is the one place that nothing protects (L61): to throttle it would be deadlock, and what a task
//! holds can be neither released nor shed. Whoever uses the pager keeps it small by discipline:
//! batches are bounded, work is first come first served, and nobody keeps references in a cache of
//! their own. [`Meters::referenced`] shows whether that holds.
//!
//! File content never comes here; that is for the page cache of the operating system (L62).
//!
//! What the paper leaves open:
//! - Lookups at the store are a place of their own, 9F, with a bound.
//! - Lookups of one object are let go as one, in the turn of the first, because together they bring one
//!   object. The first goes to the store. The others stay in 9A, and so within its bound, until the
//!   object has come. So nobody waits for an object that is in memory already.
//! - When more wait than one batch, the next batch goes on when all of the last has been loaded. To
//!   wait until the cleaner's queue has filled and emptied once more could take for ever.

mod gate;
mod machine;
mod message;
#[cfg(test)]
mod tests;

pub use machine::{Meters, Pager};
pub use message::{Input, Output, Stage, Token};
