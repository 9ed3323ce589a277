//! How the network stands: what is counted, and what status shows of it.

use std::{
    fmt,
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
};

use base::PublicKey;
use serde::{Serialize, Serializer};

use super::Lane;

/// Counts up, from any thread.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What went over one lane of one peer.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) frames_in: Count,
    pub(crate) bytes_in: Count,
    pub(crate) frames_out: Count,
    pub(crate) bytes_out: Count,
    pub(crate) frames_dropped: Count,
}

/// Who was turned away, and for what.
#[derive(Debug, Default)]
pub(crate) struct Turned {
    pub(crate) busy: Count,
    pub(crate) handshake: Count,
    pub(crate) version: Count,
    pub(crate) unwelcome: Count,
    pub(crate) crowded: Count,
    pub(crate) garbage: Count,
    pub(crate) oversized: Count,
    pub(crate) asks: Count,
}

/// A machine's key, which is shown as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub PublicKey);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How the network stands.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// Where it listens.
    pub address: SocketAddr,
    /// Those that are known, in the order of their keys.
    pub peers: Vec<PeerStanding>,
    /// Connections of machines that are known.
    pub connections: usize,
    /// Connections of strangers.
    pub guests: usize,
    /// Handshakes under way that others have begun.
    pub handshakes: usize,
    /// Who was turned away.
    pub refused: Refusals,
}

/// How one peer stands.
#[derive(Clone, Debug, Serialize)]
pub struct PeerStanding {
    /// What it is known by.
    pub key: Key,
    /// Where it may be.
    pub addresses: Vec<SocketAddr>,
    /// Seconds since it was connected; none if it is not.
    pub connected_s: Option<f64>,
    /// Connections to it: more than one only while one ends.
    pub connections: usize,
    /// What went over each lane.
    pub lanes: Vec<LaneStanding>,
}

/// What went over a lane.
#[derive(Clone, Debug, Serialize)]
pub struct LaneStanding {
    /// Which.
    pub lane: Lane,
    /// Frames that came.
    pub frames_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Frames that were sent.
    pub frames_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Frames that nobody could be found for in time.
    pub frames_dropped: u64,
    /// Frames that wait.
    pub waiting: usize,
    /// Their bytes.
    pub waiting_bytes: usize,
}

/// How often others were turned away since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refusals {
    /// Too many handshakes or connections.
    pub busy: u64,
    /// A handshake failed or took too long.
    pub handshake: u64,
    /// Another version was spoken.
    pub version: u64,
    /// The doorman did not want them.
    pub unwelcome: u64,
    /// They had enough connections already, or there were enough strangers.
    pub crowded: u64,
    /// What they sent made no sense.
    pub garbage: u64,
    /// Frames or requests were too large.
    pub oversized: u64,
    /// Requests that there was no thread for.
    pub asks: u64,
}

impl Turned {
    pub(crate) fn standing(&self) -> Refusals {
        Refusals {
            busy: self.busy.get(),
            handshake: self.handshake.get(),
            version: self.version.get(),
            unwelcome: self.unwelcome.get(),
            crowded: self.crowded.get(),
            garbage: self.garbage.get(),
            oversized: self.oversized.get(),
            asks: self.asks.get(),
        }
    }
}
