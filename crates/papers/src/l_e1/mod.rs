//! L-E1: one throttle, on and off.
//!
//! Source: the load management paper, figure 1 and §5.1; the pager is the one that the product is to use,
//! `load::pager::Pager`. Reading order: the [`disk`], a [`computer`] that makes directories with it,
//! the [`fleet`] of four, and the run.

mod disk;

mod computer;

mod fleet;

mod run;

pub(crate) use run::run;
