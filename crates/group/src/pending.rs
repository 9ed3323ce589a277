//! Commands that wait for a place.

use std::collections::BTreeMap;

use base::{Digest, Domain};

const COMMAND: Domain = Domain::new("group command v1");

/// Commands that are not decided yet, in the order in which they came, each once. What comes when it is full
/// is dropped; who sent it will say it again.
#[derive(Debug)]
pub(crate) struct Pending {
    count_max: usize,
    bytes_max: usize,
    bytes: usize,
    /// By number, which only grows.
    commands: BTreeMap<u64, (Digest, Vec<u8>)>,
    numbers: BTreeMap<Digest, u64>,
    next: u64,
}

impl Pending {
    pub(crate) fn new(count_max: usize, bytes_max: usize) -> Pending {
        let (commands, numbers) = Default::default();
        Pending { count_max, bytes_max, bytes: 0, commands, numbers, next: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether there is room for it, or it is there already.
    pub(crate) fn push(&mut self, command: Vec<u8>) -> bool {
        let digest = Digest::of(COMMAND, &command);
        if self.numbers.contains_key(&digest) {
            return true;
        }
        let is_full =
            self.commands.len() >= self.count_max || self.bytes + command.len() > self.bytes_max;
        if is_full {
            return false;
        }
        self.bytes += command.len();
        self.numbers.insert(digest, self.next);
        self.commands.insert(self.next, (digest, command));
        self.next += 1;
        true
    }

    /// The first ones, as far as they fit.
    pub(crate) fn first(&self, count_max: usize, bytes_max: usize) -> Vec<Vec<u8>> {
        let mut bytes = 0;
        let commands = self.commands.values().map(|(_, command)| command);
        let fit = commands.take(count_max).take_while(|command| {
            bytes += command.len();
            bytes <= bytes_max
        });
        fit.cloned().collect()
    }

    /// It was decided. Who says it again has not heard the answer, and it will be decided again: that it
    /// takes effect once is the business of what is replicated.
    pub(crate) fn on_decided(&mut self, command: &[u8]) {
        let digest = Digest::of(COMMAND, command);
        if let Some(number) = self.numbers.remove(&digest) {
            self.commands.remove(&number);
            self.bytes -= command.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_wait_once_and_in_order_until_they_are_decided() {
        let mut pending = Pending::new(3, 100);
        for command in [b"a", b"b", b"a", b"c"] {
            assert!(pending.push(command.to_vec()));
        }
        assert!(!pending.push(b"d".to_vec()), "it is full");
        assert_eq!(pending.first(2, 100), [b"a", b"b"]);
        assert_eq!(pending.first(9, 1), [b"a"]);
        pending.on_decided(b"a");
        assert_eq!(pending.first(9, 9), [b"b", b"c"]);
        pending.on_decided(b"x");
        assert!(pending.push(b"d".to_vec()));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut pending = Pending::new(100, 10);
        assert!(pending.push(vec![1; 8]));
        assert!(!pending.push(vec![2; 3]));
        pending.on_decided(&[1; 8]);
        assert!(pending.push(vec![2; 3]));
        assert!(!pending.is_empty());
    }
}
