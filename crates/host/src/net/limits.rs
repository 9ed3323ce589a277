//! How much of everything there may be.

use std::time::Duration;

use super::Lane;

/// What one lane may hold, for each peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneLimits {
    /// The most bytes in one frame. Machines of a cell have to agree on it.
    pub frame_bytes_max: usize,
    /// The most frames that wait to be sent.
    pub outbox_count_max: usize,
    /// The most bytes that wait to be sent.
    pub outbox_bytes_max: usize,
}

/// How much of everything there may be, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// By [`Lane`].
    pub lanes: [LaneLimits; 3],
    /// The most bytes of a request of a machine that is known.
    pub ask_bytes_max: usize,
    /// The most bytes of a request of a stranger.
    pub ask_stranger_bytes_max: usize,
    /// The most bytes of an answer.
    pub answer_bytes_max: usize,
    /// The most requests of our own that are not answered yet.
    pub asks_max: usize,
    /// Threads that answer requests of others.
    pub ask_threads: usize,
    /// The most requests of others that wait for one of these threads.
    pub ask_queue_max: usize,
    /// With so much time of these threads used up lately, a machine is not heard for a while, nor are strangers.
    pub ask_debt_max: Duration,
    /// Of so many machines it is known what they have used.
    pub ask_debtors_max: usize,
    /// The most machines that are known.
    pub peers_max: usize,
    /// The most connections of machines that are known, those included that others have begun.
    pub connections_max: usize,
    /// The most connections of all kinds, those that are not quite over included. Who calls when there are more is
    /// turned away.
    pub open_max: usize,
    /// The most bytes of frames that have come in part.
    pub reading_bytes_max: usize,
    /// The most bytes that wait to be sent, to all machines together.
    pub outboxes_bytes_max: usize,
    /// The most connections of strangers.
    pub guests_max: usize,
    /// The most handshakes under way that others have begun. From a quarter of them on, whoever comes has to
    /// show first that it can be reached at its address.
    pub handshakes_max: usize,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// How long a stranger may stay.
    pub guest: Duration,
    /// A connection over which nothing goes for so long is closed. Less than `silence`.
    pub idle: Duration,
    /// A peer that does not react for so long is given up. No request may take longer.
    pub silence: Duration,
    /// A peer that does not confirm what was sent to it for so long is called anew.
    pub stall: Duration,
    /// The first and the longest pause between two calls of a peer that can't be reached.
    pub pause: (Duration, Duration),
    /// What waits for a peer that can't be reached is dropped after this time.
    pub patience: Duration,
}

/// The most connections to one machine: the one in use, and one that ends.
pub(crate) const LINKS_MAX: usize = 2;
/// The most requests that one connection carries at a time, each way.
pub(crate) const LINK_ASKS_MAX: u32 = 4;
/// How much of one stream may be on its way.
pub(crate) const STREAM_WINDOW: u32 = 1 << 20;
/// How much may be on its way to a machine. No less than all streams together, else a full lane would keep
/// an urgent frame from being taken.
pub(crate) const SEND_WINDOW: u64 = (3 + 1 + 2 * LINK_ASKS_MAX as u64) * STREAM_WINDOW as u64;
/// How much may come of a connection before it is known who is there, and of a stranger.
pub(crate) const GUEST_WINDOW: u32 = 64 << 10;
/// So many callers for each handshake that may be under way are looked at, to be turned away with a word;
/// whoever else knocks at that moment is not heard.
const KNOCKS: usize = 4;
/// What is kept of a caller before it is looked at.
pub(crate) const KNOCK_BYTES_MAX: u64 = 16 << 10;
/// The most addresses of one machine.
pub(crate) const ADDRESSES_MAX: usize = 8;

impl Default for Limits {
    fn default() -> Limits {
        const MIB: usize = 1 << 20;
        let lane = |frame_bytes_max, outbox_bytes_max| LaneLimits {
            frame_bytes_max,
            outbox_count_max: 4_096,
            outbox_bytes_max,
        };
        Limits {
            lanes: [lane(MIB, 4 * MIB), lane(8 * MIB, 16 * MIB), lane(8 * MIB, 16 * MIB)],
            ask_bytes_max: MIB,
            ask_stranger_bytes_max: 8 << 10,
            answer_bytes_max: MIB,
            asks_max: 256,
            ask_threads: 8,
            ask_queue_max: 64,
            ask_debt_max: Duration::from_secs(1),
            ask_debtors_max: 1_024,
            peers_max: 4_096,
            connections_max: 1_024,
            open_max: 2_048,
            reading_bytes_max: 256 * MIB,
            outboxes_bytes_max: 256 * MIB,
            guests_max: 32,
            handshakes_max: 64,
            handshake: Duration::from_secs(3),
            guest: Duration::from_secs(10),
            idle: Duration::from_secs(10),
            silence: Duration::from_secs(15),
            stall: Duration::from_secs(3),
            pause: (Duration::from_millis(50), Duration::from_secs(5)),
            patience: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// The most callers that wait to be looked at.
    pub(crate) fn knocks_max(&self) -> usize {
        self.handshakes_max.saturating_mul(KNOCKS)
    }

    /// Those of them that are about requests of others.
    pub(crate) fn queries(&self) -> node::queries::Limits {
        node::queries::Limits {
            threads: self.ask_threads,
            waiting_max: self.ask_queue_max,
            debt_max: self.ask_debt_max,
            debtors_max: self.ask_debtors_max,
        }
    }

    pub(crate) fn lane(&self, lane: Lane) -> &LaneLimits {
        &self.lanes[lane.index()]
    }
}
