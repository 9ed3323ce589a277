//! Bytes that do not stay in memory when they are no longer needed.

use std::{hint::black_box, ops::Deref};

/// Bytes that are overwritten when dropped, and never printed. They never grow, so that none stay behind
/// where they were before.
pub(crate) struct Wiped(Vec<u8>);

impl Wiped {
    /// None yet, and room for so many.
    pub(crate) fn with_room(count: usize) -> Wiped {
        Wiped(Vec::with_capacity(count))
    }

    /// Takes one more, if there is room. Whether there was.
    pub(crate) fn push(&mut self, byte: u8) -> bool {
        let has_room = self.0.len() < self.0.capacity();
        if has_room {
            self.0.push(byte);
        }
        has_room
    }

    /// Takes more.
    ///
    /// # Panics
    ///
    /// If there is no room for them: whoever makes bytes knows how many.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        assert!(self.0.capacity() - self.0.len() >= bytes.len(), "secrets are never moved");
        self.0.extend_from_slice(bytes);
    }
}

impl Deref for Wiped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Overwrites bytes; the compiler has to believe that somebody still looks at them.
pub(crate) fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    black_box(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wiped_bytes_are_zero_and_no_more_come_in_than_there_is_room_for() {
        let mut bytes = [7; 9];
        wipe(&mut bytes);
        assert_eq!(bytes, [0; 9]);
        let mut wiped = Wiped::with_room(2);
        let room = wiped.0.capacity();
        for byte in 0..room {
            assert!(wiped.push(byte as u8));
        }
        assert!(!wiped.push(9));
        assert_eq!(wiped.len(), room);
    }
}
