//! A member that goes through its log after a start.

use base::{Instant, Malformed};
use directory::{Absent, Directory};
use group::{Notary, Replica, Tip};

use crate::{
    Loaded, Settings,
    graph::{self, Limits},
    member::{Identity, Member, Output, Rest, Whole},
};

/// What a log begins with.
#[derive(Clone, Debug)]
pub enum Base<'a> {
    /// Nothing.
    First(&'a Tip),
    /// A [`crate::Checkpoint`]'s state; a store has the records.
    Stored(&'a [u8]),
    /// A [`Member::whole_state`].
    Whole(&'a [u8]),
}

/// Applies what the log has after its base. What was said back then is not said again: who missed it will
/// ask again.
pub struct Recovery<N> {
    member: Member<N>,
    now: Instant,
}

impl<N: Notary + Clone> Recovery<N> {
    /// From a base, and a log of which the record before the first has this mark.
    pub fn new(
        settings: Settings,
        group_settings: group::Settings,
        identity: Identity<N>,
        base: Base<'_>,
        mark: u64,
        now: Instant,
    ) -> Result<Recovery<N>, Malformed> {
        let (tip, book, directory) = match base {
            Base::First(tip) => {
                (tip.clone(), Default::default(), Directory::new(settings.clone(), Instant::START))
            }
            Base::Stored(state) => {
                let (tip, book, rest): Rest = base::decode(state, state.len())?;
                (tip, book, Directory::restore(settings.clone(), &rest)?)
            }
            Base::Whole(state) => {
                let ((tip, book, rest), records): Whole = base::decode(state, state.len())?;
                (tip, book, Directory::restore_whole(settings.clone(), &rest, records)?)
            }
        };
        if !tip.is_sound() {
            return Err(Malformed::new("a state of a group that can't be"));
        }
        let (charter, Identity { seat, notary, .. }) = (identity.charter(), identity.clone());
        let (group_settings, limits) = graph::limited(group_settings, Limits::default());
        let mut replica = Replica::new(group_settings, charter, seat, notary, tip.clone(), now);
        replica.begin_replay(mark);
        let mut member = Member::with((settings, limits), identity, directory, replica, book, tip);
        member.keep_quiet();
        Ok(Recovery { member, now })
    }

    /// The place of the last decision that was applied.
    pub fn height(&self) -> u64 {
        self.member.height()
    }

    /// Applies the next record. One that the base has in it is passed over. If records are absent they have
    /// to be supplied before anything else.
    pub fn replay(&mut self, record: &[u8]) -> Result<Option<Absent>, Malformed> {
        let mut out = Vec::new();
        self.member.replay(self.now, record, &mut out)?;
        Ok(absent(out))
    }

    /// Takes what was absent, and goes on. More may be.
    pub fn supply(&mut self, loaded: Loaded) -> Option<Absent> {
        let mut out = Vec::new();
        self.member.supply(self.now, loaded, &mut out);
        absent(out)
    }

    /// The member as its log has left it, and what it wants done.
    pub fn finish(mut self, out: &mut Vec<Output>) -> Member<N> {
        self.member.end_replay(self.now, out);
        self.member
    }
}

fn absent(out: Vec<Output>) -> Option<Absent> {
    out.into_iter().find_map(|output| match output {
        Output::Load(absent) => Some(absent),
        _ => None,
    })
}
