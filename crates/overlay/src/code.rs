//! An invitation as text that people pass on: `croft join CODE`.
//!
//! `croft1`, then the bytes in digits and small letters without those that look alike (i, l, o, u). The bytes
//! end with a checksum, so a typing error is told apart from an invitation that nobody has given.

use std::{fmt, net::SocketAddr};

use base::{Digest, Domain, Malformed, SecretKey};

use crate::{
    invitation::Invitation,
    issuer::Issued,
    permit::Permit,
    refused::Refused,
    wiped::{Wiped, wipe},
};

const PREFIX: &str = "croft1";
const VERSION: u8 = 3;
const CHECKSUM: Domain = Domain::new("checksum of an invitation's code v1");
const CHECKSUM_SIZE: usize = 4;
/// Five bits each.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const SEED_SIZE: usize = 32;
/// Version, seed, permit, count of addresses, each of which is a kind, 16 bytes and a port, and the checksum.
const BYTES_MAX: usize =
    1 + SEED_SIZE + Issued::<Permit>::BYTES_MAX + (4 + Code::ADDRESSES_MAX * 19) + CHECKSUM_SIZE;

/// An invitation, and where to go with it.
#[derive(Debug)]
pub struct Code {
    /// The invitation.
    pub invitation: Invitation,
    /// Where machines of the cell can be reached. At most [`Code::ADDRESSES_MAX`].
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
    /// The most addresses.
    pub const ADDRESSES_MAX: usize = 4;

    /// The most letters.
    pub const LENGTH_MAX: usize = PREFIX.len() + (8 * BYTES_MAX).div_ceil(5);

    /// An invitation that can be used at these addresses. Of an IPv6 address neither flow nor scope is kept.
    pub fn new(invitation: Invitation, addresses: &[SocketAddr]) -> Result<Code, Refused> {
        if addresses.len() > Code::ADDRESSES_MAX {
            return Err(Refused::AddressesTooMany);
        }
        let plain = |address: &SocketAddr| SocketAddr::new(address.ip(), address.port());
        Ok(Code { invitation, addresses: addresses.iter().map(plain).collect() })
    }

    /// Where machines of the cell can be reached.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// It as text.
    pub fn text(&self) -> Text {
        let (key, permit) = self.invitation.parts();
        let mut bytes = Wiped::with_room(BYTES_MAX);
        bytes.extend(&[VERSION]);
        bytes.extend(key.as_seed());
        bytes.extend(&base::encode(&(permit, &self.addresses)));
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
        let short = Refused::CodeMalformed(Malformed::new("less than a key"));
        let (&(mut seed), rest) = body.split_first_chunk::<SEED_SIZE>().ok_or(short)?;
        let key = SecretKey::from_seed(seed);
        wipe(&mut seed);
        let (permit, addresses): (Issued<Permit>, Vec<SocketAddr>) =
            base::decode(rest, BYTES_MAX).map_err(Refused::CodeMalformed)?;
        Code::new(Invitation::join(key, permit)?, &addresses)
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
