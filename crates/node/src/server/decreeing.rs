//! Who was sent away: what this machine hears of it, passes on, and brings to its group.

use base::{Instant, Machine as _, PublicKey};
use group::Notary;
use overlay::{Decree, Tidings, decrees};
use wire::Frame;

use crate::member;

use super::{Output, Server};

impl<N: Notary + Clone> Server<N> {
    /// Another machine says something of decrees.
    pub(super) fn on_tidings(
        &mut self,
        now: Instant,
        from: PublicKey,
        tidings: Tidings,
        out: &mut Vec<Output>,
    ) {
        let seconds = self.seconds;
        self.step_decrees(now, decrees::Input::Heard { from, tidings, seconds }, out);
    }

    /// The machines of the cell that are known here, or its members, may be others now.
    pub(super) fn tell_cell(&mut self, now: Instant, out: &mut Vec<Output>) {
        let Some(cell) = &mut self.cell else { return };
        let is_told =
            |(machines, epoch): &(_, _)| (machines, *epoch) == (&cell.machines, cell.roll.epoch);
        if cell.told.as_ref().is_some_and(is_told) {
            return;
        }
        cell.told = Some((cell.machines.clone(), cell.roll.epoch));
        let machines = cell.machines.iter().copied().chain([self.me.0]).collect();
        let members = cell.roll.seats.iter().map(|seat| seat.key).collect();
        self.step_decrees(now, decrees::Input::Cell { machines, members }, out);
    }

    /// Says again what somebody may not have heard.
    pub(super) fn tick_decrees(&mut self, now: Instant, out: &mut Vec<Output>) {
        let Some(cell) = &mut self.cell else { return };
        let mut wanted = Vec::new();
        cell.decrees.tick(now, &mut wanted);
        self.follow_decrees(now, wanted, out);
    }

    pub(super) fn step_decrees(
        &mut self,
        now: Instant,
        input: decrees::Input,
        out: &mut Vec<Output>,
    ) {
        let Some(cell) = &mut self.cell else { return };
        let mut wanted = Vec::new();
        cell.decrees.step(now, input, &mut wanted);
        self.follow_decrees(now, wanted, out);
    }

    fn follow_decrees(
        &mut self,
        now: Instant,
        wanted: Vec<decrees::Output>,
        out: &mut Vec<Output>,
    ) {
        let frame = |tidings| wire::encode(&Frame::Tidings(tidings));
        for output in wanted {
            match output {
                decrees::Output::Tell(to, tidings) => {
                    out.push(Output::Send { to, bytes: frame(tidings) });
                }
                decrees::Output::TellAll(tidings) => out.push(Output::SendAll(frame(tidings))),
                decrees::Output::Obey(decree) => self.obey(&decree, out),
                // What the book has already, as that of a member that was away, needs no decision.
                decrees::Output::Submit(decree) if self.member.book().has_heard(&decree) => {
                    self.step_decrees(now, decrees::Input::Decided(Box::new(decree)), out);
                }
                decrees::Output::Submit(decree) => {
                    let (decree, heard) = (Box::new(decree), self.seconds);
                    self.step_member(now, member::Input::Decree { decree, heard }, out);
                }
            }
        }
    }

    fn obey(&mut self, decree: &Decree, out: &mut Vec<Output>) {
        // Else it would be forgotten at the next start, and who is sent away meanwhile let in.
        out.push(Output::Keep);
        let Decree::Revoke(revocation) = decree else { return };
        let key = revocation.subject();
        if key == self.me.0 {
            return out.push(Output::SentAway);
        }
        if let Some(cell) = &mut self.cell {
            cell.machines.remove(&key);
        }
        out.push(Output::Gone(key));
    }
}
