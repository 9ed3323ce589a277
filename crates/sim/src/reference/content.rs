//! A file's bytes, with holes.

use std::{collections::BTreeMap, rc::Rc};

const PAGE: u64 = 1024;

/// Bytes from 0 to `size`; what was never written is zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    size: u64,
    /// No byte at or after `size` is other than zero.
    pages: BTreeMap<u64, Rc<[u8; PAGE as usize]>>,
}

/// The part of a page that lies between two offsets: its page, where it starts there, its length.
fn pieces(start: u64, end: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = start;
    std::iter::from_fn(move || {
        let (page, offset) = (at / PAGE, at % PAGE);
        let len = (PAGE - offset).min(end.saturating_sub(at));
        at += len;
        (len > 0).then_some((page, offset as usize, len as usize))
    })
}

impl Content {
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn read(&self, offset: u64, len: u64) -> Vec<u8> {
        let end = offset.saturating_add(len).min(self.size);
        let mut bytes = Vec::new();
        for (page, start, len) in pieces(offset, end) {
            match self.pages.get(&page) {
                Some(page) => bytes.extend_from_slice(&page[start..start + len]),
                None => bytes.resize(bytes.len() + len, 0),
            }
        }
        bytes
    }

    pub(super) fn write(&mut self, offset: u64, mut data: &[u8]) {
        let end = offset + data.len() as u64;
        for (page, start, len) in pieces(offset, end) {
            let (piece, rest) = data.split_at(len);
            let page = self.pages.entry(page).or_insert_with(|| Rc::new([0; PAGE as usize]));
            Rc::make_mut(page)[start..start + len].copy_from_slice(piece);
            data = rest;
        }
        self.size = self.size.max(end);
    }

    pub(super) fn resize(&mut self, size: u64) {
        if size < self.size {
            drop(self.pages.split_off(&size.div_ceil(PAGE)));
            if let Some(page) = self.pages.get_mut(&(size / PAGE)) {
                Rc::make_mut(page)[(size % PAGE) as usize..].fill(0);
            }
        }
        self.size = size;
    }

    /// What is not zero: an offset and bytes each, the same for equal contents.
    pub(super) fn runs(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let is_written =
            |(_, page): &(&u64, &Rc<[u8; PAGE as usize]>)| page.iter().any(|b| *b != 0);
        self.pages.iter().filter(is_written).map(|(at, page)| (at * PAGE, &page[..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_written_is_zero() {
        let mut content = Content::default();
        content.write(3 * PAGE - 1, b"ab");
        assert_eq!(content.size(), 3 * PAGE + 1);
        assert_eq!(content.read(3 * PAGE - 3, 99), b"\0\0ab");
        assert_eq!(content.read(content.size(), 5), b"");
        assert_eq!(content.pages.len(), 2);
    }

    #[test]
    fn what_was_cut_off_does_not_come_back() {
        for size in [0, 1, PAGE - 1, PAGE, PAGE + 1] {
            let mut content = Content::default();
            content.write(0, &[7; 3 * PAGE as usize]);
            content.resize(size);
            content.resize(3 * PAGE);
            let bytes = content.read(0, 3 * PAGE);
            assert_eq!(bytes.iter().filter(|b| **b == 7).count() as u64, size);
        }
    }

    #[test]
    fn equal_bytes_have_equal_runs() {
        let mut one = Content::default();
        one.write(0, &[0; 5000]);
        one.write(2000, b"x");
        let mut other = Content::default();
        other.write(2000, b"x");
        other.resize(5000);
        assert_eq!(one.runs().collect::<Vec<_>>(), other.runs().collect::<Vec<_>>());
    }

    #[test]
    fn the_last_byte_that_there_can_be_is_cheap() {
        let mut content = Content::default();
        content.write(i64::MAX as u64 - 1, b"z");
        assert_eq!(content.read(i64::MAX as u64 - 1, u64::MAX), b"z");
        content.resize(0);
        assert_eq!(content.pages.len(), 0);
    }
}
