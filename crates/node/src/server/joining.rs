//! How machines join, and what is decreed: who waits to hear what the group makes of it.

use base::{Instant, PublicKey};
use group::Notary;
use lease::Client;
use overlay::{Decree, Refused, decrees};
use wire::{Answer, Join, Message, Ticket};

use crate::member;

use super::{Output, Server, Token, waiting::Waiting};

const NO_VOTE: &str = "this machine has no vote; ask where a member of the group is";
const CROWDED: &str = "too many machines join or leave at once; try again in a moment";
const AGAIN: &str = "the same was asked again meanwhile";
const LATE: &str = "the group does not answer; look at `croft status` there, and try again";

impl<N: Notary + Clone> Server<N> {
    pub(super) fn on_join(
        &mut self,
        now: Instant,
        join: Box<Join>,
        token: Token,
        out: &mut Vec<Output>,
    ) {
        let (machine, is_member) = (*join.certificate.machine(), self.member.replica().is_member());
        self.show_rescue(machine, out);
        let Some(cell) = &mut self.cell else { return refuse(token, NO_VOTE, out) };
        if cell.machines.contains(&machine) {
            out.push(Output::Moved(join.clone()));
        }
        if !is_member {
            refuse(token, NO_VOTE, out);
        } else if await_answer(&mut cell.joining, now, machine, token, out) {
            self.step_member(now, member::Input::Join(join), out);
        }
    }

    pub(super) fn on_decree(
        &mut self,
        now: Instant,
        decree: Box<Decree>,
        token: Token,
        out: &mut Vec<Output>,
    ) {
        let is_member = self.member.replica().is_member();
        let Some(cell) = self.cell.as_mut().filter(|_| is_member) else {
            return refuse(token, NO_VOTE, out);
        };
        match decree.verify(&cell.authority) {
            Err(refused) => refuse(token, &refused.to_string(), out),
            Ok(subject) => {
                if await_answer(&mut cell.decreeing, now, subject, token, out) {
                    let heard = self.seconds;
                    self.step_member(now, member::Input::Decree { decree, heard }, out);
                }
            }
        }
    }

    /// The group has let a machine in, or will not.
    pub(super) fn on_joined(
        &mut self,
        machine: &PublicKey,
        outcome: Result<Client, Refused>,
        out: &mut Vec<Output>,
    ) {
        let answer = match outcome {
            Err(refused) if *machine == self.me.0 => return out.push(Output::Unfit(refused)),
            Err(refused) => Answer::Refused(refused.to_string()),
            Ok(client) => Answer::Joined(Box::new(self.ticket(client))),
        };
        let waiting = self.cell.as_mut().and_then(|cell| cell.joining.take(machine));
        out.extend(waiting.map(|token| Output::Reply { token, answer }));
    }

    /// What a machine has to know that has joined.
    fn ticket(&self, client: Client) -> Ticket {
        let book = self.member.book();
        let others = book.machines().filter(|(other, _)| *other != client);
        let others = others.filter(|(_, machine)| !book.is_revoked(&machine.key));
        let machines = others.map(|(client, machine)| book.neighbour(client, machine)).collect();
        let users = book.machine(client).map(|machine| book.served(machine));
        Ticket { client, machines, users: users.unwrap_or_else(|| Some(Vec::new())) }
    }

    /// What the authority has said of somebody holds, or does not.
    pub(super) fn on_decreed(
        &mut self,
        now: Instant,
        subject: &PublicKey,
        decree: Decree,
        outcome: Result<(), Refused>,
        out: &mut Vec<Output>,
    ) {
        if outcome.is_ok() {
            self.step_decrees(now, decrees::Input::Decided(Box::new(decree)), out);
        }
        let waiting = self.cell.as_mut().and_then(|cell| cell.decreeing.take(subject));
        let refused = |refused: Refused| Answer::Refused(refused.to_string());
        let answer = outcome.map_or_else(refused, |()| Answer::Decreed);
        out.extend(waiting.map(|token| Output::Reply { token, answer }));
    }

    /// The group's book of machines has changed, or may have.
    pub(super) fn read_book(&mut self) {
        let (book, me) = (self.member.book(), self.me.0);
        let Some(cell) = &mut self.cell else { return };
        // An empty book is that of somebody who has not heard of anything yet.
        if book.client(&me).is_some() {
            let keys = book.machines().map(|(_, machine)| machine.key);
            cell.machines = keys.filter(|key| *key != me && !book.is_revoked(key)).collect();
        }
    }

    /// Whoever has waited for too long is told so.
    pub(super) fn expire(&mut self, now: Instant, out: &mut Vec<Output>) {
        let Some(cell) = &mut self.cell else { return };
        for token in
            [&mut cell.joining, &mut cell.decreeing].into_iter().flat_map(|one| one.expire(now))
        {
            refuse(token, LATE, out);
        }
    }

    /// Whoever says where it is may have been away for long, and know only members that are gone.
    fn show_rescue(&self, to: PublicKey, out: &mut Vec<Output>) {
        let replica = self.member.replica();
        if let Some(rescue) = replica.last_rescue().filter(|_| self.cell.is_some()) {
            let changes = Message::Changes(replica.changes_since(rescue.height));
            out.push(Output::Send { to, bytes: self.member.about().encode(changes) });
        }
    }
}

/// Whether there is room for one more who waits.
fn await_answer(
    waiting: &mut Waiting,
    now: Instant,
    key: PublicKey,
    token: Token,
    out: &mut Vec<Output>,
) -> bool {
    match waiting.put(now, key, token) {
        Ok(before) => {
            before.into_iter().for_each(|token| refuse(token, AGAIN, out));
            true
        }
        Err(token) => {
            refuse(token, CROWDED, out);
            false
        }
    }
}

pub(super) fn refuse(token: Token, why: &str, out: &mut Vec<Output>) {
    out.push(Output::Reply { token, answer: Answer::Refused(why.to_owned()) });
}
