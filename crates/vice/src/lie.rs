//! The ways to lie.

/// A way to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lie {
    /// It is two: each talks to some of the others.
    Twins,
    /// Says one thing to one and another to another.
    Equivocate,
    /// Does not say, or does not hear.
    Withhold,
    /// Offers states that nobody has, and pieces of them.
    Forge,
    /// Says wrong times.
    Time,
    /// Says old things again.
    Replay,
    /// Says more than anybody wants to hear.
    Flood,
    /// Sends bytes that are not quite right.
    Maul,
    /// Answers customers wrongly.
    Answer,
    /// Proposes what nobody asked for.
    Invent,
    /// Says what it says of a height as late as it may.
    Slow,
    /// Does not hear what somebody wants, and hears all others.
    Picky,
}

impl Lie {
    /// All of them.
    pub const ALL: [Lie; 12] = [
        Lie::Twins,
        Lie::Equivocate,
        Lie::Withhold,
        Lie::Forge,
        Lie::Time,
        Lie::Replay,
        Lie::Flood,
        Lie::Maul,
        Lie::Answer,
        Lie::Invent,
        Lie::Slow,
        Lie::Picky,
    ];
}
