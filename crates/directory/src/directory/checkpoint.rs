//! All that a directory keeps besides its records, written down between two commands.
//!
//! The shell stores it together with the records that have changed, so that a machine which starts again
//! goes on from there and applies only the commands that came after.

use base::{Duration, Malformed};

use crate::{
    record::{Key, Record},
    records::Records,
};

use super::{Directory, Settings};

impl Directory {
    /// Everything but the records; none in the middle of a command.
    pub fn checkpoint(&mut self) -> Option<Vec<u8>> {
        if self.progress.is_some() {
            return None;
        }
        let sweep = self.sweep.map(|(at, every)| (at, every.as_nanos() as u64));
        Some(base::encode(&(
            base::encode(&self.grantor),
            &self.members,
            &self.ledger,
            self.serial_next,
            (&self.orphans, &self.suspects, sweep, &self.swept),
            self.now,
            self.records.sum(),
        )))
    }

    /// A directory as it was at a checkpoint, with none of its records at hand.
    pub fn restore(settings: Settings, checkpoint: &[u8]) -> Result<Directory, Malformed> {
        let (grantor, members, ledger, serial_next, lost, now, sum) =
            base::decode::<(Vec<u8>, _, _, _, (_, _, Option<(_, u64)>, _), _, _)>(
                checkpoint,
                checkpoint.len(),
            )?;
        let (orphans, suspects, sweep, swept) = lost;
        Ok(Directory {
            records: Records::stored(sum),
            grantor: lease::Grantor::restore(settings.terms, settings.policy, &grantor)?,
            members,
            ledger,
            serial_next,
            orphans,
            suspects,
            sweep: sweep.map(|(at, every)| (at, Duration::from_nanos(every))),
            swept,
            now,
            progress: None,
            settings: Settings { is_stored: true, ..settings },
        })
    }

    /// A directory as it was at a checkpoint, with all of its records.
    pub fn restore_whole(
        settings: Settings,
        checkpoint: &[u8],
        records: Vec<(Key, Record)>,
    ) -> Result<Directory, Malformed> {
        let is_stored = settings.is_stored;
        let mut directory = Directory::restore(settings, checkpoint)?;
        directory.records = Records::whole(records, *directory.records.sum(), is_stored);
        directory.settings.is_stored = is_stored;
        Ok(directory)
    }

    /// All records, in order, between two commands. None if some are in a store only.
    pub fn records(&self) -> Option<Vec<(Key, Record)>> {
        let is_whole = self.progress.is_none() && self.records.is_all_at_hand();
        let all = self.records.iter().map(|(key, record)| (key.clone(), record.clone()));
        is_whole.then(|| all.collect())
    }

    /// Lets go of every record that the store has.
    ///
    /// # Panics
    ///
    /// If there is no store: see [`Settings::is_stored`].
    pub fn release_all(&mut self) {
        if self.progress.is_none() {
            self.records.release_all();
        }
    }
}
