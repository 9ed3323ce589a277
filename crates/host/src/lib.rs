//! Sockets, files, clock: the only crate with them.
//!
//! Reading order: `clock`; what lies on a machine's disk (`log`, `store`, `content`); then the shells that
//! run the machines of lower layers (`group` runs a `node::Member`, `desk` a `client::Client`), `net`, which
//! speaks with other computers, and `machine`, which is one computer of a cell with all of it.

#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a shell: this is where threads, files, clocks and standard error are"
)]

mod clock;
mod descriptors;
mod failure;
mod key;
mod mailbox;

mod authority;
mod ballast;
mod cell;
mod content;
mod keepsakes;
mod log;
mod store;

mod desk;
mod discovery;
mod group;
mod net;

mod control;
mod fsck;
#[doc(hidden)]
pub mod hostile;
mod machine;
mod neighbours;
mod recover;
mod registrar;

pub use authority::{Ask, Custody, IssuerStanding, NewIssuer, Powers, Root, Secret, take_issuer};
pub use cell::{IoRequest, Terms};
pub use clock::Clock;
pub use content::Content;
pub use control::{Control, ask};
pub use desk::{Desk, Memory};
pub use failure::Failure;
pub use fsck::{Finding, Fsck, Report};
pub use group::{
    AstrayStanding, ForkStanding, MachineStanding, RescueStanding, Standing as GroupStanding,
    UserStanding, since_recovery,
};
pub use keepsakes::{Keepsakes, Kept};
pub use key::{public_key, user_key};
pub use log::Log;
pub use machine::{Machine, Standing};
pub use neighbours::Neighbours;
pub use net::{
    Asker, Away, Key, Lane, LaneLimits, LaneStanding, Limits, Lookout, Network, PeerStanding,
    Reception, Refusals, Settings as NetworkSettings, Standing as NetworkStanding, Welcome,
    graph as network_graph,
};
pub use overlay::{Patrons, Power, Profile, UserName, Warrant};
pub use recover::{Recovered, Recoverer};
pub use registrar::{AccountStanding, Amount, Registrar, Revoked, Whose};
pub use store::Store;
pub use wire::{Io, IoReply};
