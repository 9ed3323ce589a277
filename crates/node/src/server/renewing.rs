//! How the certificate of this machine is renewed: it asks in time, itself first and then the others, since some of them
//! may have an issuer's key. Whatever they say is checked by whoever takes it.

use base::{Instant, PublicKey};
use group::Notary;
use wire::{Answer, Query};

use super::{Cell, Output, Server, Token, asking::Purpose};

/// The most machines that are asked.
pub(super) const ASKED_MAX: usize = 64;

impl<N: Notary + Clone> Server<N> {
    /// Asks for a renewal when it is time.
    pub(super) fn renew_in_time(&mut self, now: Instant, out: &mut Vec<Output>) {
        let (seconds, me) = (self.seconds, self.me.0);
        let Some(cell) = &mut self.cell else { return };
        if !cell.renewer.asks(cell.expires, seconds) {
            return;
        }
        // This machine first, and then the one that has founded the cell. The last is asked first.
        let others = cell.machines.iter().filter(|key| **key != cell.founder).take(ASKED_MAX - 2);
        let mut next: Vec<PublicKey> = others.copied().collect();
        if cell.machines.contains(&cell.founder) {
            next.push(cell.founder);
        }
        next.push(me);
        cell.renewing = next;
        cell.asking.drop_all(Purpose::Renew);
        cell.ask_for_renewal(now, out);
    }

    /// Somebody has answered something that this machine has asked.
    pub(super) fn on_answered(
        &mut self,
        now: Instant,
        token: Token,
        answer: Option<Answer>,
        out: &mut Vec<Output>,
    ) {
        let Some(cell) = &mut self.cell else { return };
        match (cell.asking.end(token), answer) {
            (Some((Purpose::Announce, from)), answer) => self.on_told(now, from, answer, out),
            (Some((Purpose::Renew, _)), Some(Answer::Renewed(renewal))) => {
                cell.renewing.clear();
                out.push(Output::Renewed(renewal));
            }
            (Some((Purpose::Renew, _)), _) => cell.ask_for_renewal(now, out),
            (None, _) => {}
        }
    }
}

impl<N: Notary + Clone> Server<N> {
    /// What has not come by now counts as not answered.
    pub(super) fn give_up(&mut self, now: Instant, out: &mut Vec<Output>) {
        let late = self.cell.iter().flat_map(|cell| cell.asking.late(now));
        for token in late.collect::<Vec<_>>() {
            self.on_answered(now, token, None, out);
        }
    }
}

impl<N> Cell<N> {
    fn ask_for_renewal(&mut self, now: Instant, out: &mut Vec<Output>) {
        if let Some(to) = self.renewing.pop() {
            let token = self.asking.begin(now, Purpose::Renew, to);
            out.push(Output::Ask { token, to, query: Query::Renew });
        }
    }
}
