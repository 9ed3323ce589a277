//! L-E1b: what every other protection is for.
//!
//! A model of each program (client, directory server, host, pager) is built from the
//! reservoirs of `load`, which the product is to use, and given more work than it can do. Then the same with the protection of one
//! place removed: the checker must name that place, and the run must overflow it.
//!
//! Reading order: what stands at a place ([`level`], [`queues`], [`sets`]), how a model gets it
//! ([`fitting`]), the four models, the judgement of an [`ablation`], and the run.

mod level;

mod queues;

mod sets;

mod fitting;

mod client;

mod directory;

mod host;

mod pager;

mod ablation;

mod run;

pub(crate) use run::run;
