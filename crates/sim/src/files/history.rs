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

    pub(crate) fn applied(&mut self, tags: &[i64]) {
        self.applied.extend(tags);
    }

    pub(crate) fn ended(&mut self, client: Client, life: u32) {
        if self.ended.insert((client, life)) {
            self.events.push(Event::Ended(client, life));
        }
    }

    /// The tags of deeds that have never been, and of what else their client did after them.
    pub(crate) fn undone(&self) -> Undone {
        let mut by_life: BTreeMap<(Client, u32), Vec<&Deed>> = BTreeMap::new();
        for event in &self.events {
            if let Event::Did(deed) = event
                && self.ended.contains(&(deed.client, deed.life))
            {
                by_life.entry((deed.client, deed.life)).or_default().push(deed);
            }
        }
        let mut undone = Undone::default();
        for deeds in by_life.values() {
            self.judge_life(deeds, &mut undone);
        }
        undone
    }

    fn judge_life(&self, deeds: &[&Deed], undone: &mut Undone) {
        let is_applied = |deed: &Deed| self.applied.contains(&deed.tag);
        let changes = |deed: &Deed| deed.step.is_change() && deed.is_done();
        let mut is_doubtful = false;
        let mut passing: BTreeSet<i64> = BTreeSet::new();
        for (index, deed) in deeds.iter().enumerate() {
            if !changes(deed) {
                if is_doubtful {
                    undone.doubtful.insert(deed.tag);
                }
                continue;
            }
            let later = || deeds[index + 1..].iter().copied().filter(|deed| changes(deed));
            // A later change of the same field took its place before it was pushed.
            let is_merged = || {
                let place = deed.merges_into();
                place.is_some()
                    && later().any(|other| other.merges_into() == place && is_applied(other))
            };
            // Came and went between two pushes.
            if let (Some(file), Some(place)) = (deed.born(), deed.place())
                && !is_applied(deed)
                && !is_doubtful
                && let Some(end) = later().find(|other| other.place() == Some(place))
                && matches!(end.step, Step::Unlink { .. } | Step::Rmdir { .. })
                && !is_applied(end)
            {
                passing.extend([deed.tag, end.tag]);
                let is_about =
                    |other: &&Deed| other.merges_into().is_some_and(|(at, ..)| at == file);
                let about = later().filter(is_about);
                passing.extend(about.map(|other| other.tag));
            }
            if !is_applied(deed) && !is_merged() && !passing.contains(&deed.tag) {
                undone.void.insert(deed.tag);
                let mut rest = deeds[index + 1..].iter();
                // A rename of one name of a file over another changes nothing, and after a doubt nothing is
                // sure.
                let is_sure = !is_doubtful && !matches!(deed.step, Step::Rename { .. });
                if is_sure && rest.any(|other| other.program == deed.program && other.is_synced()) {
                    undone.forgotten.get_or_insert_with(|| format!("{:?}", deed.step));
                }
                is_doubtful = true;
            }
        }
    }
}

/// What has never been.
#[derive(Debug, Default)]
pub(crate) struct Undone {
    /// Changes that were lost with their session.
    pub(crate) void: BTreeSet<i64>,
    /// What a client saw after the first of those.
    pub(crate) doubtful: BTreeSet<i64>,
    /// One of those that its program had been told was safe.
    pub(crate) forgotten: Option<String>,
}

impl Deed {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Seen(_))
    }

    fn is_synced(&self) -> bool {
        self.step == Step::Sync && self.is_done()
    }

    /// The file, and what of it, if a later change of the same may take this one's place.
    fn merges_into(&self) -> Option<(&FileId, &str, &[u8])> {
        match &self.step {
            Step::SetAttr { file, .. } => Some((file, "attributes", &[])),
            Step::SetXattr { file, name, .. } => Some((file, "extended", name)),
            Step::Write { file, .. } => Some((file, "content", &[])),
            _ => None,
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
