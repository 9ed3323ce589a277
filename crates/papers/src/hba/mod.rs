//! What the experiments of the HBA paper share: formulas, traces, and cells of groups that look paths up.

mod cell;
mod measure;
mod queues;
mod sprite;
mod trace;
mod tree;

pub(crate) mod theory;

pub(crate) use cell::{Cell, Levels, Score, bloom, home_of};
pub(crate) use measure::{Point, pba, replay, replay_from, seen_before, share, threshold};
pub(crate) use queues::{Stop, time_per_operation};
pub(crate) use sprite::{SPRITE_ABSENT, sprite};
pub(crate) use trace::{Profile, Request, Trace};
pub(crate) use tree::{tree_home, way};
