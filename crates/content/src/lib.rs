//! Where the bytes of one file are, on one machine among others, and what is to be done about it.
//!
//! Reading order: a [`Body`] is where the bytes are; a [`File`] is all that decides about them, and a [`Ledger`] what
//! the machine's client says meanwhile. A [`Quest`] gets them at hand, a [`Visit`] has something done where they
//! change. [`Bid`] is how a machine becomes the home of a live file; [`Silence`] remembers who did not answer, and
//! [`Contests`] what others want too.
//!
//! Nothing here reads, writes, sends or waits. Whoever has the bytes tells a machine of this crate what happened and
//! when, and does what it answers, with the file's lock held from one to the other. So the same rules are run by
//! `mount`, on real threads and disks, and by the world of bytes in `sim`.

mod body;
mod file;
mod ledger;

mod follow;
mod home;
mod look;
mod settle;

mod quest;
mod visit;

mod contests;
mod silence;

pub use body::{Body, Seen};
pub use contests::{CONTESTS_MAX, Contests};
pub use file::{File, Stay};
pub use follow::Follow;
pub use home::{ASK_MAX, Anothers, Bid, Bidding, Chance, DEED_MAX, End, TELL_MAX, WORTH_MIN};
pub use ledger::{Ledger, is_elsewhere, live_elsewhere};
pub use look::Look;
pub use quest::{Need, Next, PATIENCE, PAUSE, Quest};
pub use settle::{Regain, Settle};
pub use silence::Silence;
pub use visit::{Heard, Then, Visit, Way};

#[cfg(test)]
mod tests;
