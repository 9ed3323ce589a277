//! Where the bytes of an open file are.

/// Where the bytes of a file are. What holds them in memory, and what stands for a backing file, is the shell's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Body<M, F> {
    /// At rest: wherever they are, nobody needs them now.
    #[default]
    Rest,
    /// In memory.
    Memory(M),
    /// In a backing file.
    File {
        /// The backing file.
        file: F,
        /// The file as the directory was last told of it. None if that was before it was written.
        seen: Option<Seen>,
    },
}

/// By what one sees that a backing file was written: its size and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How many bytes.
    pub size: u64,
    /// How many blocks they take on the disk. That may change by itself.
    pub blocks: u64,
    /// When it was last written, by the disk's clock.
    pub modified: (i64, i64),
}

impl Seen {
    /// How many bytes it takes on the disk.
    pub fn allocated(&self) -> u64 {
        self.blocks.saturating_mul(512)
    }

    /// Whether nothing was written between the two looks.
    pub fn is_same_content(&self, other: &Seen) -> bool {
        (self.size, self.modified) == (other.size, other.modified)
    }
}

impl<M, F> Body<M, F> {
    /// Whether nobody needs the bytes now.
    pub fn is_at_rest(&self) -> bool {
        matches!(self, Body::Rest)
    }

    /// Whether they are in a backing file.
    pub fn is_file(&self) -> bool {
        matches!(self, Body::File { .. })
    }
}
