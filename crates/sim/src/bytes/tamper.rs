//! What a mutant does differently: each hook is a decision about bytes that could be built wrong.

use content::{Bidding, End, Look, Need, Next, Regain, Settle, Then, Way};
use directory::record::Content;

/// Hooks around the decisions. The honest system leaves all as they are.
pub(crate) trait Tamper: Clone + 'static {
    /// Whether something is just being given up.
    fn is_yielding(&self, is: bool) -> bool {
        is
    }

    /// The content that is held, if it is; `reads` says what is held to be read.
    fn holds(
        &self,
        held: Option<Content>,
        _reads: impl Fn() -> Option<Content>,
    ) -> Option<Content> {
        held
    }

    /// Whether the group has heard of something.
    fn is_pushed(&self, is: bool) -> bool {
        is
    }

    /// How many sessions were lost.
    fn losses(&self, losses: u64) -> u64 {
        losses
    }

    /// What comes next for whoever wants bytes.
    fn next(&self, next: Next) -> Next {
        next
    }

    /// The same, where it matters what for, and whether there are bytes at hand.
    fn next_of(&self, _need: Need, _is_at_hand: bool, next: Next) -> Next {
        self.next(next)
    }

    /// Where something is done.
    fn way(&self, way: Way) -> Way {
        way
    }

    /// What comes of an answer.
    fn then(&self, then: Then) -> Then {
        then
    }

    /// What the directory is told.
    fn settle(&self, settle: Settle) -> Settle {
        settle
    }

    /// The content as it is told.
    fn tells(&self, content: Content) -> Content {
        content
    }

    /// What comes of a bid.
    fn bidding(&self, bidding: Bidding) -> Bidding {
        bidding
    }

    /// How a home ends.
    fn end(&self, end: End) -> End {
        end
    }

    /// Whether what others overtook is kept aside.
    fn keeps(&self) -> bool {
        true
    }

    /// What becomes of bytes of which the directory may not know.
    fn look(&self, look: Look) -> Look {
        look
    }

    /// What is done before somebody who syncs is told that all is well.
    fn regain(&self, regain: Regain) -> Regain {
        regain
    }

    /// Whether a machine does for others what they ask of its bytes.
    fn serves(&self, is_home: bool) -> bool {
        is_home
    }

    /// Whether somebody still waits for what they have asked.
    fn is_awaited(&self, is: bool) -> bool {
        is
    }

    /// Whether others may have what is here.
    fn is_fetched(&self, may: bool) -> bool {
        may
    }

    /// Whether bytes are what the directory says.
    fn is_like(&self, is: bool) -> bool {
        is
    }

    /// Whether the directory was told of bytes since somebody began to ask for a size.
    fn was_told(&self, was: bool) -> bool {
        was
    }
}

/// Nothing is wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Honest;

impl Tamper for Honest {}
