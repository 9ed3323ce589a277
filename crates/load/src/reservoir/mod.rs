//! The queues that the product uses: bounded, metered, single-threaded, told the time.
//!
//! Each stands at a place of a workflow graph. It is made by the graph's [`Plan`](crate::Plan), so that
//! a place that throttles gets a reservoir that throttles, with the limits that were proven.
//! None of them buffers behind the caller's back: what is not in the reservoir is in the caller's
//! hands again, as a value that must be used.
//!
//! | At the limit | In order | By key |
//! |---|---|---|
//! | stop the flow (L17) | [`Throttling`], [`Fair`] | [`Outstanding`], [`Tally`] |
//! | release early (L25) | [`Releasing`] | [`Cache`] |
//! | never reached (clown car, L26) | | [`Marks`], [`Ranks`] |
//! | drop and rectify (L17) | [`Shedding`] | |
//! | none: it is only watched (L61) | | [`Watched`] |
//!
//! A place counts items, each as 1, or bytes: then [`Tally`] is told amounts and [`Cache`] weights.
//!
//! [`Duty`], [`Limit`] and [`Budgets`] hold nothing. They say when work may start: the first for niceness, the
//! second because whatever does the work is slower than we hoped, the third because others want something too.

mod meter;
mod order;
mod plan;
mod refusal;

mod budgets;
mod cache;
mod duty;
mod fair;
mod limit;
mod marks;
mod outstanding;
mod ranks;
mod releasing;
mod shedding;
mod tally;
mod throttling;
mod watched;

pub use budgets::{Allowance, Budgets};
pub use cache::Cache;
pub use duty::{Duty, REST_MAX, TooSoon};
pub use fair::Fair;
pub use limit::{Limit, Outcome, Permit};
pub use marks::Marks;
pub use meter::Meter;
pub use outstanding::{NotInserted, Outstanding};
pub use ranks::{Rank, Ranks};
pub use refusal::{Dropped, Full};
pub use releasing::Releasing;
pub use shedding::{Popped, Shedding};
pub use tally::Tally;
pub use throttling::Throttling;
pub use watched::Watched;
