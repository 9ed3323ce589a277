//! What a pager is told, and what it wants done.

/// Names one lookup; whoever asks chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// What can happen to a pager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<K, V> {
    /// A task needs an object in memory and will wait for it.
    Lookup {
        /// Names this lookup in the answer.
        token: Token,
        /// The object.
        key: K,
    },
    /// A task lets go of an object that it was granted.
    Drop {
        /// The object.
        key: K,
    },
    /// A task has changed an object that it was granted. Never blocks, has no answer (L58).
    SetDirty {
        /// The object.
        key: K,
    },
    /// The store's answer to [`Output::Load`].
    Loaded {
        /// The object.
        key: K,
        /// Its value. If objects may be absent, absence is a value too.
        value: V,
    },
    /// The store's answer to [`Output::Write`].
    Cleaned {
        /// The object.
        key: K,
    },
}

/// What a pager can want done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<K, V> {
    /// The object of this lookup is in memory and stays there until the task drops it.
    Granted {
        /// The lookup.
        token: Token,
        /// The object.
        key: K,
    },
    /// Too many lookups wait; this one doesn't. Ask again when [`Pager::is_open`](super::Pager::is_open).
    Refused {
        /// The lookup.
        token: Token,
    },
    /// Load this object from the store.
    Load {
        /// The object.
        key: K,
    },
    /// Write this object to the store.
    Write {
        /// The object.
        key: K,
        /// Its value now; it may change in memory while it is being written.
        value: V,
    },
    /// The object is no longer in memory. The store has it as it was.
    Discarded {
        /// The object.
        key: K,
        /// Its value, should its memory be of use.
        value: V,
    },
}

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// On its way from the store, for a lookup in 9F and those that have joined it.
    Loading,
    /// 9B: a task holds it.
    Referenced,
    /// 9C: nobody holds it, and the store does not have it as it is.
    Dirty,
    /// 9D: nobody holds it, and it could go.
    Clean,
    /// 9E: nobody holds it, and it is being written.
    Cleaning,
}
