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
//!
//! [`Duty`] and [`Limit`] hold nothing. They say when work may start: the one for niceness, the other
//! because whatever does the work is slower than we hoped.

mod meter;
mod order;
mod plan;
mod refusal;

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

pub use cache::Cache;
pub use duty::{Duty, TooSoon};
pub use fair::Fair;
pub use limit::{Limit, Permit, Verdict};
pub use marks::Marks;
pub use meter::Meter;
pub use outstanding::Outstanding;
pub use ranks::{Rank, Ranks};
pub use refusal::{Full, Shed};
pub use releasing::Releasing;
pub use shedding::{Popped, Shedding};
pub use tally::Tally;
pub use throttling::Throttling;
