//! An invitation as text that people pass on: `croft join CODE`.
//!
//! It has the secret of the invitation, and a digest of everything that the machine that has made it hands over to
//! whoever comes: so it is short, and whoever answers in place of that machine is found out. `croft1`, then the bytes in
//! digits and small letters without those that look alike (i, l, o, u). The bytes end with a checksum, so a typing error
//! is told apart from a code that nobody has given.

use std::{fmt, net::SocketAddr};

use base::{Digest, Domain, Malformed};
use borsh::BorshDeserialize as _;

use crate::{
    invitation::Secret,
    refused::Refused,
    wiped::{Wiped, wipe},
};

const PREFIX: &str = "croft1";
const VERSION: u8 = 4;
const CHECKSUM: Domain = Domain::new("checksum of an invitation's code v1");
const CHECKSUM_SIZE: usize = 4;
/// Five bits each.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const PIN_SIZE: usize = 32;
/// As many as the letters have room for.
const BYTES_MAX: usize = (Code::LENGTH_MAX - PREFIX.len()) * 5 / 8;
/// Two of IPv6 have 19 each: a kind, 16 bytes and a port. Of IPv4 they have 7.
const ADDRESSES_BYTES_MAX: usize = BYTES_MAX - 1 - Secret::SIZE - PIN_SIZE - CHECKSUM_SIZE;
const _: () =
    assert!(ADDRESSES_BYTES_MAX >= 2 * 19 && ADDRESSES_BYTES_MAX >= Code::ADDRESSES_MAX * 7);

/// An invitation, and where to go with it.
#[derive(Debug)]
pub struct Code {
    /// The secret of the invitation.
    pub secret: Secret,
    /// A digest of what the machine that has invited hands over.
    pub pin: Digest,
    /// Where that machine can be reached. At most [`Code::ADDRESSES_MAX`].
    addresses: Vec<SocketAddr>,
}

/// The text of a code: a secret, so it is wiped when dropped, and printed only by who asks for it by name.
pub struct Text(Wiped);

impl Text {
    /// What to pass on.
    pub fn reveal(&self) -> &str {
        std::str::from_utf8(&self.0).expect("it is made of digits and letters")
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Text(a secret)")
    }
}

impl Code {
    /// The most addresses. Of IPv6 there is room for two.
    pub const ADDRESSES_MAX: usize = 4;

    /// The most letters.
    pub const LENGTH_MAX: usize = 160;

    /// An invitation that can be used at these addresses. Of an IPv6 address neither flow nor scope is kept.
    pub fn new(secret: Secret, pin: Digest, addresses: &[SocketAddr]) -> Result<Code, Refused> {
        let plain = |address: &SocketAddr| SocketAddr::new(address.ip(), address.port());
        let addresses: Vec<SocketAddr> = addresses.iter().map(plain).collect();
        let size: usize = addresses.iter().map(|address| base::encode(address).len()).sum();
        match addresses.len() <= Code::ADDRESSES_MAX && size <= ADDRESSES_BYTES_MAX {
            true => Ok(Code { secret, pin, addresses }),
            false => Err(Refused::AddressesTooMany),
        }
    }

    /// Where the machine that has invited can be reached.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// It as text.
    pub fn text(&self) -> Text {
        let mut bytes = Wiped::with_room(BYTES_MAX);
        bytes.extend(&[VERSION]);
        bytes.extend(self.secret.bytes());
        bytes.extend(self.pin.as_bytes());
        self.addresses.iter().for_each(|address| bytes.extend(&base::encode(address)));
        let checksum = checksum(&bytes);
        bytes.extend(&checksum);
        let mut text = Wiped::with_room(Code::LENGTH_MAX);
        text.extend(PREFIX.as_bytes());
        write_letters(&bytes, &mut text);
        Text(text)
    }

    /// Reads a text.
    pub fn read(text: &str) -> Result<Code, Refused> {
        let letters = text.strip_prefix(PREFIX).ok_or(Refused::CodeOther)?;
        if text.len() > Code::LENGTH_MAX {
            return Err(Refused::CodeMistyped);
        }
        let bytes = read_letters(letters.as_bytes()).ok_or(Refused::CodeMistyped)?;
        let (body, sum) = bytes.split_last_chunk().ok_or(Refused::CodeMistyped)?;
        if checksum(body) != *sum {
            return Err(Refused::CodeMistyped);
        }
        let (&version, body) = body.split_first().ok_or(Refused::CodeMistyped)?;
        if version != VERSION {
            return Err(Refused::CodeVersion { version });
        }
        let short = || Refused::CodeMalformed(Malformed::new("less than a secret and a digest"));
        let (&(mut bytes), rest) = body.split_first_chunk().ok_or_else(short)?;
        let secret = Secret::new(bytes);
        wipe(&mut bytes);
        let (&pin, mut rest) = rest.split_first_chunk::<PIN_SIZE>().ok_or_else(short)?;
        let mut addresses = Vec::new();
        while !rest.is_empty() {
            let none = |_| Refused::CodeMalformed(Malformed::new("what is no address"));
            addresses.push(SocketAddr::deserialize(&mut rest).map_err(none)?);
        }
        Code::new(secret, Digest::from_bytes(pin), &addresses)
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_SIZE] {
    let digest = Digest::of(CHECKSUM, bytes);
    std::array::from_fn(|index| digest.as_bytes()[index])
}

fn write_letters(bytes: &[u8], text: &mut Wiped) {
    let (mut bits, mut count) = (0u32, 0);
    for byte in bytes {
        (bits, count) = (bits << 8 | u32::from(*byte), count + 8);
        while count >= 5 {
            count -= 5;
            text.extend(&[LETTERS[(bits >> count) as usize & 31]]);
        }
    }
    if count > 0 {
        text.extend(&[LETTERS[(bits << (5 - count)) as usize & 31]]);
    }
}

/// The bytes of letters, if these are the letters of those bytes: every other text is a mistake.
fn read_letters(letters: &[u8]) -> Option<Wiped> {
    let mut bytes = Wiped::with_room(BYTES_MAX);
    let (mut bits, mut count) = (0u32, 0);
    for letter in letters {
        let value = LETTERS.iter().position(|known| known == letter)?;
        (bits, count) = (bits << 5 | value as u32, count + 5);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8).then_some(())?;
        }
    }
    let is_padded = count < 5 && bits & ((1 << count) - 1) == 0;
    is_padded.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_read_back_as_they_were_written_and_in_no_other_way() {
        for size in 0..20 {
            let bytes: Vec<u8> = (0..size).map(|index| (index * 37 + 5) as u8).collect();
            let mut text = Wiped::with_room(64);
            write_letters(&bytes, &mut text);
            assert_eq!(&*read_letters(&text).unwrap(), bytes);
            let longer = [&text[..], b"0"].concat();
            assert!(read_letters(&longer).is_none_or(|read| *read != bytes), "{size} bytes");
        }
        assert!(read_letters(b"z").is_none() && read_letters(b"0z").is_none());
        assert!(read_letters(b"0o").is_none() && read_letters(b"0A").is_none());
    }

    #[test]
    fn no_two_letters_look_alike() {
        assert!(b"ilou".iter().all(|letter| !LETTERS.contains(letter)));
        assert!(LETTERS.is_sorted() && LETTERS.iter().all(u8::is_ascii_alphanumeric));
    }
}
