//! What a mutant does differently: each hook is a place where a group could be built wrong.

use std::rc::Rc;

use group::{Message, Seat, Settings, Tip};

use super::disk::Disk;

/// Hooks around the product's machines, at honest machines only. The honest system leaves all as they are.
pub(crate) trait Tamper: Clone {
    /// How members behave.
    fn settings(&self, settings: Settings) -> Settings {
        settings
    }

    /// What a group begins with.
    fn first(&self, tip: Tip) -> Tip {
        tip
    }

    /// How many times too slowly a machine's clock runs.
    fn slowness(&self) -> u32 {
        1
    }

    /// Whether what depends on the log waits until it is safe.
    fn waits_for_disk(&self) -> bool {
        true
    }

    /// Whether the log is ever said to be safe.
    fn reports_safe(&self) -> bool {
        true
    }

    /// What a restart does to a disk.
    fn restarted(&self, _disk: &mut Disk) {}

    /// What a member hears of what another says.
    fn inward(&mut self, from: Seat, message: Message, _members: &[Seat]) -> Vec<(Seat, Message)> {
        vec![(from, message)]
    }

    /// Whether this leaves a member.
    fn outward(&mut self, _message: &Message) -> bool {
        true
    }

    /// Whether commands may be decided, as the shell finds.
    fn is_fit(&self, is_fit: bool) -> bool {
        is_fit
    }

    /// Whether a member asks others what they have seen of it before it votes.
    fn is_greeted(&self) -> bool {
        true
    }

    /// Whether a member wishes whatever others wish.
    fn echoes_wishes(&self) -> bool {
        false
    }

    /// Whether a member answers customers before their commands are decided.
    fn answers_early(&self) -> bool {
        false
    }

    /// How often a command takes effect that is decided again.
    fn repeats(&self) -> bool {
        false
    }

    /// What a member adds to its state that others do not.
    fn drifts(&self) -> bool {
        false
    }

    /// Whether a member that has noticed that its disk is an old one sits down on another seat.
    fn heeds_stale(&self) -> bool {
        true
    }

    /// As whose answers a customer counts this one.
    fn heard_as(&mut self, from: Seat, _members: &[Seat]) -> Vec<Seat> {
        vec![from]
    }

    /// Whether a customer asks who has decided a change of members.
    fn checks_changes(&self) -> bool {
        true
    }

    /// The bytes of a state that a member vouches for.
    fn vouched(&mut self, state: Rc<[u8]>) -> Rc<[u8]> {
        state
    }
}

/// Nothing is wrong.
#[derive(Clone, Debug)]
pub(crate) struct Honest;

impl Tamper for Honest {}
