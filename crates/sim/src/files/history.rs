//! Everything that programs did, in the order in which it took effect.
//!
//! A client performs what it does under leases, so the moment of performing is its place in the one
//! order that everybody must be able to agree on. What a client had done and not pushed when its session
//! ended has never been, and nobody else may have seen it.

use std::collections::{BTreeMap, BTreeSet};

use base::FileId;
use directory::Actor;
use lease::{Client, Name};

use super::step::{Outcome, Seen, Step};

/// Something that a program did.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    pub(crate) client: Client,
    /// Which of the client's lives between losses and restarts.
    pub(crate) life: u32,
    /// Which program on the client.
    pub(crate) program: usize,
    /// Unique; the time that the operation carries.
    pub(crate) tag: i64,
    pub(crate) actor: Actor,
    pub(crate) step: Step,
    pub(crate) outcome: Outcome,
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Did(Box<Deed>),
    /// A client has begun to close a handle: locks may go before the handle does.
    Closing(Client, u32, u64),
    /// The group has ended the session in which a client had this life: its handles and locks are gone.
    Ended(Client, u32),
}

/// The events in order, and what is needed to tell which deeds have been.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) events: Vec<Event>,
    /// Tags of operations that the group has applied.
    applied: BTreeSet<i64>,
    /// Lives whose session has ended.
    ended: BTreeSet<(Client, u32)>,
}

impl History {
    pub(crate) fn did(&mut self, deed: Deed) {
        self.events.push(Event::Did(Box::new(deed)));
    }

    pub(crate) fn closing(&mut self, client: Client, life: u32, handle: u64) {
        self.events.push(Event::Closing(client, life, handle));
    }

    pub(crate) fn applied(&mut self, tags: &[i64]) {
        self.applied.extend(tags);
    }

    pub(crate) fn ended(&mut self, client: Client, life: u32) {
        if self.ended.insert((client, life)) {
            self.events.push(Event::Ended(client, life));
        }
    }

    /// At the end: a client has had another life since, so what it had not pushed in this one never will be.
    /// What it had open stays so until somebody wants it.
    pub(crate) fn left(&mut self, client: Client, life: u32) {
        self.ended.insert((client, life));
    }

    /// The lives that have ended, and what of them has never been.
    pub(crate) fn lives(&self) -> BTreeMap<(Client, u32), Life> {
        let mut deeds: BTreeMap<(Client, u32), Vec<&Deed>> = BTreeMap::new();
        for event in &self.events {
            if let Event::Did(deed) = event
                && self.ended.contains(&(deed.client, deed.life))
            {
                deeds.entry((deed.client, deed.life)).or_default().push(deed);
            }
        }
        let lives = deeds.into_iter();
        lives.map(|(key, deeds)| (key, Life::of(&deeds, &self.applied))).collect()
    }
}

/// What became of a deed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It has been, or it was nothing to push.
    Been,
    /// It was lost with its session.
    Void,
    /// A rename that the group has not heard of: either it was lost, or it changed nothing.
    Hollow,
    /// About a file that came, by the deed of this tag, and went between two pushes; or all of that was
    /// lost.
    Passing(i64),
}

/// A life that has ended.
#[derive(Debug, Default)]
pub(crate) struct Life {
    /// Of deeds that have not been, and their places in the life.
    fates: BTreeMap<i64, (Fate, usize)>,
    /// The place of the last change that the group has applied, and of the last that touched a file.
    applied_last: Option<usize>,
    applied_last_to: BTreeMap<FileId, usize>,
    /// The place of the last change of each field that a later one may replace.
    merged_last: BTreeMap<(FileId, &'static str, Vec<u8>), usize>,
    /// The place of each program's last sync that went well.
    synced_last: BTreeMap<usize, usize>,
}

impl Life {
    fn of(deeds: &[&Deed], applied: &BTreeSet<i64>) -> Life {
        let mut life = Life::default();
        let is_applied = |deed: &Deed| applied.contains(&deed.tag);
        for (place, deed) in deeds.iter().enumerate() {
            if deed.is_synced() {
                life.synced_last.insert(deed.program, place);
            }
            if !deed.is_changed() {
                continue;
            }
            if let Some((file, what, name)) = deed.merges_into() {
                life.merged_last.insert((file.clone(), what, name.to_vec()), place);
            }
            if is_applied(deed) {
                life.applied_last = Some(place);
                let touched = deed.step.directories().into_iter().chain(deed.step.file());
                for file in touched.chain(deed.born()) {
                    life.applied_last_to.insert(file.clone(), place);
                }
            }
        }
        let mut passing: BTreeMap<i64, i64> = BTreeMap::new();
        for (place, deed) in deeds.iter().enumerate() {
            if !deed.is_changed() || is_applied(deed) {
                continue;
            }
            let later = || deeds[place + 1..].iter().copied().filter(|deed| deed.is_changed());
            // A later change of the same field took its place before it was pushed.
            let into = deed.merges_into();
            let is_merged = into.is_some()
                && later().any(|other| other.merges_into() == into && is_applied(other));
            // Came and went between two pushes.
            if let (Some(file), Some(at)) = (deed.born(), deed.place())
                && let Some(end) = later().find(|other| other.place() == Some(at))
                && matches!(end.step, Step::Unlink { .. } | Step::Rmdir { .. })
                && !is_applied(end)
            {
                let about = later().filter(|other| other.is_only_about(file));
                let all = about.map(|other| other.tag).chain([deed.tag, end.tag]);
                passing.extend(all.map(|tag| (tag, deed.tag)));
            }
            let fate = match (&deed.step, passing.get(&deed.tag)) {
                _ if is_merged => continue,
                (_, Some(birth)) => Fate::Passing(*birth),
                (Step::Rename { .. }, None) => Fate::Hollow,
                (_, None) => Fate::Void,
            };
            life.fates.insert(deed.tag, (fate, place));
        }
        life
    }

    pub(crate) fn fate(&self, deed: &Deed) -> Fate {
        self.fates.get(&deed.tag).map_or(Fate::Been, |(fate, _)| *fate)
    }

    /// Whether a change that was lost had been said to be safe.
    pub(crate) fn was_safe(&self, deed: &Deed) -> bool {
        let Some((_, place)) = self.fates.get(&deed.tag) else { return false };
        self.synced_last.get(&deed.program).is_some_and(|synced| synced > place)
    }

    /// Whether something that came after a change that was lost was not lost, although pushing keeps
    /// order: what a later change took into itself moves to that one's place, if nothing else about the
    /// file lies between.
    pub(crate) fn has_gap_after(&self, deed: &Deed) -> bool {
        let Some((_, place)) = self.fates.get(&deed.tag) else { return false };
        let into = deed.merges_into();
        let moved = into.and_then(|(file, what, name)| {
            self.merged_last.get(&(file.clone(), what, name.to_vec()))
        });
        let end = moved.unwrap_or(place);
        let touched = into.and_then(|(file, ..)| self.applied_last_to.get(file));
        self.applied_last.is_some_and(|last| last > *end)
            || touched.is_some_and(|last| last > place)
    }
}

impl Deed {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Seen(_))
    }

    /// Whether it has changed something that others can see.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_done() && self.step.is_change()
    }

    fn is_synced(&self) -> bool {
        self.step == Step::Sync && self.is_done()
    }

    /// The file, and what of it, if a later change of the same may take this one's place.
    fn merges_into(&self) -> Option<(&FileId, &'static str, &[u8])> {
        match &self.step {
            Step::SetAttr { file, .. } => Some((file, "attributes", &[])),
            Step::SetXattr { file, name, .. } => Some((file, "extended", name)),
            Step::Write { file, .. } => Some((file, "content", &[])),
            _ => None,
        }
    }

    /// Whether it vanishes with a file that came and went.
    fn is_only_about(&self, file: &FileId) -> bool {
        match &self.step {
            Step::Lock { file: at, .. } => at == file,
            _ => self.merges_into().is_some_and(|(at, ..)| at == file),
        }
    }

    /// The name that it is about.
    fn place(&self) -> Option<(&FileId, &Name)> {
        match &self.step {
            Step::Create { directory, name, .. }
            | Step::Mkdir { directory, name, .. }
            | Step::Symlink { directory, name, .. }
            | Step::Link { directory, name, .. }
            | Step::Unlink { directory, name }
            | Step::Rmdir { directory, name } => Some((directory, name)),
            _ => None,
        }
    }

    /// The file that came into being.
    pub(crate) fn born(&self) -> Option<&FileId> {
        let is_birth =
            matches!(self.step, Step::Create { .. } | Step::Mkdir { .. } | Step::Symlink { .. });
        match &self.outcome {
            Outcome::Seen(Seen::File(file)) if is_birth => Some(file),
            _ => None,
        }
    }
}
