//! The reservoirs against naive models, in random orders and in every order.

mod model;
mod schedules;
