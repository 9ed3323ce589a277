//! The namespace as a deterministic state machine, and how it is partitioned.
//!
//! Reading order: a [`record`] is what is known of a file; an [`operation`] is what a user does, written
//! once against a [`View`] and run by client and group alike; a [`message`] is what they say to each
//! other. Then the group's side: `records` are what is at hand and what is not, a `session` is what a
//! client was given, `work` replays its operations (D33, D35), and the [`Directory`] applies commands.
//!
//! Where we deviate from POSIX and from the paper:
//! - The times of a directory are a consequence of changes in it, not of a lease on them: while several
//!   machines change one directory, one of them may see the times of another's change late, by about as
//!   long as changes take to be pushed. So it is with the time of last change of any file.
//! - So it is with how many directories are in one, which is what the links of a directory count.
//! - Whoever takes away a directory, be it empty, has to do so on a machine of which some user may list it
//!   or go through it, or owns it: else the machine may not know that it is empty.
//! - Who may write is looked at with every write, not when the file is opened, and who may lock with every lock; an
//!   owner always may.

pub mod actor;
pub mod message;
pub mod operation;
pub mod record;
mod refusal;
mod view;

mod charge;
mod known;
mod ledger;
mod sum;
mod users;

mod digest;
mod records;
mod session;
mod values;
mod work;

pub mod audit;
pub mod directory;

pub use actor::{Actor, Use};
pub use charge::{Charges, Quota};
pub use directory::{Command, Directory, Settings, Sizes};
pub use ledger::{Account, Holder};
pub use operation::{Act, Operation};
pub use overlay::Users;
pub use record::{Entry, File, Key, Record, Sort, Special};
pub use records::Absent;
pub use refusal::Refusal;
pub use session::{ACCOUNTS_MAX, LOCKED_MAX};
pub use users::{may_read, may_write};
pub use view::{Birth, Missing, Stop, View};
