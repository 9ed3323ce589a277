//! What a lost session leaves behind: what it was given and did not use, its locks, and files without a
//! name that it had open.
//!
//! A file without a name goes with the last who has it open. If that one is lost, nobody says so: so
//! each such file becomes a suspect, whoever knows anything of it is asked to let go, and once nobody
//! may change it or has it open the group takes it out of the world itself.

use base::{FileId, Instant};
use borsh::BorshSerialize;
use lease::{Client, Field, message::Down};

use crate::{
    record::{File, Key},
    records::Absent,
    session::Session,
};

use super::{Directory, Progress};

/// The most suspects that are looked at in one command.
const SWEEP_MAX: usize = 256;

/// How far we are with a suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize)]
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
        self.pool.add(session.escrow);
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
    /// has only to hear of it.
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
        let scope = Field::Locks.of(file);
        // Whoever is granted it by this very command is told the new value.
        let spare: Vec<Client> = progress
            .said
            .iter()
            .filter(|(_, response)| match &response.lease.body {
                Down::Granted { grants, .. } => grants.iter().any(|g| g.scope.contains(&scope)),
                _ => false,
            })
            .map(|(to, _)| *to)
            .collect();
        let mut said = Vec::new();
        self.grantor.disturb(progress.now, &scope, &spare, &mut said);
        self.say(progress, said);
        Ok(())
    }

    /// Looks at some suspects: those that nobody has open are to go, of the others everybody lets go.
    pub(super) fn sweep(&mut self, progress: &mut Progress) {
        let mut said = Vec::new();
        let mut seen = 0;
        for (file, suspicion) in &mut self.suspects {
            if seen == SWEEP_MAX {
                break;
            }
            let whole = Field::Whole.of(file);
            if self.grantor.is_unclaimed(&whole) {
                progress.gone.push(file.clone());
                seen += 1;
            } else if *suspicion == Suspicion::Fresh {
                *suspicion = Suspicion::Asked;
                self.grantor.disturb(progress.now, &whole, &[], &mut said);
                seen += 1;
            }
        }
        progress.is_sweeping = false;
        self.say(progress, said);
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
        self.plan_sweep(progress.now, std::mem::take(&mut progress.has_suspects));
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
        self.pool.files = self.pool.files.saturating_add(1);
        self.pool.bytes = self.pool.bytes.saturating_add(record.content.size);
        self.records.set(Key::file(file), None);
        self.records.commit();
        Ok(())
    }

    /// Waits ever longer, as whoever closes the file last says so; new suspects are looked at soon.
    fn plan_sweep(&mut self, now: Instant, is_new: bool) {
        let terms = self.settings.terms;
        let every = match self.sweep {
            Some((_, every)) if !is_new => (2 * every).min(terms.lease),
            _ => terms.repeat,
        };
        self.sweep = (!self.suspects.is_empty()).then(|| (now + every, every));
    }
}
