//! The seam at which tests plant mutants. In the product's worlds nobody tampers.

use base::Instant;
use lease::{
    Client,
    message::{Downward, Upward},
};

/// Changes what passes between the machines and their world.
pub(crate) trait Tamper: Clone {
    /// The time that the grantor is told.
    fn server_now(&mut self, now: Instant) -> Instant {
        now
    }

    /// What the grantor hears; it may become nothing or many.
    fn heard(&mut self, _: Instant, from: Client, message: Upward) -> Vec<(Client, Upward)> {
        vec![(from, message)]
    }

    /// Under which number the grantor knows a client's question.
    fn asked(&mut self, _: Client, request: u64) -> u64 {
        request
    }

    /// Which question it speaks of; it is granted, or refused.
    fn answered(&mut self, _: Client, request: u64) -> u64 {
        request
    }

    /// What the grantor says; it may become nothing or many.
    fn said(&mut self, _: Instant, to: Client, message: Downward) -> Vec<(Client, Downward)> {
        vec![(to, message)]
    }

    /// What a holder hears, if it does.
    fn learnt(&mut self, _: Instant, message: Downward) -> Option<Downward> {
        Some(message)
    }

    /// What a holder says.
    fn told(&mut self, _: Instant, message: Upward) -> Vec<Upward> {
        vec![message]
    }

    /// The time by which a holder judges what it knows.
    fn belief_now(&self, now: Instant) -> Instant {
        now
    }

    /// Whether a client pushes before it lets go.
    fn pushes(&self) -> bool {
        true
    }
}

/// Changes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Honest;

impl Tamper for Honest {}
