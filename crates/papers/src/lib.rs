//! Experiments that reproduce published tables.
//!
//! An experiment is a plan and a function. The plan (`papers/<ID>.toml`) says what the paper
//! reports, with which sizes we run, and what must come out. The function runs the code of the
//! product, or of a library that it is to use (docs/mechanisms.md says which), and answers with measurements. The harness joins the two: paper, ours, verdict.
//!
//! Reading order: [`Plan`], [`Trial`], the judgement in `verdict`, [`Report`], then the experiments.
//! To add one: a plan, a module, a `mod` line below and a line in `registry`.

mod figure;
mod plan;
mod trial;

mod sample;
mod verdict;

mod report;

mod registry;

mod gallery;

mod l_e1;

mod l_e1b;

mod d_e1;

mod office;

mod d_e3;

mod d_e4;

pub mod swarm;

mod k_e1;
mod k_e10;
mod k_e11;
mod k_e12;
mod k_e13;
mod k_e14;
mod k_e15;
mod k_e16;
mod k_e17;
mod k_e18;
mod k_e19;
mod k_e2;
mod k_e3;
mod k_e4;
mod k_e5;
mod k_e6;
mod k_e7;
mod k_e8;
mod k_e9;

mod hba;

mod h_e1;
mod h_e10;
mod h_e11;
mod h_e12;
mod h_e2;
mod h_e3;
mod h_e4;
mod h_e5;
mod h_e6;
mod h_e7;
mod h_e8;
mod h_e9;

pub use figure::Figure;
pub use gallery::{Circumstances, Entry, Gallery};
pub use k_e13::live as live_as_peer;
pub use plan::{Differs, Expect, Plan, Printed, Quick, Row};
pub use registry::{EXPERIMENTS, Experiment, find};
pub use report::{Curve, Line, Report};
pub use sample::Run;
pub use trial::{Failure, Findings, Scale, Trial, Value};
pub use verdict::{Outcome, Verdict};
