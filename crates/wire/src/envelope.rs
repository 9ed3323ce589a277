//! A message with the version of its format in front.

use base::Malformed;
use borsh::{BorshDeserialize, BorshSerialize};
use directory::message::{Request, Response};
use group::{Decision, Seal};
use overlay::Tidings;

use crate::word::Word;

/// The version of the format that is spoken here.
pub const VERSION: u16 = 9;

/// The most bytes in one message, its version included.
pub const BYTES_MAX: usize = 8 << 20;

/// What one machine may say to another.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Message {
    /// From a client to a group.
    Request(Request),
    /// From a group to a client.
    Response(Response),
    /// From one member of a group to another.
    Member(Box<group::Message>),
    /// From a client to a member of a group of several, who have to show it to one another: with its seal
    /// on [`crate::Said`].
    Sealed(Request, Seal),
    /// From a member of a group of several to a client, who believes what enough of them say.
    Word(Word),
    /// From a client to a member, or to who was one: "Who sits there? I know it since this height."
    Whose(u64),
    /// The answer: how the members have changed since.
    Changes(Vec<Decision>),
    /// From one machine to another, whether it has a vote or not: who was sent away.
    Tidings(Tidings),
}

/// Whom a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// A group, from a client.
    Group,
    /// A client, from a group.
    Client,
    /// A member, from another.
    Member,
    /// A machine, from another.
    Machine,
}

impl Audience {
    /// Of a message of these bytes, if they are one: only the beginning is looked at.
    pub fn of(bytes: &[u8]) -> Option<Audience> {
        let (version, rest) = bytes.split_first_chunk()?;
        match rest.first()? {
            _ if u16::from_le_bytes(*version) != VERSION => None,
            0 | 3 | 5 => Some(Audience::Group),
            1 | 4 | 6 => Some(Audience::Client),
            2 => Some(Audience::Member),
            7 => Some(Audience::Machine),
            _ => None,
        }
    }
}

/// The bytes of a message.
pub fn seal(message: &Message) -> Vec<u8> {
    base::encode(&(VERSION, message))
}

/// The message of these bytes.
pub fn open(bytes: &[u8]) -> Result<Message, Malformed> {
    let (version, _) = bytes.split_first_chunk().ok_or(Malformed::new("less than a version"))?;
    if u16::from_le_bytes(*version) != VERSION {
        return Err(Malformed::new("a version of the format that is not spoken here"));
    }
    let (_, message): (u16, Message) = base::decode(bytes, BYTES_MAX)?;
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specimens::specimens;

    #[test]
    fn what_was_sealed_is_what_is_opened() {
        for (name, message) in specimens() {
            assert_eq!(open(&seal(&message)), Ok(message), "{name}");
        }
    }

    #[test]
    fn a_message_of_another_version_is_malformed_whatever_follows() {
        let (_, message) = specimens().remove(0);
        let mut bytes = seal(&message);
        bytes[0] += 1;
        let malformed = open(&bytes).unwrap_err().to_string();
        assert_eq!(malformed, "malformed bytes: a version of the format that is not spoken here");
        assert!(open(&[]).is_err() && open(&[1]).is_err());
    }

    #[test]
    fn whom_a_message_is_for_is_told_without_reading_it() {
        for (name, message) in specimens() {
            let audience = match &message {
                Message::Request(..) | Message::Sealed(..) | Message::Whose(..) => Audience::Group,
                Message::Response(..) | Message::Word(..) | Message::Changes(..) => {
                    Audience::Client
                }
                Message::Member(..) => Audience::Member,
                Message::Tidings(..) => Audience::Machine,
            };
            assert_eq!(Audience::of(&seal(&message)), Some(audience), "{name}");
        }
        assert_eq!([&[][..], &[1, 0], &[9, 0, 8], &[8, 0, 1]].map(Audience::of), [None; 4]);
    }

    #[test]
    fn a_message_that_is_cut_or_goes_on_is_malformed() {
        for (name, message) in specimens() {
            let mut bytes = seal(&message);
            for cut in 0..bytes.len() {
                assert!(open(&bytes[..cut]).is_err(), "{name} cut at {cut}");
            }
            bytes.push(0);
            assert!(open(&bytes).is_err(), "{name} goes on");
        }
    }

    #[test]
    fn a_changed_byte_is_another_message_or_none() {
        for (name, message) in specimens() {
            let bytes = seal(&message);
            for at in 0..bytes.len() {
                for flip in [1, 0x80] {
                    let mut changed = bytes.clone();
                    changed[at] ^= flip;
                    if let Ok(other) = open(&changed) {
                        assert_ne!(other, message, "{name} at {at}");
                        assert_eq!(seal(&other), changed, "{name} at {at} has two encodings");
                    }
                }
            }
        }
    }

    #[test]
    fn a_message_over_the_limit_is_not_even_looked_at() {
        let mut bytes = vec![0; BYTES_MAX + 1];
        bytes[..2].copy_from_slice(&VERSION.to_le_bytes());
        let malformed = open(&bytes).unwrap_err().to_string();
        assert!(malformed.contains("bytes where at most 8388608 may stand"), "{malformed}");
    }
}
