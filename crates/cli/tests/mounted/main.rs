//! A cell that is mounted for real, used as people and their programs do.
//!
//! Where nothing can be mounted, each test says so on standard error and checks nothing. What needs the
//! superuser, or a program that is not there, says that. `docs/testing.md` says how to run more of it.

#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    reason = "black-box tests start processes and use files as programs do"
)]

mod cell;
mod draw;
mod watch;

mod bytes;
mod handles;
mod live;
mod locks;
mod names;
mod rights;

mod programs;
mod suites;

mod errors;
mod memory;
mod ordinary;
mod quickstart;
mod quotas;

mod crash;
mod full;
mod image;
mod power;

mod bank;
mod ends;
mod joined;
mod nearby;
mod network;
mod racing;
mod recovered;
mod revoked;
mod several;
mod spread;
mod staff;
mod users;
mod weather;
mod wires;
