//! Bytes as a script: what happens next is read off them, and when they end nothing more does.

/// What is left of a script.
pub(crate) struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Script<'a> {
        Script(bytes)
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next number below this.
    pub(crate) fn below(&mut self, end: usize) -> Option<usize> {
        Some(usize::from(self.byte()?) % end.max(1))
    }

    /// The next bytes, at most so many as one byte says.
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::from(self.byte()?).min(self.0.len());
        let (first, rest) = self.0.split_at(count);
        self.0 = rest;
        Some(first)
    }

    /// All that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}
