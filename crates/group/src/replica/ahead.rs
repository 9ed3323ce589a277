//! What members say of a height while the one before it is not decided here.
//!
//! Who has decided goes on, and its words may come before the last vote that others need to decide too. If they
//! were dropped, whoever dropped them could not vote on what they propose, and where one member is away all others
//! are needed.

use super::Settings;
use crate::{batch::Batch, engine::Word, seat::Seat};

/// Words of the height after the next one. At most [`Settings::EARLY_MAX`] of each member, and one batch.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    height: u64,
    words: Vec<Early>,
}

/// Who says what, with which batch, and whether its commands are fit.
type Early = (Seat, Word, Option<Batch>, bool);

impl Ahead {
    /// Keeps what a member says, if it is of this height.
    pub(super) fn keep(
        &mut self,
        height: u64,
        from: Seat,
        word: Word,
        batch: Option<Batch>,
        is_fit: bool,
    ) {
        if self.height != height {
            *self = Ahead { height, words: Vec::new() };
        }
        let is_proposal = matches!(word, Word::Proposal(_));
        let is_wanted = match &word {
            Word::Vote(vote, _) => vote.what.seat == from && batch.is_none(),
            Word::Proposal(proposal) => proposal.what.seat == from,
            Word::Polka(_) | Word::Passage(_) => false,
        };
        let of_it = || self.words.iter().filter(|(seat, ..)| *seat == from);
        let has_proposed = of_it().any(|(_, word, ..)| matches!(word, Word::Proposal(_)));
        if word.height() == height
            && word.round() == 0
            && is_wanted
            && of_it().count() < Settings::EARLY_MAX
            && !(is_proposal && has_proposed)
        {
            self.words.push((from, word, batch, is_fit));
        }
    }

    /// What was said of this height, which is the next one now.
    pub(super) fn take(&mut self, height: u64) -> Vec<Early> {
        match self.height == height {
            true => std::mem::take(&mut self.words),
            false => Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }
}
