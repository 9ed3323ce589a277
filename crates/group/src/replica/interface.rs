//! What a member is told, what it wants done, and what its log is made of.

use std::sync::Arc;

use base::{Duration, PublicKey};
use borsh::{BorshDeserialize, BorshSerialize};
use load::reservoir::Allowance;

use super::{Astray, Replica};
use crate::{
    ballot::Certificate,
    batch::{Batch, Decision, Tip},
    clock::Doubt,
    engine::{Evidence, Fact, Patience},
    message::Message,
    rescue::Rescue,
    seal::Sealed,
    seat::Seat,
};

/// How a member behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a round waits.
    pub patience: Patience,
    /// How well clocks agree.
    pub doubt: Doubt,
    /// After this long without an answer a question is asked again.
    pub repeat: Duration,
    /// What has waited for so long is shown to all members, and after as long again nobody votes for what leaves it
    /// out.
    pub overdue: Duration,
    /// A rescue by the authority is obeyed after all members were asked for so long, and no quorum has answered.
    pub hesitate: Duration,
    /// The most commands of a batch.
    pub batch_count_max: usize,
    /// The most bytes of a batch's commands.
    pub batch_bytes_max: usize,
    /// The most commands that wait.
    pub pending_count_max: usize,
    /// The most bytes of commands that wait.
    pub pending_bytes_max: usize,
    /// The most batches that are kept at one height.
    pub batches_max: usize,
    /// The most rounds of one height: what is said of later ones is not heard. Waits grow so that a height would
    /// take lifetimes to have as many.
    pub rounds_max: u32,
    /// With so much that waits for the log, nothing is said again.
    pub held_max: usize,
    /// The most proofs of lies that are kept.
    pub proofs_max: usize,
    /// So many decisions are kept for members that are behind. Twice as many as lie between checkpoints.
    pub recent_max: usize,
    /// And so many bytes of them.
    pub recent_bytes_max: usize,
    /// Every so many decisions there is a checkpoint. Must be the same for all.
    pub checkpoint_every: u64,
    /// The most bytes of a state that are taken from others.
    pub state_bytes_max: u64,
    /// How many bytes of decisions and states a member, or one to be, is given.
    pub told_members: Allowance,
    /// How many anybody else is.
    pub told_others: Allowance,
}

impl Settings {
    /// So many states are kept for members that are far behind, the last ones.
    pub const STATES_MAX: usize = 2;
    /// So many points are known, which are small: more than a newcomer is behind while it catches up.
    pub const POINTS_MAX: usize = 16;
    /// So many words of the height after the next one are kept of each member: what it proposes, and its votes in
    /// the first round.
    pub const EARLY_MAX: usize = 3;
    /// Of so many machines it is known when they were last told of decisions.
    pub const SERVED_MAX: usize = 64;
    /// Of so many machines it is known how much they were told.
    pub const TOLD_MAX: usize = 1_024;
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            patience: Patience::default(),
            doubt: Doubt::default(),
            repeat: Duration::from_millis(500),
            overdue: Duration::from_secs(1),
            hesitate: Duration::from_secs(30),
            batch_count_max: 4_096,
            batch_bytes_max: 4 << 20,
            pending_count_max: 16_384,
            pending_bytes_max: 64 << 20,
            batches_max: 32,
            rounds_max: 1_024,
            held_max: 1_024,
            proofs_max: 64,
            recent_max: 2_048,
            recent_bytes_max: 32 << 20,
            checkpoint_every: 1_000,
            state_bytes_max: 4 << 30,
            told_members: Allowance { burst: 64 << 20, per_second: 64 << 20 },
            told_others: Allowance { burst: 2 << 20, per_second: 256 << 10 },
        }
    }
}

/// What can happen to a member.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time")]
pub enum Input {
    /// Somebody wants this decided.
    Command {
        /// Who has handed it in: each has its turn.
        from: PublicKey,
        /// What.
        command: Vec<u8>,
    },
    /// Another member says something. Whether it does is known from how it came.
    Heard {
        /// Who.
        from: Seat,
        /// What.
        message: Message,
        /// Whether the commands in it may be decided, as far as can be told from the commands alone.
        is_fit: bool,
    },
    /// Everything up to this mark is safe in the log.
    Persisted {
        /// Of an [`Output::Persist`].
        mark: u64,
    },
    /// What the decisions up to a point have led to, as asked for.
    State {
        /// The point.
        height: u64,
        /// The bytes of the state. Equal for all honest members.
        state: Arc<[u8]>,
    },
    /// The state of the last [`Output::Install`] makes no sense: those who vouch for it lie.
    Unreadable,
    /// These should be the members.
    Wish(Vec<Seat>),
    /// Somebody says that these are the members, which need not be so. They can be asked.
    Hint(Vec<Seat>),
    /// The authority lets the group go on from this member.
    Rescue(Sealed<Rescue>),
    /// Whoever runs this member wants the rescue obeyed that it hesitates to obey.
    Obey,
    /// Somebody, be it who it may, shows how the members have changed.
    Changes(Vec<Decision>),
}

/// What a member can want done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Append this to the log.
    Persist {
        /// Grows by one with each.
        mark: u64,
        /// A [`Record`]'s bytes.
        record: Vec<u8>,
    },
    /// Something waits until the log is safe up to this mark.
    Sync {
        /// Of an [`Output::Persist`].
        mark: u64,
    },
    /// Say this to another member.
    Send {
        /// To whom.
        to: Seat,
        /// What.
        message: Message,
    },
    /// This takes effect now.
    Decided(Arc<Decision>),
    /// After the decision before this: what have all decisions led to? If it is stored, then not so that it is
    /// safe before the log is up to here.
    WantState {
        /// The point.
        height: u64,
    },
    /// Forget the state, and take this one.
    Install {
        /// The point that it belongs to.
        tip: Tip,
        /// Its bytes, which may be anything: those who vouch for them may be too few by now. If they make no sense,
        /// the old state stays, and [`Input::Unreadable`] says so.
        state: Vec<u8>,
    },
    /// What this member has was never decided by those who sit here: it has believed who sat here before. Forget
    /// the state, and all of the log up to here. It goes on from this, and knows only who sits here.
    Misled {
        /// What is left.
        tip: Tip,
    },
    /// This disk is not the newest one that this member has had. It says nothing any more; it has to sit down
    /// on a new seat.
    Stale,
    /// Decisions have led to something else here than to so many others that one of them is honest. It says nothing
    /// any more; what the others have sealed is safe in its log.
    Astray(Astray),
}

/// What a log is made of.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Record {
    /// A batch that was voted on at the next height.
    Batch(Batch),
    /// Something that happened at this height.
    Fact(u64, Fact),
    /// The next height was decided. The batch is here unless it came before.
    Decided(Certificate, Option<Batch>),
    /// A state was taken from others.
    Installed(Tip),
    /// Somebody lied.
    Evidence(Evidence),
    /// The authority has let the group go on from somebody else.
    Rescued(Decision),
    /// Others have another state than this member.
    Astray(Astray),
}

/// How much a member keeps. Nothing that others say makes any of it grow beyond its bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// What waits for the log.
    pub held: usize,
    /// Commands that wait for a place.
    pub pending: usize,
    /// What others have shown to be overdue.
    pub overdue: usize,
    /// What others have said of their states.
    pub vouches: usize,
    /// Batches of the next height.
    pub batches: usize,
    /// Decisions for those that are behind.
    pub recent: usize,
    /// Words of the height after the next one.
    pub ahead: usize,
    /// Last votes of members.
    pub seen: usize,
    /// Own votes at the next height.
    pub cast: usize,
    /// What the engine waits for.
    pub waits: usize,
    /// Wishes, and members that are ready.
    pub wishes: usize,
    /// Who was given decisions.
    pub served: usize,
    /// Proofs of lies.
    pub evidence: usize,
    /// Bytes of a state on its way.
    pub fetched: usize,
}

impl<N> Replica<N> {
    /// How much it keeps.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            held: self.held.len(),
            pending: self.pending.len(),
            overdue: self.fairness.len(),
            vouches: self.agreeing.len(),
            batches: self.batches.len(),
            recent: self.recent.len(),
            ahead: self.ahead.len(),
            seen: self.seen.len(),
            cast: self.cast.len(),
            waits: self.waits.len(),
            wishes: self.wishes.len() + self.ready.len(),
            served: self.served.len(),
            evidence: self.evidence.len(),
            fetched: self.catching_up.fetched(),
        }
    }
}
