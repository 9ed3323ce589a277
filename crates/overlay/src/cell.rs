//! The name of a cell.

use std::fmt;

use base::{Digest, Domain, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize};

use crate::refused::Refused;

const NAME: Domain = Domain::new("name of a cell v1");

/// The name of a cell: a digest of its root key, so nobody else can speak for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Cell(Digest);

impl Cell {
    /// The cell with this root key.
    pub fn of(authority: &PublicKey) -> Cell {
        Cell(Digest::of(NAME, authority.as_bytes()))
    }

    /// The name as a digest.
    pub const fn digest(&self) -> &Digest {
        &self.0
    }
}

/// Refuses what is of another cell.
pub(crate) fn check_cell(found: &PublicKey, wanted: &PublicKey) -> Result<(), Refused> {
    match found == wanted {
        true => Ok(()),
        false => Err(Refused::CellOther { found: Cell::of(found), wanted: Cell::of(wanted) }),
    }
}

impl fmt::Display for Cell {
    /// Its first 16 digits: enough for people to tell two cells apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_bytes()[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cell({self})")
    }
}
