//! What has waited here too long is shown to all members, and a little later whoever leads and still leaves it out
//! does not get this member's vote.
//!
//! An honest leader loses no votes by that: each member insists on one command at a time, one of each fits into a
//! batch, and a leader puts them before all others. Nobody insists in more rounds of a height than liars can lead,
//! or against what a quorum has found fit before, so a height comes to an end whatever is left out.

use std::collections::BTreeMap;

use base::Instant;

use super::{Output, Replica};
use crate::{
    batch::{Batch, Change},
    message::Message,
    seal::Notary,
    seat::Seat,
};

/// After so many times as long as a command may wait it is let go of, if all was decided but that: then honest
/// leaders have had it and found it unfit.
const LET_GO: u32 = 16;

/// What this member insists on, and what others do.
#[derive(Debug, Default)]
pub(super) struct Fairness {
    /// The number of the command that all were shown, and when.
    own: Option<(u64, Instant)>,
    /// The last that each of the others has shown, until it is decided.
    shown: BTreeMap<Seat, Vec<u8>>,
}

impl Fairness {
    pub(super) fn len(&self) -> usize {
        self.shown.len()
    }

    /// These were decided.
    pub(super) fn on_decided(&mut self, commands: &[Vec<u8>]) {
        self.shown.retain(|_, command| !commands.contains(command));
    }
}

impl<N: Notary> Replica<N> {
    /// The most bytes of a command that is insisted on: one of each member fits into a batch.
    fn insisted_bytes_max(&self) -> Option<usize> {
        let members = self.members.list().len();
        let is_room = members <= self.settings.batch_count_max;
        is_room.then(|| self.settings.batch_bytes_max / members)
    }

    /// The command that this member insists on, and since when.
    fn insisted(&self) -> Option<(&Vec<u8>, Instant)> {
        let (number, since) = self.fairness.own?;
        Some((self.pending.get(number)?, since))
    }

    /// The number of the next command to insist on, and when it will have waited too long.
    fn overdue(&self) -> Option<(u64, Instant)> {
        if !self.may_vote() || self.is_alone() || self.insisted().is_some() {
            return None;
        }
        let (number, came_at) = self.pending.oldest(self.insisted_bytes_max()?)?;
        Some((number, came_at + self.settings.overdue))
    }

    /// When something will have waited here too long.
    pub(super) fn overdue_at(&self) -> Option<Instant> {
        self.overdue().map(|(_, at)| at)
    }

    /// Shows all members what has waited too long.
    pub(super) fn insist(&mut self, now: Instant, out: &mut Vec<Output>) {
        let Some((number, _)) = self.overdue().filter(|(_, at)| *at <= now) else { return };
        self.fairness.own = Some((number, now));
        self.send_now(self.insistence().expect("it waits"), out);
    }

    /// How a member is shown what this one insists on, if it does on something.
    fn insistence(&self) -> Option<Message> {
        self.insisted().map(|(command, _)| Message::Overdue(command.clone()))
    }

    /// Shows a member what it may not have heard, or not know any more.
    pub(super) fn insist_again(&self, to: Seat, out: &mut Vec<Output>) {
        let message = self.insistence().filter(|_| to != self.me && self.members.contains(&to));
        out.extend(message.map(|message| Output::Send { to, message }));
    }

    /// A member says that this has waited too long there. Whoever is shown it wants it decided too.
    pub(super) fn on_overdue(&mut self, now: Instant, from: Seat, command: Vec<u8>) {
        let is_bounded = self.insisted_bytes_max().is_some_and(|most| command.len() <= most);
        if is_bounded && self.members.contains(&from) && from != self.me {
            self.fairness.shown.insert(from, command.clone());
            self.pending.push(now, from.key, true, command);
        }
    }

    /// What has to be decided before all else: one command of each member at the most.
    pub(super) fn demanded(&self) -> Vec<Vec<u8>> {
        let own = self.insisted().map(|(command, _)| command);
        let mut all = Vec::new();
        for command in own.into_iter().chain(self.fairness.shown.values()) {
            if !all.contains(command) {
                all.push(command.clone());
            }
        }
        all
    }

    /// Whether who leads this round has left out what all were shown a while ago.
    pub(super) fn is_unfair(&self, now: Instant, round: u32, batch: &Batch) -> bool {
        let may_insist = round as usize <= self.members.faults()
            && !matches!(batch.change, Some(Change::Enact { .. }));
        self.insisted().filter(|_| may_insist).is_some_and(|(command, since)| {
            since + self.settings.overdue <= now && !batch.commands.contains(command)
        })
    }

    /// Something was decided, and what this member insists on was not, again and again.
    pub(super) fn let_go_of_unfit(&mut self, now: Instant) {
        if let Some((number, since)) = self.fairness.own
            && since + LET_GO * self.settings.overdue <= now
        {
            self.pending.remove(number);
        }
    }
}
