//! When knowing everybody else's booleans gets on with somebody changing theirs (D24).
//!
//! A client may know the OR of the others' booleans if and only if one of them is true and frozen, or
//! all of them are frozen. Frozen means that its client holds no right to change it: then the grantor
//! knows the value. (Checked exhaustively for up to five clients; without "frozen" it is wrong.)

use crate::Client;

/// Whether `reader` may know the others while every one of `writers` may change its own; `truths` are
/// the clients whose boolean is frozen and true.
pub(crate) fn may_know_others(
    reader: Client,
    mut writers: impl Iterator<Item = Client>,
    mut truths: impl Iterator<Item = Client>,
) -> bool {
    truths.any(|client| client != reader) || writers.all(|client| client == reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of values and rights of a few clients: the rule allows knowing exactly when
    /// no change that a writer may make can change the OR.
    #[test]
    fn the_rule_is_neither_too_strict_nor_too_lax() {
        const CLIENTS: u32 = 5;
        for values in 0u32..1 << CLIENTS {
            for writing in 0u32..1 << CLIENTS {
                let reader = 0;
                let others = |values: u32| values & !(1 << reader) != 0;
                let in_set = |set: u32| (0..CLIENTS).filter(move |c| set >> c & 1 == 1).map(Client);
                let mut reachable = (0u32..1 << CLIENTS)
                    .filter(|flips| flips & !writing == 0)
                    .map(|flips| others(values ^ flips));
                let first = reachable.next().unwrap();
                let is_constant = reachable.all(|value| value == first);
                let frozen_truths = values & !writing;
                assert_eq!(
                    may_know_others(Client(reader), in_set(writing), in_set(frozen_truths)),
                    is_constant,
                    "values {values:05b}, writing {writing:05b}"
                );
            }
        }
    }
}
