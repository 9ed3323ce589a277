//! One value for a set of records, kept as they come and go.
//!
//! Each record is hashed to 2,048 bits, and a set is the sum of its records'. With the 256 bits of a
//! digest a forger could find another set with the same sum in about 2^32 steps (Wagner's generalised
//! birthday); with these it takes about 2^90.

use base::{Domain, Hasher};
use borsh::BorshSerialize;

use crate::record::{Key, Record};

const PURPOSE: Domain = Domain::new("directory record v1");
pub(crate) const WORDS: usize = 32;

/// The sum of a set of records.
#[derive(Clone)]
pub(crate) struct Sum {
    words: [u64; WORDS],
    /// Starting one costs as much as hashing a record.
    hasher: Hasher,
    buffer: Vec<u8>,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum { words: [0; WORDS], hasher: Hasher::new(PURPOSE), buffer: Vec::new() }
    }
}

impl Sum {
    /// A sum that was written down.
    pub(crate) fn of(words: [u64; WORDS]) -> Sum {
        Sum { words, ..Sum::default() }
    }

    pub(crate) fn add(&mut self, key: &Key, record: &Record) {
        for (word, term) in self.terms(key, record).into_iter().enumerate() {
            self.words[word] = self.words[word].wrapping_add(term);
        }
    }

    pub(crate) fn subtract(&mut self, key: &Key, record: &Record) {
        for (word, term) in self.terms(key, record).into_iter().enumerate() {
            self.words[word] = self.words[word].wrapping_sub(term);
        }
    }

    pub(crate) fn words(&self) -> &[u64; WORDS] {
        &self.words
    }

    fn terms(&mut self, key: &Key, record: &Record) -> [u64; WORDS] {
        self.buffer.clear();
        let written = key.serialize(&mut self.buffer).and(record.serialize(&mut self.buffer));
        written.expect("a record has canonical bytes");
        self.hasher.restart();
        self.hasher.update(&self.buffer);
        let mut bytes = [0; 8 * WORDS];
        self.hasher.fill(&mut bytes);
        let mut terms = [0; WORDS];
        for (term, chunk) in terms.iter_mut().zip(bytes.chunks_exact(8)) {
            *term = u64::from_le_bytes(chunk.try_into().expect("it has eight bytes"));
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use base::FileId;
    use lease::Name;

    use super::*;
    use crate::record::{Entry, Sort};

    fn record(text: &str) -> (Key, Record) {
        let key = Key::entry(&FileId::ROOT, &Name::new(text.as_bytes()).unwrap());
        (key, Record::Entry(Entry { file: FileId::ROOT, sort: Sort::Regular }))
    }

    #[test]
    fn a_set_has_one_sum_however_it_came_about() {
        let (a, b) = (record("a"), record("b"));
        let mut one = Sum::default();
        one.add(&a.0, &a.1);
        let mut other = Sum::default();
        other.add(&b.0, &b.1);
        other.add(&a.0, &a.1);
        assert_ne!(one.words(), other.words());
        other.subtract(&b.0, &b.1);
        assert_eq!(one.words(), other.words());
        assert_ne!(one.words(), &[0; WORDS]);
    }
}
