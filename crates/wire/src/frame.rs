//! What one machine says to another and needs no answer to, with the group that it is to or from.

use base::Digest;
use borsh::{BorshDeserialize, BorshSerialize};
use directory::message::Request;
use group::{Decision, Seal};
use overlay::Tidings;

use crate::{envelope::VERSION, word::Word};

/// What one machine says to another.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Frame {
    /// To a group, from one, or among its members.
    Group(About, Message),
    /// Who was sent away from the cell, whether the machines have a vote or not.
    Tidings(Tidings),
}

/// The group that something is to or from. Whoever is of another group passes it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct About {
    /// What the group is known by.
    pub group: Digest,
    /// Since when its members are those whom the sender knows. A hint: nobody has sealed it.
    pub epoch: u64,
}

/// What is said to a group, by one, or among its members.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Message {
    /// From a client to the member on its own machine.
    Request(Request),
    /// From one member of a group to another.
    Member(Box<group::Message>),
    /// From a client to a member, who has to show it to the others: with its seal on [`crate::Said`].
    Sealed(Request, Seal),
    /// From a member to a client, who believes what enough of them say.
    Word(Word),
    /// From a client to a member, or to who was one: "Who has come to sit there since the height in front?"
    Whose,
    /// The answer: how the members have changed since.
    Changes(Vec<Decision>),
}

impl Frame {
    /// The most bytes of one.
    pub const BYTES_MAX: usize = 8 << 20;
}

impl About {
    /// The bytes of something that is said to this group, or by it.
    pub fn encode(self, message: Message) -> Vec<u8> {
        crate::encode(&Frame::Group(self, message))
    }
}

/// Whom a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// This group, from a client.
    Group(Digest),
    /// A client, from this group.
    Client(Digest),
    /// A member of this group, from another.
    Member(Digest),
    /// A machine, from another.
    Machine,
}

impl Audience {
    /// Of a frame of these bytes, if they are one: only the beginning is looked at.
    pub fn of(bytes: &[u8]) -> Option<Audience> {
        let (version, rest) = bytes.split_first_chunk()?;
        if u16::from_le_bytes(*version) != VERSION {
            return None;
        }
        match rest.split_first()? {
            (0, rest) => {
                let (group, rest) = rest.split_first_chunk()?;
                let (_epoch, rest) = rest.split_first_chunk::<8>()?;
                let group = Digest::from_bytes(*group);
                match rest.first()? {
                    0 | 2 | 4 => Some(Audience::Group(group)),
                    1 => Some(Audience::Member(group)),
                    3 | 5 => Some(Audience::Client(group)),
                    _ => None,
                }
            }
            (1, _) => Some(Audience::Machine),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specimens::frames;

    #[test]
    fn whom_a_frame_is_for_is_told_without_reading_it() {
        for (name, frame) in frames() {
            let audience = match &frame {
                Frame::Group(About { group, .. }, message) => match message {
                    Message::Request(..) | Message::Sealed(..) | Message::Whose => {
                        Audience::Group(*group)
                    }
                    Message::Word(..) | Message::Changes(..) => Audience::Client(*group),
                    Message::Member(..) => Audience::Member(*group),
                },
                Frame::Tidings(..) => Audience::Machine,
            };
            assert_eq!(Audience::of(&crate::encode(&frame)), Some(audience), "{name}");
        }
        let mut stranger = vec![VERSION as u8, 0, 0];
        stranger.extend([7; 40]);
        stranger.push(6);
        let cut = [VERSION as u8, 0, 0, 7];
        let nothing = [&[][..], &[1, 0], &[VERSION as u8, 0, 2], &[8, 0, 1], &cut, &stranger];
        assert_eq!(nothing.map(Audience::of), [None; 6]);
    }
}
