//! Looks on the local network for machines that are not where they were said to be.
//!
//! What is found is only a hint. It is called, and the connection proves its key or comes to nothing; nothing else is
//! believed of it. So whoever floods the network with lies makes machines call in vain, no more often than
//! [`HINT_PAUSE`] allows, and nobody is kept from the addresses that the group knows.

mod mdns;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

use base::{Digest, Domain, PublicKey};

use crate::net::Lookout;

pub(crate) use mdns::Mdns;

const CELL: Domain = Domain::new("a cell on a local network v1");
/// How often it is seen to while somebody is missed.
const BEAT: Duration = Duration::from_millis(250);
/// And while nobody is.
const REST: Duration = Duration::from_secs(2);
/// Whoever was not missed for so long is there, or nobody wants it.
const MISSED: Duration = Duration::from_secs(90);
/// The shortest time between two hints at one machine.
const HINT_PAUSE: Duration = Duration::from_secs(1);
/// The most machines that are missed at a time; the others have to wait.
const MISSED_MAX: usize = 256;
/// The most machines that are remembered of those who were heard while somebody was missed.
const HEARD_MAX: usize = 1_024;
/// The most addresses of one machine.
const ADDRESSES_MAX: usize = 8;

/// A machine as it says that it is, or as somebody says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// Which cell it is of, in short.
    pub(crate) cell: Cell,
    /// What it is known by.
    pub(crate) key: PublicKey,
    /// Where it can be reached. At most [`ADDRESSES_MAX`].
    pub(crate) addresses: Vec<SocketAddr>,
}

/// A cell in short: enough to pass over the machines of others, and nothing that only a machine of the cell knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell([u8; 8]);

impl Cell {
    /// That of an authority.
    pub(crate) fn of(authority: &PublicKey) -> Cell {
        let digest = Digest::of(CELL, authority.as_bytes());
        Cell(digest.as_bytes().first_chunk().copied().unwrap_or_default())
    }
}

/// A way to find machines nearby.
pub(crate) trait Medium: Send {
    /// Whether to look for others, from now on.
    fn look(&mut self, looks: bool);
    /// What was found since this was last asked. Called often, and so quick.
    fn found(&mut self) -> Vec<Notice>;
}

/// Where it is told whom a network can't reach.
#[derive(Clone, Debug)]
pub(crate) struct Missing(SyncSender<PublicKey>);

impl Missing {
    /// This one. It is said again as long as it is so.
    pub(crate) fn tell(&self, key: &PublicKey) {
        _ = self.0.try_send(*key);
    }
}

/// Has those looked for whom a network can't reach, for as long as it is there.
pub(crate) fn start(cell: Cell, mut medium: impl Medium + 'static, lookout: Lookout) {
    let (tell, told) = sync_channel(MISSED_MAX);
    lookout.report(Missing(tell));
    thread::spawn(move || {
        let mut search = Search::new(cell);
        while let Some(missed) = wait(&told, search.is_on()) {
            let now = Instant::now();
            missed.into_iter().for_each(|key| search.miss(now, key));
            search.rest(now);
            medium.look(search.is_on());
            medium.found().into_iter().for_each(|notice| search.hear(notice));
            for (key, addresses) in search.hints(now) {
                lookout.hint(&key, &addresses);
            }
        }
    });
}

/// Who is missed now. None when the network is gone.
fn wait(told: &Receiver<PublicKey>, is_on: bool) -> Option<Vec<PublicKey>> {
    match told.recv_timeout(if is_on { BEAT } else { REST }) {
        Ok(first) => Some(std::iter::once(first).chain(told.try_iter()).take(MISSED_MAX).collect()),
        Err(RecvTimeoutError::Timeout) => Some(Vec::new()),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

/// Who is looked for, and what was heard of whom.
struct Search {
    cell: Cell,
    /// When somebody was last missed. At most [`MISSED_MAX`].
    missed: BTreeMap<PublicKey, Instant>,
    /// What was heard meanwhile. At most [`HEARD_MAX`].
    heard: BTreeMap<PublicKey, Heard>,
}

struct Heard {
    addresses: Vec<SocketAddr>,
    /// Nobody was told yet.
    is_news: bool,
    told: Option<Instant>,
}

impl Search {
    fn new(cell: Cell) -> Search {
        Search { cell, missed: BTreeMap::new(), heard: BTreeMap::new() }
    }

    fn is_on(&self) -> bool {
        !self.missed.is_empty()
    }

    fn miss(&mut self, now: Instant, key: PublicKey) {
        if self.missed.contains_key(&key) || self.missed.len() < MISSED_MAX {
            self.missed.insert(key, now);
        }
    }

    /// Stops looking for those who are not missed any more.
    fn rest(&mut self, now: Instant) {
        self.missed.retain(|_, missed| now.duration_since(*missed) < MISSED);
        if !self.is_on() {
            self.heard.clear();
        }
    }

    fn hear(&mut self, Notice { cell, key, addresses }: Notice) {
        let has_room = self.heard.contains_key(&key) || self.heard.len() < HEARD_MAX;
        if cell != self.cell || addresses.is_empty() || !has_room {
            return;
        }
        let none = Heard { addresses: Vec::new(), is_news: false, told: None };
        let heard = self.heard.entry(key).or_insert(none);
        if heard.addresses != addresses {
            (heard.addresses, heard.is_news) = (addresses, true);
        }
    }

    /// Where those may be who are missed, if that is news.
    fn hints(&mut self, now: Instant) -> Vec<(PublicKey, Vec<SocketAddr>)> {
        let mut hints = Vec::new();
        for (key, heard) in &mut self.heard {
            let is_late = heard.told.is_none_or(|told| now.duration_since(told) >= HINT_PAUSE);
            if heard.is_news && is_late && self.missed.contains_key(key) {
                (heard.is_news, heard.told) = (false, Some(now));
                hints.push((*key, heard.addresses.clone()));
            }
        }
        hints
    }
}

/// Where machines of any cell may be, as far as somebody says within this time. At most so many.
pub(crate) fn look_around(
    mut medium: impl Medium,
    patience: Duration,
    count_max: usize,
) -> Vec<SocketAddr> {
    let start = Instant::now();
    let mut found = Vec::new();
    medium.look(true);
    while start.elapsed() < patience && found.len() < count_max {
        for address in medium.found().into_iter().flat_map(|notice| notice.addresses) {
            if !found.contains(&address) {
                found.push(address);
            }
        }
        thread::sleep(BEAT);
    }
    found.truncate(count_max);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PublicKey {
        PublicKey::from_bytes([byte; 32])
    }

    fn notice(cell: u8, machine: u8) -> Notice {
        let addresses = vec![SocketAddr::from(([10, 0, 0, machine], 7))];
        Notice { cell: Cell::of(&key(cell)), key: key(machine), addresses }
    }

    #[test]
    fn only_machines_of_the_cell_that_are_missed_are_hinted_at_and_not_too_often() {
        let (mut search, now) = (Search::new(Cell::of(&key(9))), Instant::now());
        search.hear(notice(9, 1));
        search.hear(notice(8, 2));
        search.hear(Notice { addresses: Vec::new(), ..notice(9, 3) });
        assert_eq!(search.hints(now), [], "nobody is missed");
        [1, 2, 3].into_iter().for_each(|machine| search.miss(now, key(machine)));
        assert_eq!(search.hints(now), [(key(1), notice(9, 1).addresses)]);
        search.hear(notice(9, 1));
        assert_eq!(search.hints(now + HINT_PAUSE), [], "that is no news");
        let elsewhere = Notice { addresses: notice(9, 7).addresses, ..notice(9, 1) };
        search.hear(elsewhere.clone());
        assert_eq!(search.hints(now + HINT_PAUSE / 2), [], "too soon");
        assert_eq!(search.hints(now + HINT_PAUSE), [(key(1), elsewhere.addresses)]);
    }

    #[test]
    fn who_is_missed_is_looked_for_until_it_is_not_missed_any_more_and_so_are_not_too_many() {
        let (mut search, now) = (Search::new(Cell::of(&key(9))), Instant::now());
        search.miss(now, key(1));
        search.rest(now + MISSED / 2);
        search.miss(now + MISSED / 2, key(1));
        search.rest(now + MISSED);
        assert!(search.is_on());
        search.rest(now + 2 * MISSED);
        assert!(!search.is_on());
        for number in 0..2 * MISSED_MAX {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            search.miss(now, PublicKey::from_bytes(bytes));
        }
        assert_eq!(search.missed.len(), MISSED_MAX);
        for number in 0..2 * HEARD_MAX {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            search.hear(Notice { key: PublicKey::from_bytes(bytes), ..notice(9, 1) });
        }
        assert_eq!(search.heard.len(), HEARD_MAX);
    }
}
