//! What a mutant does differently: each hook is a place where the system could be built wrong.

use base::Instant;
use client::{Call, Failure, Reply};
use directory::Actor;
use lease::Client;

/// Hooks around the product's machines. The honest system leaves all as they are.
pub(crate) trait Tamper: Clone {
    /// What the group hears of what a client said.
    fn upward(&mut self, _from: Client, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }

    /// What leaves the group of what it wants to say.
    fn downward(&mut self, _to: Client, bytes: Vec<u8>) -> Vec<Vec<u8>> {
        vec![bytes]
    }

    /// What the disk keeps of a record of the log.
    fn written(&mut self, record: Vec<u8>) -> Vec<u8> {
        record
    }

    /// How many records of the log a restart finds.
    fn kept(&self, records: usize) -> usize {
        records
    }

    /// Whether the log is synced, and a decision waits for that.
    fn waits_for_disk(&self) -> bool {
        true
    }

    /// What leaves a client, and what it is answered without anybody else hearing of it.
    fn outward(&mut self, bytes: Vec<u8>) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        (vec![bytes], Vec::new())
    }

    /// What a client hears of what the group said.
    fn inward(&mut self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        Some(bytes)
    }

    /// What a client's clock shows.
    fn clock(&mut self, now: Instant) -> Instant {
        now
    }

    /// What its clock should show by then.
    fn clock_back(&self, at: Instant) -> Instant {
        at
    }

    /// On whose behalf a client acts.
    fn actor(&self, actor: Actor) -> Actor {
        actor
    }

    /// What a client hears of what a program asks for.
    fn call(&mut self, call: Call) -> Call {
        call
    }

    /// What a program hears of what came of it.
    fn result(&mut self, result: Result<Reply, Failure>) -> Result<Reply, Failure> {
        result
    }

    /// Whether a call that is cancelled is not done.
    fn heeds_cancel(&self) -> bool {
        true
    }
}

/// Nothing is wrong.
#[derive(Clone, Debug)]
pub(crate) struct Honest;

impl Tamper for Honest {}
