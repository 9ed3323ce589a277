//! Ways of knowing, and which of them two clients may have at once.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Field;

/// How a client knows a scope.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Kind {
    /// The value does not change while I know it.
    Read,
    /// Nobody else knows it; I may change it.
    Write,
    /// I may change my own boolean of a disjunctive field (D24).
    SelfWrite,
    /// The OR of everybody else's booleans does not change while I know it (D24).
    OtherRead,
}

/// Which side of a field a kind is about. A client has at most one lease on a scope for each.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub enum Side {
    /// The value, or one's own boolean.
    Own,
    /// Everybody else's booleans.
    Others,
}

/// Whether two clients can hold two kinds on scopes that meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peace {
    /// Always.
    Always,
    /// Never.
    Never,
    /// If the booleans allow it: see `disjunction`.
    ByValue,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Read, Kind::Write, Kind::SelfWrite, Kind::OtherRead];

    /// Whether it makes sense for this field. A read of a wide scope says nothing about the
    /// disjunctive fields in it; a write of one is exclusive, and so covers them.
    pub fn fits(self, field: &Field) -> bool {
        match self {
            Kind::Read => !field.is_disjunctive(),
            Kind::Write => !field.is_disjunctive(),
            Kind::SelfWrite | Kind::OtherRead => field.is_disjunctive(),
        }
    }

    /// Whether it is the right to change something.
    pub fn is_change(self) -> bool {
        matches!(self, Kind::Write | Kind::SelfWrite)
    }

    /// Which side of a field it is about.
    pub fn side(self) -> Side {
        match self {
            Kind::OtherRead => Side::Others,
            Kind::Read | Kind::Write | Kind::SelfWrite => Side::Own,
        }
    }

    /// Whether having this makes asking for the other pointless, on the same scope.
    pub fn covers(self, other: Kind) -> bool {
        self == other || self == Kind::Write
    }

    /// How this gets on with what another client has.
    pub fn beside(self, other: Kind) -> Peace {
        use Kind::{OtherRead, Read, SelfWrite, Write};
        match (self, other) {
            (Write, _) | (_, Write) => Peace::Never,
            (Read, _) | (_, Read) => Peace::Always,
            (SelfWrite, SelfWrite) | (OtherRead, OtherRead) => Peace::Always,
            (SelfWrite, OtherRead) | (OtherRead, SelfWrite) => Peace::ByValue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conflict_matrix_is_this_table() {
        let table = [
            //          Read    Write   Self    Other
            ("Read", ["peace", "war", "peace", "peace"]),
            ("Write", ["war", "war", "war", "war"]),
            ("SelfWrite", ["peace", "war", "peace", "value"]),
            ("OtherRead", ["peace", "war", "value", "peace"]),
        ];
        for (row, kind) in table.iter().zip(Kind::ALL) {
            assert_eq!(row.0, format!("{kind:?}"));
            let words = Kind::ALL.map(|other| match kind.beside(other) {
                Peace::Always => "peace",
                Peace::Never => "war",
                Peace::ByValue => "value",
            });
            assert_eq!(words, row.1, "{kind:?}");
        }
    }

    #[test]
    fn the_matrix_is_symmetric() {
        for a in Kind::ALL {
            for b in Kind::ALL {
                assert_eq!(a.beside(b), b.beside(a));
            }
        }
    }

    #[test]
    fn disjunctive_kinds_are_for_disjunctive_fields_alone() {
        for kind in Kind::ALL {
            let disjunctive = matches!(kind, Kind::SelfWrite | Kind::OtherRead);
            assert_eq!(kind.fits(&Field::Handles), disjunctive);
            for field in [Field::Content, Field::Children, Field::Whole, Field::Tree] {
                assert_eq!(kind.fits(&field), !disjunctive, "{kind:?} {field}");
            }
        }
    }
}
