//! What follows from what was decided: commands change the directory, orders change who is in the cell.

use std::{collections::VecDeque, sync::Arc};

use base::{Instant, Machine as _, Malformed};
use directory::{Absent, Command, Directory};
use group::{Decision, Notary, Tip};
use wire::Slot;

use crate::{book::Book, order::Order};

use super::{Due, Member, Output, Rest, Whole};

impl<N: Notary + Clone> Member<N> {
    /// Applies what is decided, as far as its records are at hand.
    pub(super) fn go_on(&mut self, now: Instant, out: &mut Vec<Output>) {
        if std::mem::take(&mut self.is_unreadable) {
            self.group(now, group::Input::Unreadable, out);
        }
        while let Some(due) = self.due.front() {
            match due {
                Due::Decision(decision) => {
                    let decision = Arc::clone(decision);
                    if let Err(absent) = self.apply(&decision, out) {
                        out.push(Output::Load(absent));
                        return;
                    }
                    self.due.pop_front();
                }
                Due::State { height } => {
                    let height = *height;
                    let Some(state) = self.whole_state() else {
                        out.push(Output::Load(Absent::everything()));
                        return;
                    };
                    self.due.pop_front();
                    let mut outputs = Vec::new();
                    let input = group::Input::State { height, state: state.into() };
                    self.replica.step(now, input, &mut outputs);
                    self.follow(outputs, out);
                }
            }
        }
    }

    fn apply(&mut self, decision: &Decision, out: &mut Vec<Output>) -> Result<(), Absent> {
        let batch = &decision.batch;
        let rescue = decision.rescue().map(|rescue| &rescue.what);
        let (done, mut index) = self.done;
        let is_news = decision.height > self.said;
        // Clients hear from those who sat here then. Whoever has come since may have it from whoever let it in.
        let is_heard = is_news && self.applied.seats.contains(&self.replica.seat());
        // Who goes on alone knows nothing of what the others have promised last.
        for number in done..batch.commands.len() + usize::from(rescue.is_some()) {
            self.done = (number, index);
            if self.begun.is_empty() {
                match batch.commands.get(number) {
                    Some(bytes) => self.begun = self.commands_of(bytes, is_news, out),
                    None => self.begun.push_back(Command::Void),
                }
            }
            while let Some(command) = self.begun.front() {
                let mut responses = Vec::new();
                self.directory.apply(batch.time, command, &mut responses)?;
                if let Some(Command::Admit { client, .. }) = self.begun.pop_front() {
                    self.admitting.remove(&client);
                }
                for (to, response) in responses {
                    if is_heard {
                        let slot = Slot { height: decision.height, index };
                        out.push(Output::Send { to, slot, bytes: wire::encode(&response) });
                    }
                    index += 1;
                }
                self.done = (number, index);
            }
        }
        self.done = (0, 0);
        self.applied = self.applied.after(batch, decision.certificate.value);
        if let Some(rescue) = rescue {
            self.book.note_rescue(rescue);
            if let Some(attendance) = &mut self.attendance {
                attendance.on_change();
            }
            if is_news {
                out.push(Output::Rescued(rescue.clone()));
            }
        }
        Ok(())
    }

    /// The commands that an order is, if its author may want it.
    fn commands_of(
        &mut self,
        bytes: &[u8],
        is_news: bool,
        out: &mut Vec<Output>,
    ) -> VecDeque<Command> {
        self.try_commands_of(bytes, is_news, out).unwrap_or_default()
    }

    fn try_commands_of(
        &mut self,
        bytes: &[u8],
        is_news: bool,
        out: &mut Vec<Output>,
    ) -> Option<VecDeque<Command>> {
        match Order::of(bytes).ok()? {
            Order::Do { command, by } => {
                if let (Command::Heard { client, .. }, Some((key, _))) = (&command, &by) {
                    if self.identity.authority.is_none() && self.directory.hears(*client) {
                        self.book.come(*client, key);
                    }
                    if !self.book.is_its(*client, key) {
                        return None;
                    }
                }
                Some([command].into())
            }
            Order::Join(join) => {
                let admitted = self.book.admit(&join, &self.identity.authority?);
                if let Some(attendance) = &mut self.attendance {
                    attendance.on_change();
                }
                if is_news {
                    let outcome = admitted.clone().map(|(client, _)| client);
                    out.push(Output::Joined { machine: *join.certificate.machine(), outcome });
                }
                let (client, users) = admitted.ok()?;
                Some([Command::Admit { client, users }].into())
            }
            Order::Decree { decree, heard } => {
                let authority = self.identity.authority?;
                let subject = decree.verify(&authority).ok()?;
                let obeyed = self.book.obey(&decree, &authority, heard);
                let share = self.book.share(&decree, &authority);
                if let Some(attendance) = &mut self.attendance {
                    attendance.on_change();
                }
                if is_news {
                    let outcome = obeyed.as_ref().map(drop).map_err(Clone::clone);
                    out.push(Output::Decreed { subject, decree, outcome });
                }
                // Nobody hears a machine that was sent away, so its leases end with its session.
                let admit = |(client, users)| Command::Admit { client, users };
                Some(obeyed.ok()?.into_iter().map(admit).chain(share).collect())
            }
        }
    }

    /// Everything, records and all, as other members may take it. None if some of it is in a store only.
    pub fn whole_state(&mut self) -> Option<Vec<u8>> {
        let records = self.directory.records()?;
        let rest = self.directory.checkpoint()?;
        let state: Rest = (self.applied.clone(), self.book.clone(), rest);
        Some(base::encode(&(state, records)))
    }

    /// Takes a state that enough vouch for, if it is one. Where one is enough, that one may lie.
    pub(super) fn install(&mut self, tip: Tip, state: &[u8], out: &mut Vec<Output>) {
        match self.restored(&tip, state) {
            Ok((directory, book)) => {
                self.directory = directory;
                self.start_from(tip, book);
                out.push(Output::Replaced);
            }
            Err(_) => {
                self.malformed += 1;
                self.due.clear();
                self.is_unreadable = true;
            }
        }
    }

    fn restored(&self, tip: &Tip, state: &[u8]) -> Result<(Directory, Book), Malformed> {
        let ((applied, book, rest), records) = base::decode::<Whole>(state, state.len())?;
        if applied != *tip {
            return Err(Malformed::new("a state that belongs elsewhere"));
        }
        Ok((Directory::restore_whole(self.settings.clone(), &rest, records)?, book))
    }

    /// Nothing of what it has was ever decided.
    pub(super) fn let_go(&mut self, tip: Tip, out: &mut Vec<Output>) {
        self.directory = Directory::new(self.settings.clone(), Instant::START);
        self.start_from(tip, Book::default());
        out.push(Output::Misled);
    }

    fn start_from(&mut self, applied: Tip, book: Book) {
        (self.book, self.applied, self.done) = (book, applied, (0, 0));
        self.begun.clear();
        self.due.clear();
        if let Some(attendance) = &mut self.attendance {
            attendance.on_change();
        }
    }
}
