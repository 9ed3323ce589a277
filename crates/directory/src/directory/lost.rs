//! What a lost session leaves behind: what it was given and did not use, its locks, and files without a
//! name that it had open.
//!
//! A file without a name goes with the last who has it open. If that one is lost, nobody says so: so
//! each such file becomes a suspect, whoever knows anything of it is asked to let go, and once nobody
//! may change it or has it open the group takes it out of the world itself.

use std::ops::Bound;

use base::{FileId, Instant};
use borsh::{BorshDeserialize, BorshSerialize};
use lease::{Client, Field, Terms, message::Return};

use crate::{
    charge::Cost,
    record::{File, Key},
    records::Absent,
    session::Session,
};

use super::{Directory, Progress};

/// The most suspects that are looked at in one command, and as many that it touches.
pub(super) const SWEEP_MAX: usize = 256;

/// How far we are with a suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) enum Suspicion {
    /// Nobody was asked yet.
    Fresh,
    /// Whoever knows of it was asked to let go.
    Asked,
}

impl Directory {
    pub(super) fn on_lost(&mut self, client: Client, number: u64, progress: &mut Progress) {
        let Some(member) = self.members.get_mut(&client) else { return };
        let session = &mut member.session;
        if !(session.is_live && session.number == number) {
            return; // It was said before.
        }
        for (uid, escrow) in std::mem::take(&mut session.escrow) {
            self.ledger.free_up(client, uid, escrow);
        }
        *session = Session::new(number);
        progress.lost.insert(client);
        if !self.orphans.is_empty() {
            let orphans = self.orphans.iter().cloned();
            self.suspects.extend(orphans.map(|file| (file, Suspicion::Fresh)));
            progress.is_sweeping = true;
            progress.has_suspects = true;
        }
    }

    /// Takes away the locks of those who were lost.
    pub(super) fn clear_away(&mut self, progress: &mut Progress) -> Result<(), Absent> {
        while let Some(client) = progress.lost.first().copied() {
            let member = self.members.get_mut(&client).expect("only members are lost");
            let mut absent = Absent::default();
            for file in &member.locked {
                if let Err(more) = self.records.file(file) {
                    absent.join(more);
                }
            }
            if !absent.is_empty() {
                return Err(absent);
            }
            let locked = std::mem::take(&mut member.locked);
            progress.lost.remove(&client);
            for file in locked {
                self.unlock(client, &file, progress)?;
            }
        }
        Ok(())
    }

    /// Whoever may lock the file has fewer locks to fear for it, so that nothing it did is refused; it
    /// has only to hear of it. Even whoever is granted it by this very command: it may have known it
    /// before, and then goes by what it knew.
    fn unlock(
        &mut self,
        client: Client,
        file: &FileId,
        progress: &mut Progress,
    ) -> Result<(), Absent> {
        let Some(record) = self.records.file(file)? else { return Ok(()) };
        let mut record = File::clone(record);
        let mut locks = record.locks().to_vec();
        locks.retain(|lock| lock.client != client);
        record.set_locks(locks);
        self.records.set_file(file, Some(record));
        self.records.commit();
        let mut said = Vec::new();
        self.grantor.disturb(progress.now, &Field::Locks.of(file), &[], &mut said);
        self.say(progress, said);
        Ok(())
    }

    /// A file has lost its last name. If somebody was lost before who had it open, nobody will say that
    /// it is closed.
    pub(super) fn note_orphan(&mut self, file: FileId, progress: &mut Progress) {
        if self.grantor.has_farewell_in(&Field::Whole.of(&file)) {
            self.suspects.insert(file.clone(), Suspicion::Fresh);
            progress.is_sweeping = true;
            progress.has_suspects = true;
        }
        self.orphans.insert(file);
    }

    /// Notes which suspects something was given back of: nobody may have them open any more.
    pub(super) fn note_touched(&mut self, returns: &[Return], progress: &mut Progress) {
        if self.suspects.is_empty() {
            return;
        }
        for Return { part, .. } in returns {
            let below = self.suspects.range(&part.file..).map(|(file, _)| file);
            let below = below.take_while(|file| part.file.is_prefix_of(file));
            let is_in = |file: &&FileId| part.field == Field::Tree || **file == part.file;
            let room = SWEEP_MAX.saturating_sub(progress.touched.len());
            progress.touched.extend(below.take_while(is_in).take(room).cloned());
        }
    }

    /// Looks at some suspects: those that nobody has open are to go, of the others everybody lets go.
    pub(super) fn sweep(&mut self, progress: &mut Progress) {
        let mut files = std::mem::take(&mut progress.touched);
        if std::mem::take(&mut progress.is_sweeping) {
            files.extend(self.next_suspects());
            self.plan_sweep(progress.now, std::mem::take(&mut progress.has_suspects));
        }
        let mut said = Vec::new();
        for file in files {
            let Some(suspicion) = self.suspects.get_mut(&file) else { continue };
            let whole = Field::Whole.of(&file);
            if self.grantor.is_unclaimed(&whole) {
                progress.gone.push(file);
            } else if *suspicion == Suspicion::Fresh {
                *suspicion = Suspicion::Asked;
                self.grantor.disturb(progress.now, &whole, &[], &mut said);
            }
        }
        self.say(progress, said);
    }

    /// The next suspects in their turn.
    fn next_suspects(&mut self) -> Vec<FileId> {
        let from = self.swept.take().map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.suspects.range((from, Bound::Unbounded)).map(|(file, _)| file);
        let next: Vec<FileId> = rest.take(SWEEP_MAX + 1).cloned().collect();
        if next.len() > SWEEP_MAX {
            self.swept = next.get(SWEEP_MAX - 1).cloned();
        }
        next.into_iter().take(SWEEP_MAX).collect()
    }

    /// Takes out of the world what was found to be closed.
    pub(super) fn reap_all(&mut self, progress: &mut Progress) -> Result<(), Absent> {
        let mut absent = Absent::default();
        for file in &progress.gone {
            if let Err(more) = self.records.file(file) {
                absent.join(more);
            }
        }
        if !absent.is_empty() {
            return Err(absent);
        }
        for file in std::mem::take(&mut progress.gone) {
            self.reap(&file)?;
        }
        if self.suspects.is_empty() {
            (self.sweep, self.swept) = (None, None);
        }
        Ok(())
    }

    fn reap(&mut self, file: &FileId) -> Result<(), Absent> {
        self.orphans.remove(file);
        self.suspects.remove(file);
        let Some(record) = self.records.file(file)?.cloned() else { return Ok(()) };
        for lock in record.locks() {
            if let Some(member) = self.members.get_mut(&lock.client) {
                member.locked.remove(file);
            }
        }
        self.ledger.book(Cost::of(&record), None);
        self.records.set(Key::file(file), None);
        self.records.commit();
        Ok(())
    }

    /// When to look again: soon at those whose turn has not come and at new ones, then ever later, as
    /// whoever closes such a file last says so.
    fn plan_sweep(&mut self, now: Instant, is_new: bool) {
        let Terms { repeat, lease, .. } = self.settings.terms;
        self.sweep = Some(match self.sweep {
            Some((_, every)) if !is_new && self.swept.is_none() => {
                let every = (2 * every).min(lease);
                (now + every, every)
            }
            Some((_, every)) if !is_new => (now + repeat, every),
            _ => (now + repeat, repeat),
        });
    }
}
