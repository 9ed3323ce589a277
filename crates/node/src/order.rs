//! Commands as the group carries them: who is behind each can be told by every member.

use base::{Digest, Malformed, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize};
use directory::Command;
use group::{Notary, Seal, Sealable as _};
use overlay::Decree;
use wire::{Frame, Join, Said};

/// The most bytes of a command, so that a member can tell the others of it.
pub(crate) const BYTES_MAX: usize = Frame::BYTES_MAX / 2;

/// Something that the group is to decide.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
#[expect(clippy::large_enum_variant, reason = "nearly all orders are commands")]
pub enum Order {
    /// A command, and who answers for it. In a group of one nobody has to: that one has heard it itself.
    Do {
        /// What is to be done.
        command: Command,
        /// The key of whoever wants it, and its seal on [`Said`].
        by: Option<(PublicKey, Seal)>,
    },
    /// A machine wants to be one of the cell; its certificate answers for it.
    Join(Box<Join>),
    /// An issuer or the root key says something; its signature is on it.
    Decree {
        /// What.
        decree: Box<Decree>,
        /// When it was heard, in seconds since 1970, by the clock of the member that has heard it.
        heard: u64,
    },
}

impl Order {
    /// The order of these bytes.
    pub fn of(bytes: &[u8]) -> Result<Order, Malformed> {
        base::decode(bytes, BYTES_MAX)
    }

    /// Whether it is what it seems, as far as can be told from it alone. Whether its author may want it is
    /// for when it is applied.
    pub(crate) fn is_authentic<N: Notary>(
        &self,
        group: &Digest,
        authority: Option<&PublicKey>,
        notary: &N,
    ) -> bool {
        match self {
            Order::Do { command: Command::Heard { client, request }, by: Some((key, seal)) } => {
                let said = Said { client: *client, request };
                notary.is_sealed(key, &said.sealed_bytes(group), seal)
            }
            // Time passes for all alike; whether it has is checked with every decision.
            Order::Do { command: Command::Tick, by: None } => true,
            Order::Do { .. } => false,
            Order::Join(join) => authority.is_some_and(|authority| join.check(authority).is_ok()),
            Order::Decree { decree, .. } => {
                authority.is_some_and(|authority| decree.verify(authority).is_ok())
            }
        }
    }
}
