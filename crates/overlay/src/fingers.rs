//! Chord's fingers: how to find a place in a cell too large to know everybody (K2, K17).
//!
//! A finger of level l points at whoever is responsible for the point 2^(63 - l) further on: level 0 looks
//! half way round, each level half as far as the one before. Levels that do not look beyond the successor
//! are not kept, so there are about log2 N.

use crate::position::Position;

/// Somebody on the ring, as somebody else remembers them: perhaps no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<T> {
    /// Where they stood.
    pub position: Position,
    /// Who they are.
    pub server: T,
}

/// Where a message goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop<T> {
    /// To the successor, which is always known, and is responsible if `is_last`.
    Successor {
        /// Whether the way ends there.
        is_last: bool,
    },
    /// Along a finger.
    Finger {
        /// Which.
        level: usize,
        /// To whom.
        link: Link<T>,
    },
}

/// The fingers of one virtual server; a new one has none (K17).
#[derive(Clone, Debug, PartialEq)]
pub struct Fingers<T> {
    /// At most [`LEVELS_MAX`], the farthest first.
    slots: Vec<Slot<T>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot<T> {
    position: Position,
    /// When it was last known to be good, in seconds on the clock of whoever runs this.
    confirmed: u32,
    server: Option<T>,
}

impl<T> Slot<T> {
    const EMPTY: Slot<T> = Slot { position: Position(0), confirmed: 0, server: None };
}

/// A finger for each bit of a position.
pub const LEVELS_MAX: usize = u64::BITS as usize;

impl<T> Default for Fingers<T> {
    fn default() -> Fingers<T> {
        Fingers { slots: Vec::new() }
    }
}

/// The point that the finger of this level looks at.
pub fn aim(from: Position, level: usize) -> Position {
    debug_assert!(level < LEVELS_MAX, "a level for each bit");
    from.on(1 << (63 - level))
}

/// How many levels look beyond the successor.
pub fn levels(from: Position, successor: Position) -> usize {
    match from.to(successor) {
        0 => 0,
        distance => distance.leading_zeros() as usize,
    }
}

impl<T: Copy> Fingers<T> {
    /// How many levels there are.
    pub fn levels(&self) -> usize {
        self.slots.len()
    }

    /// Has as many levels as look beyond the successor: new ones are empty, superfluous ones go.
    pub fn resize(&mut self, levels: usize) {
        self.slots.resize(levels.min(LEVELS_MAX), Slot::EMPTY);
    }

    /// The finger of this level, if there is one.
    pub fn get(&self, level: usize) -> Option<Link<T>> {
        let Slot { position, server, .. } = *self.slots.get(level)?;
        server.map(|server| Link { position, server })
    }

    /// Sets a finger that was just found to be good, or forgets it.
    pub fn set(&mut self, level: usize, link: Option<Link<T>>, now: u32) {
        if let Some(slot) = self.slots.get_mut(level) {
            let position = link.map_or(slot.position, |link| link.position);
            *slot = Slot { position, confirmed: now, server: link.map(|link| link.server) };
        }
    }

    /// Notes that a message went well along this finger; where it has a timer, until when (see `refresh`).
    pub fn confirm(&mut self, level: usize, now: u32) {
        if let Some(slot) = self.slots.get_mut(level) {
            slot.confirmed = now;
        }
    }

    /// When this finger was last known to be good.
    pub fn confirmed(&self, level: usize) -> u32 {
        self.slots.get(level).map_or(0, |slot| slot.confirmed)
    }

    /// The level that has not been confirmed for the longest time; of equals the farthest.
    pub fn stalest(&self) -> Option<usize> {
        let levels = self.slots.iter().enumerate();
        levels.min_by_key(|(_, slot)| slot.confirmed).map(|(level, _)| level)
    }

    /// Where a message to the server responsible for `key` goes from the server at `here`: along the finger
    /// that gets closest without passing it, else to the successor.
    pub fn next_hop(&self, here: Position, successor: Position, key: Position) -> Hop<T> {
        // From a point to itself it is all the way round: one less than nothing.
        let distance = here.to(key).wrapping_sub(1);
        if distance <= here.to(successor).wrapping_sub(1) {
            return Hop::Successor { is_last: true };
        }
        // Fingers of lower levels aim beyond the key.
        let first = distance.leading_zeros() as usize;
        for (level, slot) in self.slots.iter().enumerate().skip(first) {
            if let Some(server) = slot.server
                && here.to(slot.position).wrapping_sub(1) < distance
            {
                return Hop::Finger { level, link: Link { position: slot.position, server } };
            }
        }
        Hop::Successor { is_last: false }
    }
}

#[cfg(test)]
mod tests {
    use base::Rng;

    use super::*;
    use crate::ring::Ring;

    /// A ring of so many, each with all of its fingers.
    fn ring(seed: u64, count: usize) -> (Ring<usize>, Vec<(Position, Fingers<usize>)>) {
        let mut rng = Rng::new(seed);
        let mut ring = Ring::new();
        for index in 0..count {
            assert!(ring.insert(Position(rng.next_u64()), index));
        }
        let mut servers = vec![(Position(0), Fingers::default()); count];
        for (here, index) in ring.iter() {
            let mut fingers = Fingers::default();
            fingers.resize(levels(here, ring.after(here).unwrap().0));
            for level in 0..fingers.levels() {
                let (position, server) = ring.at_or_after(aim(here, level)).unwrap();
                fingers.set(level, Some(Link { position, server }), 0);
            }
            servers[index] = (here, fingers);
        }
        (ring, servers)
    }

    /// Who is found on the way to a key, and how many hops that takes.
    fn route(
        ring: &Ring<usize>,
        servers: &[(Position, Fingers<usize>)],
        from: usize,
        key: Position,
    ) -> (usize, usize) {
        let mut at = from;
        for hops in 1.. {
            let (here, fingers) = &servers[at];
            let (position, successor) = ring.after(*here).unwrap();
            match fingers.next_hop(*here, position, key) {
                Hop::Successor { is_last: true } => return (successor, hops),
                Hop::Successor { is_last: false } => at = successor,
                Hop::Finger { link, .. } => at = link.server,
            }
            assert!(hops < 10_000, "the way never ends");
        }
        unreachable!("a way ends");
    }

    #[test]
    fn every_way_ends_at_the_server_that_is_responsible_after_half_of_log_n_hops() {
        let (ring, servers) = ring(1, 1_024);
        let mut rng = Rng::new(2);
        let mut total = 0;
        for _ in 0..4_000 {
            let key = Position(rng.next_u64());
            let (found, hops) = route(&ring, &servers, rng.index(servers.len()), key);
            assert_eq!(found, ring.at_or_after(key).unwrap().1);
            total += hops;
        }
        let mean = f64::from(total as u32) / 4_000.0;
        assert!((5.0..7.0).contains(&mean), "{mean} hops");
    }

    #[test]
    fn ways_end_without_fingers_and_when_one_is_alone() {
        let (ring, mut servers) = ring(3, 50);
        servers.iter_mut().for_each(|(_, fingers)| *fingers = Fingers::default());
        for key in [0, 1 << 40, u64::MAX].map(Position) {
            assert_eq!(route(&ring, &servers, 7, key).0, ring.at_or_after(key).unwrap().1);
        }
        let here = servers[7].0;
        assert_eq!(route(&ring, &servers, 7, here).0, 7);
        let alone = Fingers::<usize>::default();
        let hop = alone.next_hop(Position(5), Position(5), Position(9));
        assert_eq!(hop, Hop::Successor { is_last: true });
    }

    #[test]
    fn there_are_as_many_levels_as_look_beyond_the_successor() {
        assert_eq!(levels(Position(0), Position(1 << 60)), 3);
        assert_eq!(levels(Position(0), Position((1 << 60) - 1)), 4);
        assert_eq!(levels(Position(0), Position(u64::MAX)), 0);
        assert_eq!(levels(Position(7), Position(7)), 0);
        let (_, servers) = ring(4, 4_096);
        let most = servers.iter().map(|(_, fingers)| fingers.levels()).max().unwrap();
        assert!((12..30).contains(&most), "{most}");
    }

    #[test]
    fn the_stalest_finger_is_that_which_was_confirmed_first() {
        let mut fingers = Fingers::<u32>::default();
        assert_eq!(fingers.stalest(), None);
        fingers.resize(3);
        for (level, now) in [(0, 9), (1, 4), (2, 7)] {
            fingers.set(level, None, now);
        }
        assert_eq!(fingers.stalest(), Some(1));
        fingers.confirm(1, 10);
        assert_eq!(fingers.stalest(), Some(2));
        fingers.confirm(99, 10);
        assert_eq!((fingers.confirmed(1), fingers.confirmed(99)), (10, 0));
    }
}
