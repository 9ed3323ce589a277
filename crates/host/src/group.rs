//! Runs this machine's member of the directory group: a thread with it, its log and its store.
//!
//! What the group is told is written to the log and made safe, many commands at a time; then it takes
//! effect and is answered. Now and then the state goes to the store, and the log before it away.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base::{Instant, Machine};
use directory::{Absent, Users};
use group::{Ed25519, Tip};
use lease::{Client, Policy, Terms};
use node::{Base, Identity, Input, Member, Output, Recovery, Settings};

use crate::{
    Content, Failure, Log, Store,
    ballast::Ballast,
    clock::Clock,
    content::Space,
    desk::{Desk, Letter},
    mailbox::Mailbox,
};

/// With so many bytes in the log since the last checkpoint, there is one.
const LOG_BYTES_MAX: u64 = 8 << 20;
/// And with so much that a checkpoint may take this part of the room that is left.
const ROOM_PART: u64 = 4;
/// A checkpoint takes so many times as much as the log since the last one: records are longer than what
/// changes them, and are written twice. An estimate: with short names the store alone took 3 to 6 times as much.
const CHECKPOINT_FACTOR: u64 = 8;
/// For less it is never done, however little room is left.
const OWED_MIN: u64 = 1 << 20;
/// After so long without a word there is one too, so that a start is quick.
const QUIET: Duration = Duration::from_secs(5);
/// With so many records that are not in the store, there is one too: they can't be let go of before.
const CHANGES_MAX: usize = 25_000;
/// The most records at hand; beyond, all go that are in the store.
const RECORDS_MAX: usize = 50_000;
/// What has found no room, or could not be opened, is tried again after this.
const PAUSE: Duration = Duration::from_millis(250);

/// The group.
pub(crate) struct Group {
    member: Member<Ed25519>,
    log: Log,
    store: Arc<Store>,
    content: Arc<Content>,
    clock: Clock,
    inbox: Arc<Mailbox<Letter>>,
    standing: Arc<Mutex<Standing>>,
    stored: Stored,
    /// Bytes in the log since the last checkpoint.
    log_bytes: u64,
    ballast: Ballast,
    torn: Torn,
    /// [`RECORDS_MAX`], or more if so many are not in the store yet.
    records_max: usize,
    /// Whether it has been said that it waits for something, until it need not any more.
    is_waiting: bool,
    is_full: bool,
}

/// How far the store reaches.
#[derive(Clone, Copy, Debug, Default)]
struct Stored {
    /// The last record of the log that is not needed any more.
    mark: u64,
    /// The last decision.
    height: u64,
}

/// What a crash had torn when the machine was started, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Torn {
    /// Of the log.
    pub log_bytes: u64,
    /// Of the pack.
    pub content_bytes: u64,
}

/// What a group has to say of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Standing {
    /// The last decision that is safe.
    pub height: u64,
    /// The last one in the store.
    pub stored: u64,
    /// Records at hand.
    pub records: usize,
    /// Leases that are out.
    pub leases: usize,
    /// Bytes of the log on disk.
    pub log_bytes: u64,
    /// What a crash had torn at the start. Nobody was told that it was safe.
    pub torn: Torn,
    /// Whether it waits for room on the disk, with everything that it is told.
    pub is_full: bool,
    /// Why it has stopped, if it has.
    pub failure: Option<String>,
}

/// How long promises last. In a cell of one nobody else can want a lease, so it lasts, also through a
/// night in which the machine sleeps.
pub(crate) fn terms() -> Terms {
    Terms { lease: Duration::from_secs(10 * 365 * 86_400), ..Terms::default() }
}

impl Group {
    /// The group as its log and store have left it.
    pub(crate) fn open(
        home: &Path,
        store: Arc<Store>,
        content: Arc<Content>,
        clock: Clock,
        inbox: Arc<Mailbox<Letter>>,
        identity: Identity<Ed25519>,
        client: Client,
    ) -> Result<Group, Failure> {
        let policy = Policy { gives_all_to_one: true, ..Policy::default() };
        let settings = Settings { is_stored: true, terms: terms(), policy, ..Settings::default() };
        let checkpoint = store.checkpoint()?;
        let mark = checkpoint.as_ref().map_or(0, |(mark, _)| *mark);
        let first = Tip::first(vec![identity.seat]).expect("one is a group");
        let base = match &checkpoint {
            Some((_, state)) => Base::Stored(state),
            None => Base::First(&first),
        };
        let group = group::Settings::default();
        let mut recovery = Recovery::new(settings, group, identity, base, mark, clock.now())?;
        let stored = Stored { mark, height: recovery.height() };
        let (log, mut recovered) = Log::open(&home.join("log"))?;
        let torn = Torn {
            log_bytes: recovered.torn().map_or(0, |torn| torn.bytes),
            content_bytes: content.torn_bytes(),
        };
        torn.say();
        store.check_reach(mark, log.first())?;
        store.check_end(mark, log.next())?;
        recovered.pass_before(mark + 1);
        let mut log_bytes = 0;
        while let Some((_, record)) = recovered.next()? {
            log_bytes += record.len() as u64;
            let mut absent = recovery.replay(&record)?;
            while let Some(wanted) = absent {
                absent = recovery.supply(store.load(&wanted)?);
            }
        }
        let mut out = Vec::new();
        let mut member = recovery.finish(&mut out);
        if !member.directory().hears(client) {
            member.step(clock.now(), Input::Admit { client, users: Users::Any }, &mut out);
        }
        let standing = Arc::default();
        let mut group = Group {
            member,
            log,
            store,
            content,
            clock,
            inbox,
            standing,
            stored,
            log_bytes,
            ballast: Ballast::of(home),
            torn,
            records_max: RECORDS_MAX,
            is_waiting: false,
            is_full: false,
        };
        group.content.owe(group.owed_bytes());
        group.make_room();
        group.follow(out, &mut Vec::new())?;
        group.tell_standing();
        Ok(group)
    }

    /// Where it says how it stands.
    pub(crate) fn standing(&self) -> Arc<Mutex<Standing>> {
        Arc::clone(&self.standing)
    }

    /// Works until its mailbox is closed, or something fails.
    pub(crate) fn run(mut self, desk: &Desk) {
        if let Err(failure) = self.work(desk) {
            let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
            standing.failure = Some(failure.to_string());
            drop(standing);
            self.inbox.close();
            desk.fail(&failure);
        }
    }

    fn work(&mut self, desk: &Desk) -> Result<(), Failure> {
        let mut said = Vec::new();
        while let Some(letters) = self.inbox.take(Some(self.pause())) {
            let is_quiet = letters.is_empty();
            let mut out = Vec::new();
            if letters.iter().any(|letter| letter.tells_content) {
                self.make_room();
                self.sync_content()?;
            }
            for letter in letters {
                let input = Input::Heard { from: desk.client(), bytes: letter.bytes, key: None };
                self.member.step(self.clock.now(), input, &mut out);
            }
            self.member.tick(self.clock.now(), &mut out);
            let is_idle = is_quiet && out.is_empty();
            self.follow(out, &mut said)?;
            for bytes in said.drain(..) {
                desk.hear(&bytes);
            }
            self.content.owe(self.owed_bytes());
            if self.is_log_long()
                || self.member.directory().sizes().changes > CHANGES_MAX
                || is_idle && self.has_news()
            {
                self.checkpoint()?;
            }
            self.release();
            self.tell_standing();
        }
        self.checkpoint()
    }

    /// How long to wait for letters.
    fn pause(&self) -> Duration {
        let until = |at: Instant| at.since(self.clock.now()) + Duration::from_millis(1);
        let quiet = if self.has_news() { QUIET } else { Duration::from_secs(3_600) };
        self.member.wake_at().map_or(quiet, |at| until(at).min(quiet))
    }

    /// Whether something was decided that is not in the store.
    fn has_news(&self) -> bool {
        self.member.height() > self.stored.height
    }

    /// Does what the member wants done, until it wants nothing more.
    fn follow(&mut self, mut out: Vec<Output>, said: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
        while !out.is_empty() {
            let mut unsafe_mark = None;
            let mut wanted: Option<Absent> = None;
            for output in out.drain(..) {
                match output {
                    Output::Persist { mark, record } => {
                        self.log_bytes += record.len() as u64;
                        self.patiently(|group| group.log.append(mark, &record))?;
                    }
                    Output::Sync { mark } => unsafe_mark = Some(mark),
                    Output::Send { bytes, .. } => said.push(bytes),
                    Output::Load(absent) => wanted = Some(absent),
                    Output::Joined { .. }
                    | Output::Show { .. }
                    | Output::Tell { .. }
                    | Output::Replaced
                    | Output::Stale => {
                        unreachable!("only others make a member say that, and there are none")
                    }
                }
            }
            if let Some(mark) = unsafe_mark {
                self.patiently(|group| group.log.sync())?;
                self.member.step(self.clock.now(), Input::Persisted { mark }, &mut out);
            }
            if let Some(absent) = wanted {
                let loaded = self.store.load(&absent)?;
                self.member.step(self.clock.now(), Input::Loaded(loaded), &mut out);
            }
        }
        Ok(())
    }

    /// Makes contents safe, as often as it takes: nothing may be heard of them before.
    fn sync_content(&mut self) -> Result<(), Failure> {
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
    fn patiently(
        &mut self,
        mut act: impl FnMut(&mut Group) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            match act(self) {
                Err(failure) if failure.is_full() && !self.log.is_stopped() => {
                    if !self.ballast.free() {
                        self.wait(failure)?;
                    }
                }
                done => {
                    self.go_on();
                    return done;
                }
            }
        }
    }

    /// Waits a little for what may yet get better, unless the machine is to stop. What is said to the group
    /// meanwhile waits too, or is said again.
    fn wait(&mut self, failure: Failure) -> Result<(), Failure> {
        self.is_full = failure.is_full();
        if !self.is_waiting {
            eprintln!("croft: {failure}; everything waits until this gets better");
            self.is_waiting = true;
        }
        self.tell_standing();
        if self.inbox.rest(PAUSE) { Ok(()) } else { Err(failure) }
    }

    fn go_on(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            self.is_full = false;
            eprintln!("croft: it has got better, and all goes on");
            self.tell_standing();
        }
    }

    /// Gives up the ballast if there is hardly any room without it, and sets it aside again if there is
    /// plenty. Whether there is room for what must not fail.
    fn make_room(&mut self) -> bool {
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
    fn owed_bytes(&self) -> u64 {
        self.log_bytes * CHECKPOINT_FACTOR
    }

    /// Whether there is enough in the log for a checkpoint.
    fn is_log_long(&self) -> bool {
        if self.log_bytes > LOG_BYTES_MAX {
            return true;
        }
        // On a small disk, or on one that is nearly full.
        let owed_bytes = self.owed_bytes();
        let is_much = |space: Space| owed_bytes > space.available_bytes / (ROOM_PART - 1);
        owed_bytes > OWED_MIN && self.content.space().is_ok_and(is_much)
    }

    /// Lets go of records if there are too many.
    fn release(&mut self) {
        if self.member.directory().sizes().records > self.records_max {
            self.member.release_all();
            // Not again and again for those that have to stay.
            let left = self.member.directory().sizes().records;
            self.records_max = self.records_max.max(2 * left);
        }
    }

    /// Puts the state into the store.
    fn checkpoint(&mut self) -> Result<(), Failure> {
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
        let Some(checkpoint) = self.member.checkpoint() else { return Ok(()) };
        if checkpoint.mark > self.stored.mark {
            self.store.save(checkpoint.mark, &checkpoint.state, checkpoint.changes)?;
            // The log goes back to the checkpoint before this one, in case this one turns out bad.
            self.log.drop_before(self.stored.mark + 1)?;
            self.stored = Stored { mark: checkpoint.mark, height: checkpoint.height };
        }
        self.log_bytes = 0;
        self.content.owe(0);
        self.records_max = RECORDS_MAX;
        Ok(())
    }

    fn tell_standing(&self) {
        let sizes = self.member.directory().sizes();
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        *standing = Standing {
            height: self.member.height(),
            stored: self.stored.height,
            records: sizes.records,
            leases: sizes.leases,
            log_bytes: self.log.bytes(),
            torn: self.torn,
            is_full: self.is_full,
            failure: None,
        };
    }
}

impl Torn {
    /// Says it, a line for each.
    fn say(&self) {
        for (bytes, what) in [(self.log_bytes, "log"), (self.content_bytes, "pack of contents")] {
            if bytes > 0 {
                eprintln!(
                    "croft: a crash had torn {bytes} bytes off the end of the {what}; nobody was told that they were safe"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
