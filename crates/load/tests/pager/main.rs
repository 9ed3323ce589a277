//! The object pager in every order of events that fits a small world, and in many that fit a larger.

mod model;
mod schedules;
mod world;
