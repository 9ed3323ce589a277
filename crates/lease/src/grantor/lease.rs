//! A lease as the grantor keeps it, in as few bytes as can be: a million of these are kept.

use base::Instant;
use borsh::{BorshDeserialize, BorshSerialize};

use crate::{Kind, Scope, message::Want};

#[derive(Clone, Debug, PartialEq, Eq, Hash, BorshSerialize, BorshDeserialize)]
pub(super) struct Lease {
    /// The serial number, times four, plus the kind.
    mark: u64,
    pub(super) until: Instant,
    /// Scopes inside that are not covered. At most [`super::EXCEPT_MAX`]; mostly none.
    #[expect(clippy::box_collection, reason = "one word instead of three where there is none")]
    except: Option<Box<Vec<Scope>>>,
}

const _: () = assert!(size_of::<Lease>() == 24);

impl Lease {
    pub(super) fn new(kind: Kind, serial: u64, until: Instant, except: Vec<Scope>) -> Lease {
        let except = (!except.is_empty()).then(|| Box::new(except));
        Lease { mark: serial * 4 + kind as u64, until, except }
    }

    pub(super) fn kind(&self) -> Kind {
        Kind::ALL[(self.mark % 4) as usize]
    }

    pub(super) fn serial(&self) -> u64 {
        self.mark / 4
    }

    pub(super) fn set_kind(&mut self, kind: Kind) {
        self.mark = self.serial() * 4 + kind as u64;
    }

    pub(super) fn set_serial(&mut self, serial: u64) {
        self.mark = serial * 4 + self.kind() as u64;
    }

    /// Scopes inside that are not covered.
    pub(super) fn except(&self) -> &[Scope] {
        self.except.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Takes a scope inside out of it.
    pub(super) fn except_also(&mut self, part: &Scope) {
        let except = self.except.get_or_insert_default();
        except.retain(|inner| !part.contains(inner));
        except.push(part.clone());
    }

    /// Covers all of its scope from now on.
    pub(super) fn except_nothing(&mut self) {
        self.except = None;
    }

    /// Whether granting this want on the same scope instead would take something from its holder: it is
    /// stronger, but not everywhere.
    pub(super) fn would_shrink(&self, want: &Want) -> bool {
        let is_enough = self.kind().covers(want.kind) && self.covers(&want.scope);
        !want.kind.covers(self.kind()) && !is_enough
    }

    /// Whether it covers any of this scope, which its own scope meets.
    pub(super) fn touches(&self, scope: &Scope) -> bool {
        !self.except().iter().any(|except| except.contains(scope))
    }

    /// Whether it covers all of this scope, which its own scope contains.
    pub(super) fn covers(&self, scope: &Scope) -> bool {
        !self.except().iter().any(|except| except.meets(scope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_kind_do_not_disturb_each_other() {
        for kind in Kind::ALL {
            let mut lease = Lease::new(kind, 7, Instant::END, Vec::new());
            assert_eq!((lease.serial(), lease.kind()), (7, kind));
            lease.set_serial(u64::MAX / 4);
            assert_eq!((lease.serial(), lease.kind()), (u64::MAX / 4, kind));
            lease.set_kind(Kind::Read);
            assert_eq!((lease.serial(), lease.kind()), (u64::MAX / 4, Kind::Read));
        }
    }
}
