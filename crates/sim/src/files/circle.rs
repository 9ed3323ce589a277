//! A group of several members, as the file world sees it: who they are, and how their words are sealed.

use std::sync::Arc;

use base::{Digest, Domain, Duration, PublicKey};
use group::{Doubt, Notary, Roll, Seal, Seat, Tip};
use lease::Client;
use wire::{About, Ear};

use crate::Node;

const GROUP: Domain = Domain::new("simulated group v1");
const SEAL: Domain = Domain::new("simulated seal v1");

/// Seals by a hash. Nobody lies in this world, so that it could be made by others does no harm.
#[derive(Clone, Debug)]
pub(crate) struct Stamp(pub(crate) PublicKey);

impl Notary for Stamp {
    fn seal(&self, bytes: &[u8]) -> Seal {
        stamp(&self.0, bytes)
    }

    fn is_sealed(&self, by: &PublicKey, bytes: &[u8], seal: &Seal) -> bool {
        stamp(by, bytes) == *seal
    }
}

fn stamp(key: &PublicKey, bytes: &[u8]) -> Seal {
    let mut seal = Seal([0; 64]);
    let both = [key.as_bytes(), bytes].concat();
    seal.0[..32].copy_from_slice(Digest::of(SEAL, &both).as_bytes());
    seal
}

/// The members, and at which nodes they are.
#[derive(Clone, Debug)]
pub(crate) struct Circle {
    pub(crate) group: Digest,
    pub(crate) settings: group::Settings,
    pub(crate) first: Tip,
    places: Arc<[(Seat, Node)]>,
}

impl Circle {
    /// So many members: one at the first node, the others after the desks.
    pub(crate) fn new(members: usize, desks: usize, slack: Duration, sync_max: Duration) -> Circle {
        let seat = |number: usize| {
            let key = PublicKey::from_bytes([number as u8 + 1; 32]);
            Seat { key, incarnation: 0 }
        };
        let node = |number: usize| Node(if number == 0 { 0 } else { desks + number } as u16);
        let places: Vec<_> = (0..members).map(|number| (seat(number), node(number))).collect();
        let first = Tip::first(places.iter().map(|(seat, _)| *seat).collect());
        let usual = group::Settings::default();
        let patience = group::Patience {
            propose: usual.patience.propose + slack + sync_max,
            prevote: usual.patience.prevote + slack + sync_max,
            precommit: usual.patience.precommit + slack + sync_max,
            rebroadcast: usual.patience.rebroadcast + 2 * (slack + sync_max),
            ..usual.patience
        };
        let doubt = Doubt { slack, ..usual.doubt };
        let settings =
            group::Settings { patience, doubt, checkpoint_every: 64, recent_max: 128, ..usual };
        let first = first.expect("a group has members");
        Circle { group: Circle::alone().group, settings, first, places: places.into() }
    }

    /// What a group of one is known by to its clients.
    pub(crate) fn alone() -> About {
        About { group: Digest::of(GROUP, b""), epoch: 0 }
    }

    pub(crate) fn node(&self, seat: Seat) -> Option<Node> {
        self.places.iter().find(|(other, _)| *other == seat).map(|(_, node)| *node)
    }

    pub(crate) fn seat(&self, node: Node) -> Option<Seat> {
        self.places.iter().find(|(_, other)| *other == node).map(|(seat, _)| *seat)
    }

    pub(crate) fn is_of_one(&self) -> bool {
        self.places.len() == 1
    }

    /// The key that a client is known by.
    pub(crate) fn key(client: Client) -> PublicKey {
        let mut key = [0xcc; 32];
        key[..4].copy_from_slice(&client.0.to_le_bytes());
        PublicKey::from_bytes(key)
    }

    /// What a client needs to hear these members.
    pub(crate) fn ear(&self, client: Client, repeat: Duration) -> Ear<Stamp> {
        let notary = Stamp(Circle::key(client));
        let roll = Roll::from(&self.first);
        Ear::new(client, self.group, roll, notary, repeat).expect("a group has members")
    }
}
