//! What else a client can say: batches, questions, and wishes for what new files need.

use lease::Client;

use crate::{
    ledger::Free,
    message::{Answer, Ask, Needs, OPERATIONS_MAX, Provision, RANGES_MAX, Request},
    operation::Operation,
    record::{File, Sort},
    records::Absent,
    refusal::Refusal,
    session::{self, ACCOUNTS_MAX, LOCKED_MAX, NUMBERS, SERIALS},
    values,
    work::{Failed, Work},
};

use super::{Directory, Progress};

impl Directory {
    pub(super) fn on_ask(
        &mut self,
        client: Client,
        request: &Request,
        progress: &mut Progress,
    ) -> Result<(), Absent> {
        match &request.ask {
            None => Ok(()),
            Some(Ask::Batch { number, operations }) => {
                self.on_batch(client, *number, operations, progress)
            }
            Some(Ask::Fetch { request, keys }) => {
                let who = (client, &self.members[&client].users);
                let values = values::fetched(&self.records, &self.grantor, who, keys)?;
                let answer = Answer::Fetched { request: *request, values };
                self.answer(progress, client, answer);
                Ok(())
            }
            Some(Ask::List { request, directory, after }) => {
                let (records, grantor) = (&self.records, &self.grantor);
                let who = (client, &self.members[&client].users);
                let value = values::listed(records, grantor, who, directory, after.as_ref())?;
                self.answer(progress, client, Answer::Listed { request: *request, value });
                Ok(())
            }
            Some(Ask::Provide { request, needs }) => {
                self.on_provide(client, *request, needs, progress)
            }
        }
    }

    /// A batch is applied once and in order: one that comes again is answered again, one that comes too
    /// soon or too late is not.
    fn on_batch(
        &mut self,
        client: Client,
        number: u64,
        operations: &[Operation],
        progress: &mut Progress,
    ) -> Result<(), Absent> {
        let has_others = self.members.len() > 1;
        let member = self.members.get_mut(&client).expect("it was admitted");
        if number == member.session.batch && number > 0 {
            self.answer(progress, client, Answer::Applied { number, refused: None });
            return Ok(());
        }
        if Some(number) != member.session.batch.checked_add(1) {
            return Ok(());
        }
        let mut refused = (operations.len() > OPERATIONS_MAX).then_some((0, Refusal::TooMuch));
        let mut said = Vec::new();
        let mut absent = None;
        let mut work = Work::new(
            progress.now,
            (client, has_others),
            &member.users,
            &mut self.records,
            &mut self.grantor,
            &mut member.session,
            &self.settings,
            &mut self.ledger,
            &mut progress.traces,
            &mut said,
        );
        while refused.is_none()
            && let Some(operation) = operations.get(progress.operations)
        {
            match work.replay(operation) {
                Ok(()) => progress.operations += 1,
                Err(Failed::Refused(why)) => refused = Some((progress.operations as u32, why)),
                Err(Failed::Absent(more)) => {
                    absent = Some(more);
                    break;
                }
            }
        }
        self.say(progress, said);
        if let Some(absent) = absent {
            return Err(absent);
        }
        let member = self.members.get_mut(&client).expect("it was admitted");
        member.session.batch = number;
        self.answer(progress, client, Answer::Applied { number, refused });
        self.follow_up(client, progress);
        let has_too_many = self.members[&client].locked.len() > LOCKED_MAX;
        if refused.is_some() || has_too_many {
            let mut said = Vec::new();
            self.grantor.expel(progress.now, client, &mut said);
            self.say(progress, said);
        }
        Ok(())
    }

    /// Sees to what follows from a batch.
    fn follow_up(&mut self, client: Client, progress: &mut Progress) {
        let mut traces = std::mem::take(&mut progress.traces);
        for (file, is_orphan) in traces.orphaned {
            if is_orphan {
                self.note_orphan(file, progress);
            } else {
                self.orphans.remove(&file);
                self.suspects.remove(&file);
            }
        }
        for (client, file, is_locked) in traces.locked {
            let Some(member) = self.members.get_mut(&client) else { continue };
            if is_locked {
                member.locked.insert(file);
            } else {
                member.locked.remove(&file);
            }
        }
        for file in traces.guarded {
            self.show_by_access(client, &file, progress);
        }
        // Times are a consequence: whoever reads them has to hear of it.
        traces.stirred.sort();
        traces.stirred.dedup();
        let mut said = Vec::new();
        for file in traces.stirred {
            let scope = lease::Field::Times.of(&file);
            self.grantor.disturb(progress.now, &scope, &[client], &mut said);
        }
        self.say(progress, said);
    }

    fn on_provide(
        &mut self,
        client: Client,
        request: u64,
        needs: &Needs,
        progress: &mut Progress,
    ) -> Result<(), Absent> {
        let Needs { number, serial, release, .. } = needs;
        let directory = needs.directory.as_ref();
        let record = match directory {
            Some(directory) => self.records.file(directory)?.cloned(),
            None => None,
        };
        let member = self.members.get_mut(&client).expect("it was admitted");
        let session = &mut member.session;
        match &session.provided {
            Some((last, answer)) if *last == request => {
                let answer = answer.clone();
                self.answer(progress, client, answer);
                return Ok(());
            }
            Some((last, _)) if *last > request => return Ok(()),
            _ => {}
        }
        for directory in release.iter().take(RANGES_MAX) {
            session.ranges.remove(directory);
        }
        // Numbers of files that came and went unseen are used up too.
        if let (Some(directory), Some(last)) = (directory, number.checked_sub(1)) {
            session.use_number(directory, last);
        }
        if let Some(last) = serial.checked_sub(1) {
            session.serials.use_up(last);
        }
        let mut provision = Provision::default();
        if let (Some(directory), Some(record)) = (directory, record)
            && record.sort == Sort::Directory
            && session.may_have_numbers(directory)
        {
            let mut record = File::clone(&record);
            let next = record.numbering.next;
            let end = next.saturating_add(NUMBERS);
            record.numbering.next = end;
            if next < end {
                session.ranges.entry(directory.clone()).or_default().give(next, end);
                provision.numbers = Some((directory.clone(), next, end));
                self.records.set_file(directory, Some(record));
                self.records.commit();
            }
        }
        if session.may_have_serials() {
            let next = self.serial_next;
            self.serial_next = next.saturating_add(SERIALS);
            session.serials.give(next, self.serial_next);
            provision.serials = (next < self.serial_next).then_some((next, self.serial_next));
        }
        self.share_out(client, needs, &mut provision);
        let answer = Answer::Provided { request, provision };
        let member = self.members.get_mut(&client).expect("it was admitted");
        member.session.provided = Some((request, answer.clone()));
        self.answer(progress, client, answer);
        Ok(())
    }

    /// Takes back what a client has no use for, and sets aside what it needs for an owner of files.
    fn share_out(&mut self, client: Client, needs: &Needs, provision: &mut Provision) {
        let live = self.members.values().filter(|member| member.session.is_live);
        let clients = live.count() as u64;
        let Directory { members, ledger, settings, .. } = self;
        let session = &mut members.get_mut(&client).expect("it was admitted").session;
        if let Some(free) = needs.free {
            ledger.pledge(settings, client, free);
        }
        for (uid, quota) in needs.give_back.iter().take(ACCOUNTS_MAX) {
            let Some(own) = session.escrow.get_mut(uid) else { continue };
            let back = own.min(quota.unwrap_or(*own));
            *own = own.less(back);
            ledger.free_up(client, *uid, back);
            if quota.is_none() {
                session.escrow.remove(uid);
            }
        }
        let Some(uid) = needs.owner else { return };
        if session.escrow.len() >= ACCOUNTS_MAX && !session.escrow.contains_key(&uid) {
            return;
        }
        let own = session.escrow.entry(uid).or_default();
        let free = ledger.free(settings, client, uid);
        let part = session::part(free.both(), own, clients, needs.bytes);
        own.add(part);
        provision.stock = Some((uid, part));
        ledger.set_aside(client, uid, part);
        let Free { own, room } = free;
        provision.is_over = (own.files < room.files, own.bytes < room.bytes);
        provision.account = ledger.account(settings, uid);
    }
}
