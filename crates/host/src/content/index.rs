//! Where each content lies, as far as it is in the store: the index, and up to where it has the pack.

use std::collections::{BTreeMap, BTreeSet};

use fjall::{Database, Keyspace, PersistMode};

use super::pack::Entry;
use crate::{
    Failure, Store,
    log::frame::{HEAD, u32_at, u64_at},
    store::failed,
};

/// What stands before a content's bytes in its record: what it is and of which file.
pub(super) const LABEL: usize = 9;

/// Where a content lies in the pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) segment: u32,
    pub(super) offset: u32,
    /// Of the content alone.
    pub(super) length: u32,
    pub(super) sequence: u64,
}

impl Location {
    /// How much of its segment it takes.
    pub(super) fn footprint(&self) -> u64 {
        (HEAD + LABEL) as u64 + u64::from(self.length)
    }
}

/// How a file's bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In the pack.
    Packed(Location),
    /// In a file of its own.
    Backed,
}

/// How far the pack is in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) segment: u32,
    pub(super) offset: u64,
    /// The next sequence number.
    pub(super) sequence: u64,
}

/// The index in the store.
pub(super) struct Index {
    database: Database,
    keyspace: Keyspace,
}

/// What the index says of segments. One owner at a time syncs, adds to the index and compacts.
pub(super) struct Indexed {
    pub(super) position: Option<Position>,
    /// How many bytes of each segment the index points to, where it does. As many as there are segments.
    pub(super) live: BTreeMap<u32, u64>,
    /// Segments with a live record that can't be read: they are left alone.
    pub(super) spoiled: BTreeSet<u32>,
}

const POSITION: &[u8] = &[0];
const LIVE: u8 = 1;
const CONTENT: u8 = 2;

impl Index {
    pub(super) fn open(store: &Store) -> Result<(Index, Indexed), Failure> {
        let keyspace = store.keyspace("content")?;
        let malformed = || store.damaged("its index of contents does not decode");
        let position = match keyspace.get(POSITION).map_err(failed)? {
            None => None,
            Some(value) if value.len() == 20 => Some(Position {
                segment: u32_at(&value, 0),
                offset: u64_at(&value, 4),
                sequence: u64_at(&value, 12),
            }),
            Some(_) => return Err(malformed()),
        };
        let mut live = BTreeMap::new();
        for found in keyspace.prefix([LIVE]) {
            let (key, value) = found.into_inner().map_err(failed)?;
            if key.len() != 5 || value.len() != 8 {
                return Err(malformed());
            }
            live.insert(u32_at(&key, 1), u64_at(&value, 0));
        }
        let index = Index { database: store.database().clone(), keyspace };
        Ok((index, Indexed { position, live, spoiled: BTreeSet::new() }))
    }

    pub(super) fn get(&self, serial: u64) -> Result<Option<State>, Failure> {
        let Some(value) = self.keyspace.get(content_key(serial)).map_err(failed)? else {
            return Ok(None);
        };
        decode(&value).map(Some)
    }

    /// Every content that the index knows.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<(u64, State), Failure>> {
        self.keyspace.prefix([CONTENT]).map(|found| {
            let (key, value) = found.into_inner().map_err(failed)?;
            let key = key.get(1..9).and_then(|key| key.try_into().ok());
            let serial = u64::from_be_bytes(key.ok_or_else(malformed)?);
            Ok((serial, decode(&value)?))
        })
    }

    /// Puts into the index, all or nothing, what the pack says up to a position. Answers of which files
    /// now in the pack there may be a backing file from before.
    pub(super) fn add(
        &self,
        indexed: &mut Indexed,
        entries: &[(u64, Entry)],
        position: Position,
        is_durable: bool,
    ) -> Result<BTreeSet<u64>, Failure> {
        let mode = if is_durable { PersistMode::SyncAll } else { PersistMode::Buffer };
        let mut batch = self.database.batch().durability(Some(mode));
        let mut live = indexed.live.clone();
        let mut stale = BTreeSet::new();
        for (serial, entry) in entries {
            let old = self.get(*serial)?;
            if let Some(State::Packed(_)) = entry.state
                && (entry.is_over_backing || old == Some(State::Backed))
            {
                stale.insert(*serial);
            }
            if let Some(State::Packed(old)) = old {
                let bytes = live.entry(old.segment).or_default();
                *bytes = bytes.saturating_sub(old.footprint());
            }
            if let Some(State::Packed(new)) = entry.state {
                *live.entry(new.segment).or_default() += new.footprint();
            }
            match entry.state {
                Some(state) => batch.insert(&self.keyspace, content_key(*serial), encode(state)),
                None if old.is_some() => batch.remove(&self.keyspace, content_key(*serial)),
                None => {}
            }
        }
        for (&segment, &bytes) in &live {
            match bytes {
                0 => batch.remove(&self.keyspace, live_key(segment)),
                _ if indexed.live.get(&segment) == Some(&bytes) => {}
                _ => batch.insert(&self.keyspace, live_key(segment), bytes.to_le_bytes()),
            }
        }
        live.retain(|_, bytes| *bytes > 0);
        let mut value = position.segment.to_le_bytes().to_vec();
        value.extend(position.offset.to_le_bytes());
        value.extend(position.sequence.to_le_bytes());
        batch.insert(&self.keyspace, POSITION, value);
        batch.commit().map_err(failed)?;
        indexed.live = live;
        indexed.position = Some(position);
        Ok(stale)
    }
}

fn content_key(serial: u64) -> [u8; 9] {
    let mut key = [CONTENT; 9];
    key[1..].copy_from_slice(&serial.to_be_bytes());
    key
}

fn live_key(segment: u32) -> [u8; 5] {
    let mut key = [LIVE; 5];
    key[1..].copy_from_slice(&segment.to_le_bytes());
    key
}

fn encode(state: State) -> Vec<u8> {
    match state {
        State::Backed => Vec::new(),
        State::Packed(Location { segment, offset, length, sequence }) => {
            let mut value = segment.to_le_bytes().to_vec();
            value.extend(offset.to_le_bytes());
            value.extend(length.to_le_bytes());
            value.extend(sequence.to_le_bytes());
            value
        }
    }
}

fn decode(value: &[u8]) -> Result<State, Failure> {
    match value.len() {
        0 => Ok(State::Backed),
        20 => Ok(State::Packed(Location {
            segment: u32_at(value, 0),
            offset: u32_at(value, 4),
            length: u32_at(value, 8),
            sequence: u64_at(value, 12),
        })),
        _ => Err(malformed()),
    }
}

fn malformed() -> Failure {
    base::Malformed::new("an entry in the index of contents").into()
}
