//! Commands that wait for a place.

use std::collections::BTreeMap;

use base::{Digest, Domain, Instant};

const COMMAND: Domain = Domain::new("group command v1");

/// Commands that are not decided yet, in the order in which they came, each once. What comes when it is full
/// is dropped; who sent it will say it again.
#[derive(Debug)]
pub(crate) struct Pending {
    count_max: usize,
    bytes_max: usize,
    bytes: usize,
    /// By number, which only grows.
    commands: BTreeMap<u64, Command>,
    numbers: BTreeMap<Digest, u64>,
    next: u64,
}

#[derive(Debug)]
struct Command {
    digest: Digest,
    bytes: Vec<u8>,
    came_at: Instant,
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
    pub(crate) fn push(&mut self, now: Instant, bytes: Vec<u8>) -> bool {
        let digest = Digest::of(COMMAND, &bytes);
        if self.numbers.contains_key(&digest) {
            return true;
        }
        let is_full =
            self.commands.len() >= self.count_max || self.bytes + bytes.len() > self.bytes_max;
        if is_full {
            return false;
        }
        self.bytes += bytes.len();
        self.numbers.insert(digest, self.next);
        self.commands.insert(self.next, Command { digest, bytes, came_at: now });
        self.next += 1;
        true
    }

    /// The first ones, as far as they fit behind those that go ahead of them.
    pub(crate) fn first(
        &self,
        ahead: Vec<Vec<u8>>,
        count_max: usize,
        bytes_max: usize,
    ) -> Vec<Vec<u8>> {
        let mut bytes = ahead.iter().map(Vec::len).sum::<usize>();
        let commands = self.commands.values().map(|command| &command.bytes);
        let commands = commands.filter(|command| !ahead.contains(command));
        let fit = commands.take(count_max.saturating_sub(ahead.len())).take_while(|command| {
            bytes += command.len();
            bytes <= bytes_max
        });
        let fit: Vec<Vec<u8>> = fit.cloned().collect();
        ahead.into_iter().chain(fit).collect()
    }

    /// The one of at most so many bytes that has waited longest: its number, and since when it is here.
    pub(crate) fn oldest(&self, bytes_max: usize) -> Option<(u64, Instant)> {
        let mut commands = self.commands.iter();
        let (number, command) = commands.find(|(_, command)| command.bytes.len() <= bytes_max)?;
        Some((*number, command.came_at))
    }

    /// The command of this number, as long as it waits.
    pub(crate) fn get(&self, number: u64) -> Option<&Vec<u8>> {
        self.commands.get(&number).map(|command| &command.bytes)
    }

    /// It was decided. Who says it again has not heard the answer, and it will be decided again: that it
    /// takes effect once is the business of what is replicated.
    pub(crate) fn on_decided(&mut self, command: &[u8]) {
        if let Some(number) = self.numbers.get(&Digest::of(COMMAND, command)) {
            self.remove(*number);
        }
    }

    /// It waits no longer.
    pub(crate) fn remove(&mut self, number: u64) {
        if let Some(Command { digest, bytes, .. }) = self.commands.remove(&number) {
            self.numbers.remove(&digest);
            self.bytes -= bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    #[test]
    fn commands_wait_once_and_in_order_until_they_are_decided() {
        let mut pending = Pending::new(3, 100);
        for command in [b"a", b"b", b"a", b"c"] {
            assert!(pending.push(secs(1), command.to_vec()));
        }
        assert!(!pending.push(secs(1), b"d".to_vec()), "it is full");
        assert_eq!(pending.first(Vec::new(), 2, 100), [b"a", b"b"]);
        assert_eq!(pending.first(Vec::new(), 9, 1), [b"a"]);
        pending.on_decided(b"a");
        assert_eq!(pending.first(Vec::new(), 9, 9), [b"b", b"c"]);
        pending.on_decided(b"x");
        assert!(pending.push(secs(1), b"d".to_vec()));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut pending = Pending::new(100, 10);
        assert!(pending.push(secs(1), vec![1; 8]));
        assert!(!pending.push(secs(1), vec![2; 3]));
        pending.on_decided(&[1; 8]);
        assert!(pending.push(secs(1), vec![2; 3]));
        assert!(!pending.is_empty());
    }

    #[test]
    fn what_goes_ahead_comes_first_and_once_and_takes_room_from_the_rest() {
        let mut pending = Pending::new(9, 100);
        for command in [b"a", b"b", b"c"] {
            pending.push(secs(1), command.to_vec());
        }
        let ahead = || vec![b"x".to_vec(), b"b".to_vec()];
        assert_eq!(pending.first(ahead(), 9, 9), [b"x", b"b", b"a", b"c"]);
        assert_eq!(pending.first(ahead(), 3, 9), [b"x", b"b", b"a"]);
        assert_eq!(pending.first(ahead(), 9, 2), [b"x", b"b"]);
    }

    #[test]
    fn the_oldest_that_is_small_enough_is_known_until_it_waits_no_longer() {
        let mut pending = Pending::new(9, 100);
        pending.push(secs(1), vec![0; 9]);
        pending.push(secs(2), vec![1; 3]);
        pending.push(secs(3), vec![2; 3]);
        let (number, came_at) = pending.oldest(5).unwrap();
        assert_eq!((pending.get(number), came_at), (Some(&vec![1; 3]), secs(2)));
        pending.remove(number);
        assert_eq!(pending.get(number), None);
        assert_eq!(pending.oldest(5).map(|(_, came_at)| came_at), Some(secs(3)));
        assert_eq!(pending.oldest(2), None);
    }
}
