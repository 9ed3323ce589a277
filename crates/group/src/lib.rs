//! A replicated state machine over an existing BFT engine.
//!
//! Of 3f+1 members f may crash, lose their disks or lie, and the others still agree on one order of commands
//! and on the time of each. What commands mean is not known here.
//!
//! Reading order: [`Seats`] are who decides; a [`Batch`] is what is decided, a [`Tip`] what the decisions so
//! far leave behind for the next, with the [`Lineage`] of its members; [`Replica`] is one member, with the engine behind a seam of ours;
//! `Clock` is how members agree on the time; [`Trust`] is what somebody outside believes; a [`Rescue`] is how it
//! goes on when too many are lost, and a [`Hesitation`] is why nobody obeys one in good times. [`Bare`] is the engine with nothing of ours, for benchmarks.

mod ballot;
mod bare;
mod batch;
mod clock;
mod engine;
mod hesitation;
mod lineage;
mod message;
mod pending;
mod point;
mod replica;
mod rescue;
mod seal;
mod seat;
mod term;
mod trust;

pub use ballot::{Certificate, Passage, Proposal, Step, Vote};
pub use bare::Bare;
pub use batch::{Batch, Change, Decision, Ready, Tip, Unproven, Wish, Wisher};
pub use clock::Doubt;
pub use engine::{Evidence, Fact, Patience, Wait, Word};
pub use hesitation::Hesitation;
pub use lineage::{Lineage, Roll};
pub use message::{Message, Summary, Vouch};
pub use point::Point;
pub use replica::{Astray, Input, Output, Reach, Record, Replica, Settings, Sizes};
pub use rescue::{Charter, Rescue};
pub use seal::{Ed25519, Notary, Seal, Sealable, Sealed};
pub use seat::{Seat, Seats};
pub use term::Term;
pub use trust::Trust;
