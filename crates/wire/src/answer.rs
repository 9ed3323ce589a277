//! What a machine answers another that has asked out of turn.

use std::net::SocketAddr;

use base::{FileId, Instant, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize};
use directory::record::Access;
use group::{Decision, Reach};
use lease::Client;
use overlay::{Profile, Renewal, Users};

use crate::{
    io::{Io, IoReply},
    pin::Pin,
    plain,
};

/// The answer to a [`crate::Query`].
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Answer {
    /// "You are", and what there is to know.
    Joined(Box<Ticket>),
    /// "No", and why.
    Refused(#[borsh(serialize_with = "plain::write", deserialize_with = "plain::read")] String),
    /// "There."
    Invited(Box<Lead>),
    /// "These."
    Bytes(Vec<u8>),
    /// "This one", if any.
    File(Option<FileId>),
    /// "I will, soon."
    Looking,
    /// "This one."
    Machine(Neighbour),
    /// "So be it."
    Decreed,
    /// "So much."
    Survivor(Box<Survivor>),
    /// "I have heard it."
    Heard,
    /// "These."
    People(Vec<Person>),
    /// "It is."
    Renewed(Box<Renewal>),
    /// "This came of it."
    Io(IoReply),
    /// "So it is."
    Rights(Box<Rights>),
    /// "You act for nobody who may have that."
    Denied,
}

impl Answer {
    /// The most bytes of one.
    pub const BYTES_MAX: usize = 1 << 20;
}

const _: () = assert!(Io::BYTES_MAX < Answer::BYTES_MAX, "what is read fits into an answer");

/// Another machine of the cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Neighbour {
    /// Which client it is.
    pub client: Client,
    /// What it is known by.
    pub key: PublicKey,
    /// Where it can be reached.
    pub addresses: Vec<SocketAddr>,
    /// When its certificate expires, in seconds since 1970.
    pub expires: u64,
    /// For whom it may act.
    pub users: Users,
}

/// What a machine that has joined has to know.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Ticket {
    /// Which client it is.
    pub client: Client,
    /// The others.
    pub machines: Vec<Neighbour>,
    /// The users that the machine that has joined acts for; none if it acts for any.
    pub users: Option<Vec<Profile>>,
}

/// What a machine that has made a code hands over to whoever comes with it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Lead {
    /// What the code pins.
    pub pin: Pin,
    /// How the members have changed since, with what proves it.
    pub changes: Vec<Decision>,
    /// Where members may be.
    pub members: Vec<SocketAddr>,
}

/// Whom a machine acts for, and who may use a file how.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Rights {
    /// Nobody, if the machine is not known, or was sent away.
    pub users: Users,
    /// Permission bits, owner and group; nothing if no file of bytes has this name and number.
    pub file: Option<(u16, u32, u32)>,
}

impl Rights {
    /// Who may use the file how.
    pub fn access(&self) -> Option<Access> {
        self.file.map(|(mode, uid, gid)| Access { mode, uid, gid })
    }
}

/// A user of the cell, or who was one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Person {
    /// Who they are.
    pub user: Profile,
    /// Whether they were removed.
    pub is_removed: bool,
}

/// How much of its group's decisions a machine has.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Survivor {
    /// How far it reaches.
    pub reach: Reach,
    /// Whether that is anything: whoever was never told of a decision has nothing to go on from.
    pub has_state: bool,
    /// The greatest number of a rescue that it knows of.
    pub number: u32,
    /// Since which height it knows these members.
    pub epoch: u64,
    /// The members as it knows them.
    pub members: Vec<PublicKey>,
    /// The agreed time there.
    pub time: Instant,
    /// For how long it has heard of no decision, in seconds, since it was started at the earliest.
    pub quiet_s: u64,
}
