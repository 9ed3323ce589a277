//! Identifiers as bytes: keys of a database and fields of a message, in one canonical form.
//!
//! The key codes of the integers, the code that ends the sequence, and zeros up to a whole byte (see
//! `gamma`). Keys compare as identifiers do, and say themselves where they end.

use std::io::{self, Read, Write};

use borsh::{BorshDeserialize, BorshSerialize};

use crate::{FileId, Malformed, bits::Builder, gamma};

impl FileId {
    /// The longest key in bytes: every integer is a one, whose code doubles from one bit to two.
    pub const KEY_MAX: usize = (2 * FileId::BITS_MAX + 1).div_ceil(8);

    /// The key: bytes that sort as identifiers do.
    pub fn to_key(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.bit_len() / 4 + 1);
        self.append_key(&mut key);
        key
    }

    /// Appends the key to what is there, for keys of several parts.
    pub fn append_key(&self, key: &mut Vec<u8>) {
        let mut pending: u8 = 0;
        let mut free: usize = 8;
        for n in self.components() {
            let (code, mut left) = gamma::key_code(n);
            while left >= free {
                left -= free;
                key.push(pending | (code >> left) as u8 & low_bits(free));
                (pending, free) = (0, 8);
            }
            free -= left;
            pending |= (code as u8 & low_bits(left)).checked_shl(free as u32).unwrap_or(0);
        }
        // What is still free, one bit or more, holds the final code: a zero, and the padding.
        key.push(pending);
    }

    /// The identifier with this key.
    pub fn from_key(key: &[u8]) -> Result<FileId, Malformed> {
        let mut rest = key;
        let id = FileId::read_key(&mut rest)?;
        match rest {
            [] => Ok(id),
            _ => Err(Malformed::new("bytes follow the end of an identifier")),
        }
    }

    /// Takes an identifier's key off the front of the bytes, which may go on; nothing if there is none.
    pub fn read_key(bytes: &mut &[u8]) -> Result<FileId, Malformed> {
        let mut rest = *bytes;
        let id = parse::<Malformed>(|| {
            let (&first, behind) = rest.split_first().ok_or(CUT)?;
            rest = behind;
            Ok(first)
        })?;
        *bytes = rest;
        Ok(id)
    }
}

const CUT: Malformed = Malformed::new("an identifier ends before its end mark");

fn low_bits(count: usize) -> u8 {
    debug_assert!(count <= 8);
    ((1u16 << count) - 1) as u8
}

/// Bits taken from a source of bytes as they are needed: never more bytes than the key has.
struct Source<F> {
    next: F,
    /// Bits not taken yet, at the top; zeros below them.
    byte: u8,
    count: u32,
}

impl<E: From<Malformed>, F: FnMut() -> Result<u8, E>> Source<F> {
    fn fill(&mut self) -> Result<(), E> {
        if self.count == 0 {
            self.byte = (self.next)()?;
            self.count = 8;
        }
        Ok(())
    }

    fn drop_bits(&mut self, count: u32) {
        self.byte = self.byte.checked_shl(count).unwrap_or(0);
        self.count -= count;
    }

    /// Counts ones up to the next zero and takes them all.
    fn unary(&mut self, ones_max: u32) -> Result<u32, E> {
        let mut ones = 0;
        loop {
            self.fill()?;
            let here = self.byte.leading_ones().min(self.count);
            ones += here;
            if ones > ones_max {
                return Err(Malformed::new("an integer of an identifier is over 2^64 - 1").into());
            }
            let found_zero = here < self.count;
            self.drop_bits(here + u32::from(found_zero));
            if found_zero {
                return Ok(ones);
            }
        }
    }

    fn take(&mut self, mut count: u32) -> Result<u64, E> {
        let mut value = 0;
        while count > 0 {
            self.fill()?;
            let here = count.min(self.count);
            value = value << here | u64::from(self.byte >> (8 - here));
            self.drop_bits(here);
            count -= here;
        }
        Ok(value)
    }
}

fn parse<E: From<Malformed>>(next: impl FnMut() -> Result<u8, E>) -> Result<FileId, E> {
    let mut source = Source { next, byte: 0, count: 0 };
    let mut builder = Builder::new();
    while let Some(ones) = source.unary(u64::BITS)?.checked_sub(1) {
        let (code, count) = gamma::code(gamma::integer(ones, source.take(ones)?));
        if !builder.push(code, count) {
            return Err(Malformed::new("an identifier is longer than the longest one").into());
        }
    }
    match source.byte {
        0 => Ok(FileId::from_builder(&builder)),
        _ => Err(Malformed::new("an identifier is not padded with zeros").into()),
    }
}

impl BorshSerialize for FileId {
    fn serialize<W: Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(&self.to_key())
    }
}

impl BorshDeserialize for FileId {
    fn deserialize_reader<R: Read>(reader: &mut R) -> io::Result<FileId> {
        parse(|| {
            let mut byte = [0];
            reader.read_exact(&mut byte)?;
            Ok(byte[0])
        })
    }
}
