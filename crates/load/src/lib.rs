//! Bounded work: workflow graphs, reservoirs, throttles, shedding, premature release, clown car.
//!
//! Reading order: [`Place`] names where work can pile up, [`Graph`] declares a machine's places and
//! flows, [`Graph::check`] proves that none can overflow (L13 to L27 of the papers' mechanisms),
//! [`draw`] shows it, [`Graph::plan`] hands the proven limits to the code that runs, and [`graphs`]
//! has the four of the load paper as functions of their [`settings`].
//!
//! Where we deviate from the paper:
//! - L23 subtracts the reservoirs between the throttled link and R. We subtract every place whose load
//!   can still get to R, also round a cycle through R; so 9C's limit counts 9D and 9E in.
//! - Figure 9 has no 9F, the lookups at the store.
//! - L22 has no known exceptions and no places bounded by design; both carry a written reason here.
//! - L10 lets a written file rest for an hour. `absorb_period` is 5 minutes unless set, because people
//!   close their laptops.
//! - "Short" in L24 is [`THROTTLE_DELAY_MAX`].

mod check;
pub mod draw;
mod graph;
pub mod graphs;
pub mod pager;
mod place;
pub mod reservoir;
pub mod settings;

pub use check::{
    Exception, Fault, Finding, Origin, Path, Standing, System, THROTTLE_DELAY_MAX, Verdict,
};
pub use graph::{Flow, FlowId, Graph, NotImmune, Plan};
pub use place::{
    Bounded, ClownCar, Kind, Place, Release, Shed, Spec, Technique, Throttle, Unprotected,
};
