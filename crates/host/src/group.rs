//! Runs the directory group of this machine: a thread with the node, its log and its store.
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
use lease::Client;
use node::{Input, Node, Output, Recovery, Settings};

use crate::{
    Content, Failure, Log, Store,
    clock::Clock,
    desk::{Desk, Letter},
    mailbox::Mailbox,
};

/// With so many bytes in the log since the last checkpoint, there is one.
const LOG_BYTES_MAX: u64 = 8 << 20;
/// After so long without a word there is one too, so that a start is quick.
const QUIET: Duration = Duration::from_secs(5);
/// The most records at hand after a checkpoint; beyond, all go.
const RECORDS_MAX: usize = 100_000;

/// The group.
pub(crate) struct Group {
    node: Node,
    log: Log,
    store: Arc<Store>,
    content: Arc<Content>,
    clock: Clock,
    inbox: Arc<Mailbox<Letter>>,
    standing: Arc<Mutex<Standing>>,
    /// The last decision in the store.
    stored: u64,
    /// The last decision in the log.
    height: u64,
    /// Bytes in the log since the last checkpoint.
    log_bytes: u64,
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
    /// Why it has stopped, if it has.
    pub failure: Option<String>,
}

impl Group {
    /// The group as its log and store have left it.
    pub(crate) fn open(
        log_path: &Path,
        store: Arc<Store>,
        content: Arc<Content>,
        clock: Clock,
        inbox: Arc<Mailbox<Letter>>,
        client: Client,
    ) -> Result<Group, Failure> {
        let settings = Settings { is_stored: true, ..Settings::default() };
        let checkpoint = store.checkpoint()?;
        let stored = checkpoint.as_ref().map_or(0, |(height, _)| *height);
        let state = checkpoint.as_ref().map(|(_, state)| state.as_slice());
        let mut recovery = Recovery::new(settings, state)?;
        let (log, mut recovered) = Log::open(log_path)?;
        store.check_reach(stored, log.first())?;
        store.check_end(stored, log.next())?;
        while let Some((_, record)) = recovered.next()? {
            let mut absent = recovery.replay(&record)?;
            while let Some(wanted) = absent {
                absent = recovery.supply(store.load(&wanted)?);
            }
        }
        let height = recovery.height();
        let mut node = recovery.finish(clock.now());
        let mut out = Vec::new();
        if !node.directory().hears(client) {
            node.step(clock.now(), Input::Admit { client, users: Users::Any }, &mut out);
        }
        let standing = Arc::default();
        let mut group = Group {
            node,
            log,
            store,
            content,
            clock,
            inbox,
            standing,
            stored,
            height,
            log_bytes: 0,
        };
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
                self.content.sync()?;
            }
            for letter in letters {
                let input = Input::Heard { from: desk.client(), bytes: letter.bytes };
                self.node.step(self.clock.now(), input, &mut out);
            }
            self.node.tick(self.clock.now(), &mut out);
            let is_idle = is_quiet && out.is_empty();
            self.follow(out, &mut said)?;
            for bytes in said.drain(..) {
                desk.hear(&bytes);
            }
            if self.log_bytes > LOG_BYTES_MAX || is_idle && self.height > self.stored {
                self.checkpoint()?;
            }
            self.tell_standing();
        }
        self.checkpoint()
    }

    /// How long to wait for letters.
    fn pause(&self) -> Duration {
        let until = |at: Instant| at.since(self.clock.now()) + Duration::from_millis(1);
        let quiet = if self.height > self.stored { QUIET } else { Duration::from_secs(3_600) };
        self.node.wake_at().map_or(quiet, |at| until(at).min(quiet))
    }

    /// Does what the node wants done, until it wants nothing more.
    fn follow(&mut self, mut out: Vec<Output>, said: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
        while !out.is_empty() {
            let mut is_appended = false;
            let mut wanted: Option<Absent> = None;
            for output in out.drain(..) {
                match output {
                    Output::Persist { height, record } => {
                        self.log_bytes += record.len() as u64;
                        self.log.append(height, &record)?;
                        self.height = height;
                        is_appended = true;
                    }
                    Output::Send { bytes, .. } => said.push(bytes),
                    Output::Load(absent) => wanted = Some(absent),
                }
            }
            if is_appended {
                self.log.sync()?;
                let input = Input::Persisted { height: self.height };
                self.node.step(self.clock.now(), input, &mut out);
            }
            if let Some(absent) = wanted {
                let loaded = self.store.load(&absent)?;
                self.node.step(self.clock.now(), Input::Loaded(loaded), &mut out);
            }
        }
        Ok(())
    }

    /// Puts the state into the store.
    fn checkpoint(&mut self) -> Result<(), Failure> {
        let Some(checkpoint) = self.node.checkpoint() else { return Ok(()) };
        if checkpoint.height > self.stored {
            self.store.save(checkpoint.height, &checkpoint.state, checkpoint.changes)?;
            // The log goes back to the checkpoint before this one, in case this one turns out bad.
            self.log.drop_before(self.stored + 1)?;
            self.stored = checkpoint.height;
        }
        self.log_bytes = 0;
        if self.node.directory().sizes().records > RECORDS_MAX {
            self.node.release_all();
        }
        Ok(())
    }

    fn tell_standing(&self) {
        let sizes = self.node.directory().sizes();
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        *standing = Standing {
            height: self.height,
            stored: self.stored,
            records: sizes.records,
            leases: sizes.leases,
            log_bytes: self.log.bytes(),
            failure: None,
        };
    }
}
