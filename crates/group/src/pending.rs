//! Commands that wait for a place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base::{Digest, Domain, Instant, PublicKey};

const COMMAND: Domain = Domain::new("group command v1");

/// The most commands of a batch that one has handed in: all members look at each, and others wait meanwhile.
const EACH_MAX: usize = 128;
/// The most commands of a batch, and bytes of them, of all together who do not sit in the group; but one always.
const OTHERS_MAX: Room = Room { count: 32, bytes: 128 << 10 };
/// In turn each may have so many bytes in a batch.
const TURN_BYTES: usize = 64 << 10;

/// Commands that are not decided yet, by who has handed them in, in the order in which they came, each once. What
/// comes when it is full is dropped; who sent it will say it again.
///
/// Each may hold as much as there is room left, so whoever comes next finds room. Those who do not sit in the group
/// have half of the room, so that it never lacks for those who do.
#[derive(Debug)]
pub(crate) struct Pending {
    room: Room,
    /// None is empty.
    parts: BTreeMap<PublicKey, Part>,
    /// How many there are of each. The same may be in several parts: nobody can hold up what another wants by wanting
    /// it first.
    counts: BTreeMap<Digest, usize>,
    /// Whose command was decided last: the turns begin with the one after.
    last: Option<PublicKey>,
    /// The number of the command that comes next. Numbers only grow.
    next: u64,
}

/// Commands, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    count: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Part {
    is_favoured: bool,
    bytes: usize,
    /// By number.
    commands: BTreeMap<u64, Command>,
    numbers: BTreeMap<Digest, u64>,
}

#[derive(Debug)]
struct Command {
    digest: Digest,
    bytes: Vec<u8>,
    came_at: Instant,
}

impl Pending {
    pub(crate) fn new(count_max: usize, bytes_max: usize) -> Pending {
        let room = Room { count: count_max, bytes: bytes_max };
        Pending { room, parts: BTreeMap::new(), counts: BTreeMap::new(), last: None, next: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.values().map(|part| part.commands.len()).sum()
    }

    /// Whether somebody has handed this in.
    pub(crate) fn has(&self, command: &[u8]) -> bool {
        !self.is_empty() && self.counts.contains_key(&Digest::of(COMMAND, command))
    }

    /// Whether there is room for what somebody hands in, or it is there already.
    pub(crate) fn push(
        &mut self,
        now: Instant,
        from: PublicKey,
        is_favoured: bool,
        bytes: Vec<u8>,
    ) -> bool {
        let digest = Digest::of(COMMAND, &bytes);
        let part = self.parts.get(&from);
        if part.is_some_and(|part| part.numbers.contains_key(&digest)) {
            return true;
        }
        let left = self.left(is_favoured);
        let has = part.map_or(Room::default(), Part::room);
        let has_room = has.count < left.count && has.bytes + bytes.len() <= left.bytes;
        if has_room {
            *self.counts.entry(digest).or_default() += 1;
            let part = self.parts.entry(from).or_default();
            part.is_favoured = is_favoured;
            part.push(self.next, Command { digest, bytes, came_at: now });
            self.next += 1;
        }
        has_room
    }

    /// How much room is left for those who sit in the group, or for those who do not.
    fn left(&self, is_favoured: bool) -> Room {
        let taken = |is_counted: &dyn Fn(&Part) -> bool| {
            let parts = self.parts.values().filter(|part| is_counted(part)).map(Part::room);
            parts.fold(Room::default(), |all, one| Room {
                count: all.count + one.count,
                bytes: all.bytes + one.bytes,
            })
        };
        let less = |all: Room, taken: Room| Room {
            count: all.count.saturating_sub(taken.count),
            bytes: all.bytes.saturating_sub(taken.bytes),
        };
        let all = less(self.room, taken(&|_| true));
        if is_favoured {
            return all;
        }
        let Room { count, bytes } = self.room;
        let half = Room { count: count.div_ceil(2), bytes: bytes.div_ceil(2) };
        let others = less(half, taken(&|part| !part.is_favoured));
        Room { count: all.count.min(others.count), bytes: all.bytes.min(others.bytes) }
    }

    /// The next ones, as far as they fit behind those that go ahead of them: of each who has handed some in, in turn.
    pub(crate) fn first(
        &self,
        ahead: Vec<Vec<u8>>,
        count_max: usize,
        bytes_max: usize,
    ) -> Vec<Vec<u8>> {
        use std::ops::Bound::{Excluded, Unbounded};
        let after = self.last.map_or(Unbounded, Excluded);
        let before = self.parts.iter().take_while(|(key, _)| Some(**key) <= self.last);
        let mut turns: VecDeque<_> = self
            .parts
            .range((after, Unbounded))
            .chain(before)
            .map(|(_, part)| (part, part.commands.values().take(EACH_MAX).peekable(), 0))
            .collect();
        let mut chosen: BTreeSet<Digest> =
            ahead.iter().map(|command| Digest::of(COMMAND, command)).collect();
        let mut left = bytes_max.saturating_sub(ahead.iter().map(Vec::len).sum());
        let mut first = ahead;
        let mut others = Room::default();
        while let Some((part, mut commands, mut credit)) = turns.pop_front() {
            credit += TURN_BYTES;
            let mut is_over = false;
            while let Some(command) = commands.next_if(|next| next.bytes.len() <= credit) {
                let Command { digest, bytes: command, .. } = command;
                is_over = first.len() >= count_max
                    || command.len() > left
                    || !part.is_favoured && !others.may_have(command.len());
                if is_over {
                    break;
                }
                if chosen.insert(*digest) {
                    (credit, left) = (credit - command.len(), left - command.len());
                    if !part.is_favoured {
                        others.count += 1;
                        others.bytes += command.len();
                    }
                    first.push(command.clone());
                }
            }
            if !is_over && commands.peek().is_some() {
                turns.push_back((part, commands, credit));
            }
        }
        first
    }

    /// The one of at most so many bytes that has waited longest: its number, and since when it is here.
    pub(crate) fn oldest(&self, bytes_max: usize) -> Option<(u64, Instant)> {
        let fits = |(_, command): &(&u64, &Command)| command.bytes.len() <= bytes_max;
        let oldest = self.parts.values().filter_map(|part| part.commands.iter().find(fits));
        let (number, command) = oldest.min_by_key(|(number, _)| **number)?;
        Some((*number, command.came_at))
    }

    /// The command of this number, as long as it waits.
    pub(crate) fn get(&self, number: u64) -> Option<&Vec<u8>> {
        let command = self.parts.values().find_map(|part| part.commands.get(&number))?;
        Some(&command.bytes)
    }

    /// It was decided. Who says it again has not heard the answer, and it will be decided again: that it
    /// takes effect once is the business of what is replicated.
    pub(crate) fn on_decided(&mut self, command: &[u8]) {
        if self.counts.is_empty() {
            return;
        }
        self.take(&Digest::of(COMMAND, command));
    }

    /// What has this number waits no longer, whoever wants it.
    pub(crate) fn remove(&mut self, number: u64) {
        let command = self.parts.values().find_map(|part| part.commands.get(&number));
        if let Some(digest) = command.map(|command| command.digest) {
            self.take(&digest);
        }
    }

    fn take(&mut self, digest: &Digest) {
        if self.counts.remove(digest).is_none() {
            return;
        }
        for (key, part) in &mut self.parts {
            if part.remove(digest) {
                self.last = Some(*key);
            }
        }
        self.parts.retain(|_, part| !part.commands.is_empty());
    }
}

impl Room {
    /// Whether so many bytes more of those who do not sit in the group may be in a batch that has these of them.
    fn may_have(self, bytes: usize) -> bool {
        let fits = self.count < OTHERS_MAX.count && self.bytes + bytes <= OTHERS_MAX.bytes;
        self.count == 0 || fits
    }
}

impl Part {
    fn room(&self) -> Room {
        Room { count: self.commands.len(), bytes: self.bytes }
    }

    fn push(&mut self, number: u64, command: Command) {
        self.bytes += command.bytes.len();
        self.numbers.insert(command.digest, number);
        self.commands.insert(number, command);
    }

    /// Whether it was there.
    fn remove(&mut self, digest: &Digest) -> bool {
        let command = self.numbers.remove(digest).and_then(|number| self.commands.remove(&number));
        self.bytes -= command.as_ref().map_or(0, |command| command.bytes.len());
        command.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    fn who(number: u8) -> PublicKey {
        PublicKey::from_bytes([number; 32])
    }

    /// What a member hands in.
    fn push(pending: &mut Pending, from: u8, command: &[u8]) -> bool {
        pending.push(secs(1), who(from), true, command.to_vec())
    }

    #[test]
    fn commands_wait_once_and_in_order_until_they_are_decided() {
        let mut pending = Pending::new(6, 100);
        for command in [b"a", b"b", b"a", b"c"] {
            assert!(push(&mut pending, 1, command));
        }
        assert!(!push(&mut pending, 1, b"d"), "as much is left for others");
        assert_eq!(pending.first(Vec::new(), 2, 100), [b"a", b"b"]);
        assert_eq!(pending.first(Vec::new(), 9, 1), [b"a"]);
        pending.on_decided(b"a");
        assert_eq!(pending.first(Vec::new(), 9, 9), [b"b", b"c"]);
        pending.on_decided(b"x");
        assert!(push(&mut pending, 1, b"d"));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut pending = Pending::new(100, 20);
        assert!(push(&mut pending, 1, &[1; 8]));
        assert!(!push(&mut pending, 1, &[2; 5]));
        assert!(push(&mut pending, 2, &[2; 5]));
        pending.on_decided(&[1; 8]);
        assert!(push(&mut pending, 1, &[2; 5]));
        assert_eq!(
            (pending.len(), pending.first(Vec::new(), 9, 99).len()),
            (2, 1),
            "the same, twice"
        );
        pending.on_decided(&[2; 5]);
        assert!(pending.is_empty() && pending.counts.is_empty());
    }

    #[test]
    fn those_who_hand_in_much_have_no_more_of_a_batch_than_the_others() {
        let mut pending = Pending::new(10_000, 1 << 30);
        for number in 0..1_000_u32 {
            assert!(pending.push(secs(1), who(1), false, number.to_be_bytes().to_vec()));
        }
        (0..30).for_each(|byte| assert!(push(&mut pending, 2, &[byte; 1 << 20])));
        assert!(push(&mut pending, 3, b"mine") && push(&mut pending, 3, b"and this"));
        let batch = pending.first(Vec::new(), 4_096, 4 << 20);
        let has = |command: &[u8]| batch.iter().any(|one| one == command);
        assert!(has(b"mine") && has(b"and this"));
        assert_eq!(batch.iter().filter(|one| one.len() == 4).count(), OTHERS_MAX.count + 1);
        assert_eq!(batch.iter().filter(|one| one.len() == 1 << 20).count(), 3);
    }

    #[test]
    fn when_only_one_command_fits_all_have_their_turn() {
        let mut pending = Pending::new(1_000, 1 << 20);
        let mut decided = BTreeMap::<u8, usize>::new();
        for round in 0..60_u8 {
            (1..7).for_each(|from| assert!(push(&mut pending, from, &[from, round])));
            let first = pending.first(Vec::new(), 1, 1 << 20).remove(0);
            *decided.entry(first[0]).or_default() += 1;
            pending.on_decided(&first);
        }
        assert!(decided.len() == 6 && decided.values().all(|count| *count == 10), "{decided:?}");
    }

    #[test]
    fn nobody_holds_up_what_another_wants_by_wanting_it_too() {
        let mut pending = Pending::new(10_000, 1 << 20);
        (0..300_u32).for_each(|number| assert!(push(&mut pending, 1, &number.to_be_bytes())));
        assert!(push(&mut pending, 1, b"mine") && push(&mut pending, 2, b"mine"));
        assert!(pending.first(Vec::new(), 4_096, 1 << 20).iter().any(|one| one == b"mine"));
    }

    #[test]
    fn those_who_do_not_sit_in_the_group_leave_room_for_those_who_do() {
        let mut pending = Pending::new(100, 1 << 20);
        for number in 0..1_000_u32 {
            pending.push(secs(1), who(number as u8), false, number.to_be_bytes().to_vec());
        }
        assert_eq!(pending.len(), 50);
        assert!((0..20).all(|number| push(&mut pending, 255, &[number])));
    }

    #[test]
    fn all_together_never_have_more_than_there_is_room_for() {
        let mut pending = Pending::new(100, 1_000);
        for number in 0..200_u8 {
            push(&mut pending, number, &[number; 7]);
        }
        for number in 0..200_u8 {
            pending.push(secs(1), who(number), false, vec![number; 9]);
        }
        let bytes: usize = pending.parts.values().map(|part| part.bytes).sum();
        assert!(pending.len() == 100 && bytes <= 1_000, "{} and {bytes}", pending.len());
    }

    #[test]
    fn what_goes_ahead_comes_first_and_once_and_takes_room_from_the_rest() {
        let mut pending = Pending::new(9, 100);
        for command in [b"a", b"b", b"c"] {
            push(&mut pending, 1, command);
        }
        let ahead = || vec![b"x".to_vec(), b"b".to_vec()];
        assert_eq!(pending.first(ahead(), 9, 9), [b"x", b"b", b"a", b"c"]);
        assert_eq!(pending.first(ahead(), 3, 9), [b"x", b"b", b"a"]);
        assert_eq!(pending.first(ahead(), 9, 2), [b"x", b"b"]);
    }

    #[test]
    fn the_oldest_that_is_small_enough_is_known_until_it_waits_no_longer() {
        let mut pending = Pending::new(9, 100);
        pending.push(secs(1), who(1), true, vec![0; 9]);
        pending.push(secs(2), who(2), true, vec![1; 3]);
        pending.push(secs(3), who(3), true, vec![2; 3]);
        let (number, came_at) = pending.oldest(5).unwrap();
        assert_eq!((pending.get(number), came_at), (Some(&vec![1; 3]), secs(2)));
        pending.remove(number);
        assert_eq!(pending.get(number), None);
        assert_eq!(pending.oldest(5).map(|(_, came_at)| came_at), Some(secs(3)));
        assert_eq!(pending.oldest(2), None);
    }
}
