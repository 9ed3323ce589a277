//! What a machine can say of its group and of its cell.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
};

use base::{Instant, PublicKey};
use group::{Astray, Ed25519, Replica, Rescue};
use node::Book;
use serde::Serialize;
use wire::Person;

use crate::{
    Key,
    net::{Away, PeerStanding, Standing as NetworkStanding},
};

use super::Torn;

/// The most machines that are told of: the answer has to fit into a line.
const MACHINES_MAX: usize = 1_000;

/// What a group has to say of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// The last decision that is safe.
    pub height: u64,
    /// The last one in the store.
    pub stored: u64,
    /// Records at hand.
    pub records: usize,
    /// Leases that are out.
    pub leases: usize,
    /// Clients with a session.
    pub sessions: usize,
    /// Bytes of the log on disk.
    pub log_bytes: u64,
    /// Processor time that writing the log has taken, in microseconds.
    pub log_us: u64,
    /// Letters of others, and of its own client, for which there was no room. Who meant them has said them again.
    pub dropped: u64,
    /// What a crash had torn at the start. Nobody was told that it was safe.
    pub torn: Torn,
    /// How many members the group has, as far as this machine knows.
    pub members: usize,
    /// How many of them decide.
    pub quorum: usize,
    /// How many machines the cell has, as far as this machine knows.
    pub machines: usize,
    /// Where it listens, if it does.
    pub address: Option<SocketAddr>,
    /// Whether it waits for room on the disk, with everything that it is told.
    pub is_full: bool,
    /// Why it has stopped, if it has.
    pub failure: Option<String>,
    /// How often the group was recovered, as far as is remembered: the last ones.
    pub rescues: Vec<RescueStanding>,
    /// For how many seconds this machine has heard of no decision, since it was started at the earliest.
    pub quiet_s: u64,
    /// Since when that is.
    #[serde(skip)]
    pub(crate) decided_at: Option<Instant>,
    /// When this machine's certificate expires, in seconds since 1970, if it needs one.
    pub expires: Option<u64>,
    /// Whether machines of the cell act only for users that are named and agree, as far as this machine knows.
    pub is_named: bool,
    /// A recovery that this machine has heard of and does not follow.
    pub fork: Option<ForkStanding>,
    /// Whether the group was recovered from somebody else, and this machine has not caught up with that.
    pub is_passed_over: bool,
    /// How this machine has another state than others have sealed, if it has. It has stopped then.
    pub astray: Option<AstrayStanding>,
    /// Who is who.
    #[serde(skip)]
    pub(crate) roster: Roster,
}

/// How a member of the group has gone astray.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AstrayStanding {
    /// The decision after which it has another state.
    pub height: u64,
    /// Who has sealed that theirs is not this one.
    pub others: Vec<Key>,
}

impl AstrayStanding {
    pub(super) fn of(astray: &Astray) -> AstrayStanding {
        let others = astray.others.iter().map(|vouch| Key(vouch.what.seat.key));
        AstrayStanding { height: astray.height, others: others.collect() }
    }
}

/// What people are told when it has.
pub(super) fn went_astray(astray: &Astray) -> String {
    let (number, others) = (since_recovery(astray.height).1, astray.others.len());
    format!(
        "after decision {number} this machine's copy of the tree is not what {others} other members have \
         sealed, so it votes no more; the disk or the memory may be broken, or the program another one: make a \
         new directory and join with a new invitation, and keep this one, whose log has what they have sealed"
    )
}

/// A recovery of the group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RescueStanding {
    /// Which one, from 1 on.
    pub number: u32,
    /// The machine from which the group went on.
    pub survivor: Key,
    /// The last decision that it had.
    pub height: u64,
    /// When the authority said so, in seconds since 1970.
    pub at: u64,
}

impl RescueStanding {
    pub(super) fn of(rescue: &Rescue) -> RescueStanding {
        let Rescue { number, seat, height, at, .. } = *rescue;
        RescueStanding { number, survivor: Key(seat.key), height, at }
    }
}

/// A recovery of the group that a machine has heard of and does not follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForkStanding {
    /// What was heard.
    pub rescue: RescueStanding,
    /// Whether so many members answer that they decide. Else they are still being asked.
    pub is_refuted: bool,
}

impl ForkStanding {
    pub(super) fn of(replica: &Replica<Ed25519>) -> Option<ForkStanding> {
        let heard = replica.hesitation()?;
        let rescue = RescueStanding::of(&heard.rescue().rescue()?.what);
        Some(ForkStanding { rescue, is_refuted: heard.is_refuted() })
    }
}

/// After which recovery of the group a decision was made, and the how manyth it is since.
pub fn since_recovery(height: u64) -> (u32, u64) {
    (Rescue::number_at(height), Rescue::height_since(height))
}

/// What the group's book says of the cell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(super) machines: Vec<ListedMachine>,
    users: Vec<UserStanding>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListedMachine {
    key: PublicKey,
    addresses: Vec<SocketAddr>,
    /// The names of the users that it acts for, or the word for any.
    acts_for: Vec<String>,
    expires: u64,
    issuer: PublicKey,
}

/// A user of the cell, or who was one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UserStanding {
    /// What they are called.
    pub name: String,
    /// The public half of their key.
    pub key: Key,
    /// Their number.
    pub uid: u32,
    /// The group that their new files are of.
    pub gid: u32,
    /// The further groups that they are in.
    pub groups: BTreeSet<u32>,
    /// Whether the authority has removed them.
    pub is_removed: bool,
}

impl UserStanding {
    pub(crate) fn of(person: &Person) -> UserStanding {
        let Person { user, is_removed } = person;
        UserStanding {
            name: user.name.to_string(),
            key: Key(user.key),
            uid: user.uid,
            gid: user.gid,
            groups: user.groups.clone(),
            is_removed: *is_removed,
        }
    }
}

/// Who is who in a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roster {
    /// This machine.
    me: Option<PublicKey>,
    /// The machines that the group has let in and not sent away, and the users. Shared, since there may be many and
    /// the rest is told after each decision.
    book: Arc<Listed>,
    members: Vec<PublicKey>,
    /// Those who are about to be members.
    learners: Vec<PublicKey>,
    leader: Option<PublicKey>,
    /// How often it is proven of whom that they have lied. At most as many as there are proofs.
    lies: BTreeMap<PublicKey, usize>,
}

impl Roster {
    pub(super) fn new(replica: &Replica<Ed25519>, book: Arc<Listed>) -> Roster {
        let tip = replica.tip();
        // Whoever was passed over knows who goes on, and no more.
        let survivor = replica.last_rescue().and_then(|rescue| rescue.rescue());
        let survivor = survivor.filter(|_| replica.is_passed_over()).map(|rescue| rescue.what.seat);
        let (roll, leader) = match &survivor {
            Some(seat) => (std::slice::from_ref(seat), Some(*seat)),
            None => (replica.members().list(), Some(tip.leader)),
        };
        let mut lies = BTreeMap::new();
        for evidence in replica.evidence() {
            *lies.entry(evidence.seat().key).or_default() += 1;
        }
        Roster {
            me: Some(replica.seat().key),
            book,
            members: roll.iter().map(|seat| seat.key).collect(),
            learners: tip.learners().map(|seat| seat.key).collect(),
            leader: leader.map(|seat| seat.key),
            lies,
        }
    }

    /// The machines in a book that were not sent away, and its users.
    pub(super) fn read(book: &Book) -> Arc<Listed> {
        let machines = book.machines().filter(|(_, machine)| !book.is_revoked(&machine.key));
        let machines = machines.map(|(_, machine)| ListedMachine {
            key: machine.key,
            addresses: machine.whereabouts.addresses.clone(),
            expires: machine.expires,
            issuer: machine.issuer,
            acts_for: match book.served(machine) {
                None => vec!["any".into()],
                Some(users) => users.iter().map(|user| user.name.to_string()).collect(),
            },
        });
        let person = |user: &overlay::Profile| {
            let (user, is_removed) = (user.clone(), book.is_revoked(&user.key));
            UserStanding::of(&Person { user, is_removed })
        };
        let users = book.people().iter().map(person).collect();
        Arc::new(Listed { machines: machines.collect(), users })
    }
}

/// How one machine of the cell stands, as another sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineStanding {
    /// What it is known by.
    pub key: Key,
    /// Where it can be reached.
    pub addresses: Vec<SocketAddr>,
    /// Whether it is the one that says so.
    pub is_this: bool,
    /// Whether it sits in the group, and has a vote.
    pub is_member: bool,
    /// Whether it is about to.
    pub is_learner: bool,
    /// Whether it leads the group.
    pub is_leader: bool,
    /// Whether there is a connection to it. Those that nobody needs are closed.
    pub is_connected: bool,
    /// Whether it was called just now and has not answered.
    pub is_away: bool,
    /// How often it is proven that it has lied.
    pub lies: usize,
    /// The names of the users that it acts for, or the word for any; nothing if that is not known here.
    pub acts_for: Option<Vec<String>>,
    /// When its certificate expires, in seconds since 1970, if that is known here.
    pub expires: Option<u64>,
    /// The issuer whose invitation it came with, if that is known here.
    pub issuer: Option<Key>,
}

impl Standing {
    /// The users of the cell, by name, and those who were. At most [`MACHINES_MAX`].
    pub(crate) fn users(&self) -> Vec<UserStanding> {
        self.roster.book.users.iter().take(MACHINES_MAX).cloned().collect()
    }

    /// The machines of the cell, the first to come first. At most [`MACHINES_MAX`].
    pub(crate) fn machines(
        &self,
        network: Option<&NetworkStanding>,
        away: &Away,
    ) -> Vec<MachineStanding> {
        let roster = &self.roster;
        let peers: BTreeMap<PublicKey, &PeerStanding> = network
            .into_iter()
            .flat_map(|network| &network.peers)
            .map(|peer| (peer.key.0, peer))
            .collect();
        // Whoever has only just joined has not read the group's book yet.
        let listed: BTreeMap<&PublicKey, &ListedMachine> =
            roster.book.machines.iter().map(|machine| (&machine.key, machine)).collect();
        let known = roster.book.machines.iter().map(|machine| machine.key);
        let others = roster.me.into_iter().chain(roster.members.iter().copied());
        let mut told = BTreeSet::new();
        let all = known.chain(others).chain(peers.keys().copied());
        let all: Vec<PublicKey> = all.filter(|key| told.insert(*key)).take(MACHINES_MAX).collect();
        let standing = |key: PublicKey| {
            let (peer, is_this) = (peers.get(&key), roster.me == Some(key));
            let own = self.address.filter(|_| is_this).map(|address| vec![address]);
            let named = listed.get(&key).map(|machine| machine.addresses.clone());
            let named = named.or_else(|| peer.map(|peer| peer.addresses.clone()));
            MachineStanding {
                key: Key(key),
                addresses: own.or(named).unwrap_or_default(),
                is_this,
                is_member: roster.members.contains(&key),
                is_learner: roster.learners.contains(&key),
                is_leader: roster.leader == Some(key),
                is_connected: is_this || peer.is_some_and(|peer| peer.connected_s.is_some()),
                is_away: away.0.contains(&key) && !is_this,
                lies: roster.lies.get(&key).copied().unwrap_or(0),
                acts_for: listed.get(&key).map(|machine| machine.acts_for.clone()),
                expires: match is_this {
                    true => self.expires,
                    false => listed.get(&key).map(|machine| machine.expires),
                },
                issuer: listed.get(&key).map(|machine| Key(machine.issuer)),
            }
        };
        all.into_iter().map(standing).collect()
    }
}
