//! What the group's thread does with its disk: it waits for room, makes contents safe, and puts the state into the
//! store.

use std::time::Duration;

use node::Limits;

use super::{Group, Stored};
use crate::{Failure, ballast::Ballast, content::Space, fsck::Survey};

/// There is a checkpoint when the log since the last one is long, and with so much in it that a checkpoint may take
/// this part of the room that is left.
const ROOM_PART: u64 = 4;
/// A checkpoint takes so many times as much as the log since the last one: records are longer than what
/// changes them, and are written twice. An estimate: with short names the store alone took 3 to 6 times as much.
const CHECKPOINT_FACTOR: u64 = 8;
/// For less it is never done, however little room is left.
const OWED_MIN: u64 = 1 << 20;
/// While the disk is full there are no checkpoints. With so many times as much that waits for one as otherwise may,
/// nothing more is taken.
pub(super) const FULL_FACTOR: usize = 8;
/// What has found no room, or could not be opened, is tried again after this.
const PAUSE: Duration = Duration::from_millis(250);

impl Group {
    /// Everything that the store has is void; what the member has now takes its place.
    pub(super) fn replace_store(&mut self) -> Result<(), Failure> {
        let Some(checkpoint) = self.server.checkpoint() else {
            return Err(Failure::Unfit("a state came that can't be stored; start again".into()));
        };
        while !self.make_room() {
            self.wait(no_room("can't take a state into", "store"))?;
        }
        self.go_on();
        // The log may hold words of this member that are not safe yet, so it stays from where it was.
        self.store.replace(self.stored.mark, &checkpoint.state, checkpoint.changes)?;
        self.stored.height = checkpoint.height;
        Ok(())
    }

    /// What this machine has was never decided, so nothing of it is kept, nor what the log has up to here.
    pub(super) fn forget(&mut self) -> Result<(), Failure> {
        eprintln!(
            "croft: THIS MACHINE CAN NOT SHOW that it has what the group has decided: whoever let it in has misled it, \
             or it was away while it got its seat; it lets go of all that it was shown and takes it anew from those \
             who sit in the group"
        );
        self.patiently(|group| group.log.sync())?;
        let Some(checkpoint) = self.server.checkpoint() else {
            return Err(Failure::Unfit("what is left can't be stored; start again".into()));
        };
        while !self.make_room() {
            self.wait(no_room("can't put a state into", "store"))?;
        }
        self.go_on();
        self.store.replace(checkpoint.mark, &checkpoint.state, checkpoint.changes)?;
        self.stored = Stored { mark: checkpoint.mark, height: checkpoint.height };
        Ok(())
    }

    /// Makes contents safe, as often as it takes: nothing may be heard of them before.
    pub(super) fn sync_content(&mut self) -> Result<(), Failure> {
        loop {
            match self.content.sync() {
                Err(failure) if !self.content.is_stopped() => self.wait(failure)?,
                synced => {
                    self.go_on();
                    return synced;
                }
            }
        }
    }

    /// Does something with the log, as often as it takes while the disk is full.
    pub(super) fn patiently(
        &mut self,
        mut act: impl FnMut(&mut Group) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let before = self.clock.used();
        loop {
            match act(self) {
                Err(failure) if failure.is_full() && !self.log.is_stopped() => {
                    if !self.ballast.free() {
                        self.wait(failure)?;
                    }
                }
                done => {
                    self.log_used += self.clock.used() - before;
                    self.go_on();
                    return done;
                }
            }
        }
    }

    /// Waits a little for what may yet get better, unless the machine is to stop. What is said to the group
    /// meanwhile waits too, or is said again.
    pub(super) fn wait(&mut self, failure: Failure) -> Result<(), Failure> {
        self.is_full = failure.is_full();
        if !self.is_waiting {
            eprintln!("croft: {failure}; everything waits until this gets better");
            self.is_waiting = true;
        }
        self.tell_standing();
        if self.inbox.rest(PAUSE) { Ok(()) } else { Err(failure) }
    }

    pub(super) fn go_on(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            self.is_full = false;
            eprintln!("croft: it has got better, and all goes on");
            self.tell_standing();
        }
    }

    /// Gives up the ballast if there is hardly any room without it, and sets it aside again if there is
    /// plenty. Whether there is room for what must not fail.
    pub(super) fn make_room(&mut self) -> bool {
        // A disk that does not tell is used as long as it works.
        let Ok(space) = self.content.space() else { return true };
        let least = Ballast::bytes(&space);
        if space.available_bytes >= least {
            self.ballast.make(&space);
            return true;
        }
        self.ballast.free();
        self.content.space().is_ok_and(|space| space.available_bytes >= least)
    }

    /// How much of the disk the next checkpoint will take.
    pub(super) fn owed_bytes(&self) -> u64 {
        self.log_bytes * CHECKPOINT_FACTOR
    }

    /// Whether so many records have changed that they have to be stored.
    pub(super) fn is_much_changed(&self) -> bool {
        self.server.member().directory().sizes().changes > self.server.member().limits().changes_max
    }

    /// While the disk is full, waits if so much is not in the store that no more may come.
    pub(super) fn await_room(&mut self) -> Result<(), Failure> {
        let Limits { log_bytes_max, changes_max, .. } = *self.server.member().limits();
        let is_stuffed = |group: &Group| {
            group.is_full
                && (group.log_bytes / FULL_FACTOR as u64 > log_bytes_max
                    || group.server.member().directory().sizes().changes / FULL_FACTOR
                        > changes_max)
        };
        while is_stuffed(self) && self.wait(no_room("can't store more on", "this disk")).is_ok() {
            self.checkpoint()?;
        }
        if !self.is_full {
            self.go_on();
        }
        Ok(())
    }

    /// Whether there is enough in the log for a checkpoint.
    pub(super) fn is_log_long(&self) -> bool {
        if self.log_bytes > self.server.member().limits().log_bytes_max {
            return true;
        }
        // On a small disk, or on one that is nearly full.
        let owed_bytes = self.owed_bytes();
        let is_much = |space: Space| owed_bytes > space.available_bytes / (ROOM_PART - 1);
        owed_bytes > OWED_MIN && self.content.space().is_ok_and(is_much)
    }

    /// Lets go of records if there are too many.
    pub(super) fn release(&mut self) {
        if self.server.member().directory().sizes().records > self.records_max {
            self.server.release_all();
            // Not again and again for those that have to stay.
            let left = self.server.member().directory().sizes().records;
            self.records_max = self.records_max.max(2 * left);
        }
    }

    /// Puts the state into the store.
    pub(super) fn checkpoint(&mut self) -> Result<(), Failure> {
        // After a write that found no room the store is of no use until the next start; the log can wait.
        let is_full = !self.make_room();
        let was_full = std::mem::replace(&mut self.is_full, is_full);
        if is_full {
            if !was_full {
                eprintln!(
                    "croft: the disk is full; make room, since until then only the log is written"
                );
            }
            return Ok(());
        }
        if self.has_news() {
            let Some(checkpoint) = self.server.checkpoint() else { return Ok(()) };
            // Else the store could know more than the log after a crash.
            self.patiently(|group| group.log.sync())?;
            self.store.save(checkpoint.mark, &checkpoint.state, checkpoint.changes)?;
            // The log goes back to the checkpoint before this one, in case this one turns out bad.
            self.log.drop_before(self.stored.mark.min(checkpoint.mark) + 1)?;
            self.stored = Stored { mark: checkpoint.mark, height: checkpoint.height };
        }
        self.log_bytes = 0;
        self.content.owe(0);
        self.records_max = self.server.member().limits().records_max;
        Ok(())
    }

    /// All records as they are, if they are in the store.
    pub(super) fn survey(&self) -> Option<Result<Survey, String>> {
        if !self.server.member().replica().is_member() {
            let what = "this machine is no member of the group and has no records; run `croft fsck` on \
                        one that is (`croft status` shows which)";
            return Some(Err(what.into()));
        }
        let outline = self.server.member().directory().outline().filter(|_| !self.has_news())?;
        let members = self.server.member().replica().members().list().len();
        Some(Ok(Survey { records: self.store.freeze(), outline, members }))
    }
}

fn no_room(what: &'static str, path: &str) -> Failure {
    let full = std::io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
    Failure::of(what, path)(full)
}
