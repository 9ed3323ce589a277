//! Runs this machine's member of the directory group: a thread with it, its log and its store.
//!
//! What the group is told is written to the log and made safe, many commands at a time; then it takes
//! effect and is answered. Now and then the state goes to the store, and the log before it away.

mod announce;
mod decreeing;
mod disk;
mod inviting;
mod joining;
#[cfg(test)]
pub(crate) mod liar;
mod mail;
mod opening;
mod peers;
mod renewing;
mod rights;
mod standing;
mod survivor;

use std::{
    sync::{Arc, Mutex, PoisonError, mpsc::SyncSender},
    time::Duration,
};

use base::{FileId, Instant, Machine, PublicKey};
use directory::{Absent, Account, Holder};
use group::{Decision, Ed25519, Rescue, Sealed};
use lease::{Client, Terms};
use node::{Input, Member, Output, Seating};
use overlay::{Consent, Decree, Renewal, Renewer};
use wire::{Answer, Join, Pin, Survivor, Ticket};

use crate::{
    Content, Failure, Key, Log, Store,
    ballast::Ballast,
    clock::Clock,
    desk::{Desk, Letter},
    fsck::Survey,
    mailbox::Mailbox,
    net::Lookout,
};
pub use opening::Torn;
pub(crate) use renewing::ask_around;
pub use standing::{
    AstrayStanding, ForkStanding, MachineStanding, RescueStanding, Standing, UserStanding,
    since_recovery,
};

use decreeing::Decreeing;
use peers::Peers;
use standing::{Listed, Roster, went_astray};

/// After so long without a word there is one too, so that a start is quick.
const QUIET: Duration = Duration::from_secs(5);
/// A disk that takes longer is told of.
const SLOW: Duration = Duration::from_secs(10);

/// What a machine is told that the authority has sent away.
const SENT_AWAY: &str = "the cell's authority has sent this machine away; to come back, make a new \
                         directory and join with a new invitation";

/// What reaches the group's thread.
pub(crate) enum Post {
    /// This machine's client says something.
    Letter(Letter),
    /// Another machine says something.
    Frame { from: PublicKey, bytes: Vec<u8> },
    /// There is a connection with another machine.
    Met(PublicKey),
    /// Somebody has come with a code of this machine's.
    Invited { pin: Box<Pin>, reply: SyncSender<Answer> },
    /// A machine wants to join.
    Join { join: Box<Join>, reply: SyncSender<Answer> },
    /// The authority says something.
    Decree { decree: Box<Decree>, reply: SyncSender<Answer> },
    /// A user agrees that this machine acts for them.
    Agree { consent: Consent, reply: SyncSender<Answer> },
    /// Enough members say for whom this machine acts; perhaps somebody waits to hear that it knows.
    Served { ticket: Box<Ticket>, reply: Option<SyncSender<Answer>> },
    /// The group does not let this machine act for whom it thought.
    Introduce,
    /// The certificate of this machine was renewed.
    Renewed(Renewal),
    /// Somebody wants to know how much this machine has.
    Survivor(SyncSender<Survivor>),
    /// The authority lets the group go on from this machine.
    Rescue { rescue: Sealed<Rescue>, reply: SyncSender<Answer> },
    /// Whoever runs this machine wants the rescue obeyed that it has heard of.
    Obey(SyncSender<Answer>),
    /// Somebody shows how the members have changed.
    Changes(Vec<Decision>),
    /// Somebody wants to know which file has this inode number.
    Find { serial: u64, reply: SyncSender<Answer> },
    /// Somebody wants to know for whom a machine acts, and who may use a file how.
    Rights { machine: PublicKey, serial: u64, file: FileId, reply: SyncSender<Answer> },
    /// Somebody wants to know who may have how much, and which machine each one is.
    Accounts(SyncSender<Vec<(Holder, Option<Key>, Account)>>),
    /// Somebody wants to look at all records: none while some are not stored, or why it can't be.
    Survey(SyncSender<Option<Result<Survey, String>>>),
    /// From now on this machine lies.
    #[cfg(test)]
    Corrupt(Box<liar::Corruption>),
}

/// The group.
pub(crate) struct Group {
    member: Member<Ed25519>,
    /// This machine's key, and which client it is.
    me: (PublicKey, Client),
    /// The other machines, if it listens to any.
    peers: Option<Peers>,
    /// Who was sent away, if it listens to any.
    decreeing: Option<Decreeing>,
    log: Log,
    store: Arc<Store>,
    content: Arc<Content>,
    clock: Clock,
    inbox: Arc<Mailbox<Post>>,
    standing: Arc<Mutex<Standing>>,
    /// The machines and users in the member's book, for those who ask how it stands.
    listed: Arc<Listed>,
    stored: Stored,
    /// Bytes in the log since the last checkpoint.
    log_bytes: u64,
    /// Processor time that the log has taken, in nanoseconds.
    log_used: u64,
    ballast: Ballast,
    torn: Torn,
    /// The most records at hand, or more if so many are not in the store yet.
    records_max: usize,
    /// Whether it has been said that it waits for something, until it need not any more.
    is_waiting: bool,
    is_full: bool,
    /// The last height that was decided, and when this machine has heard of it.
    decided: (u64, Instant),
    renewer: Renewer,
    /// Who waits to hear that the group goes on from here.
    rescuing: Option<SyncSender<Answer>>,
    /// Whether it has been said that the group goes on from somebody else.
    is_passed_over: bool,
    /// The greatest number of a recovery of which it was said that it is not followed.
    fork_told: u32,
}

/// How far the store reaches.
#[derive(Clone, Copy, Debug, Default)]
struct Stored {
    /// The last record of the log that is not needed any more.
    mark: u64,
    /// The last decision.
    height: u64,
}

/// How long promises last: as long as the session that they are made in, also through a night in which the
/// machine sleeps. Whoever else wants something has it recalled.
pub(crate) fn terms() -> Terms {
    Terms { lease: Duration::from_secs(10 * 365 * 86_400), ..Terms::default() }
}

impl Group {
    /// Has a say in who sits in the group, if it listens to others.
    pub(crate) fn attend(&mut self, seating: Seating) {
        if self.peers.is_some() {
            self.member.attend(seating, self.clock.now());
        }
    }

    /// Where it says how it stands.
    pub(crate) fn standing(&self) -> Arc<Mutex<Standing>> {
        Arc::clone(&self.standing)
    }

    /// Who shows how its network stands, if it has one.
    pub(crate) fn lookout(&self) -> Option<Lookout> {
        self.peers.as_ref().map(Peers::lookout)
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
        while let Some(posts) = self.inbox.take(Some(self.pause())) {
            let is_quiet = posts.is_empty();
            let (mut out, mut surveyors) = (Vec::new(), Vec::new());
            let tells_content =
                |post: &Post| matches!(post, Post::Letter(letter) if letter.tells_content);
            if posts.iter().any(|(_, post)| tells_content(post)) {
                self.make_room();
                self.sync_content()?;
            }
            for (from, post) in posts {
                let used = self.clock.used();
                match post {
                    Post::Letter(letter) => self.on_letter(letter.request, &mut out),
                    Post::Frame { from, bytes } => {
                        self.on_frame(from, bytes, &mut said, &mut out)?;
                    }
                    Post::Met(other) => self.on_met(other, &mut out)?,
                    Post::Invited { pin, reply } => self.on_invited(*pin, &reply),
                    Post::Join { join, reply } => self.on_join(join, reply, &mut out),
                    Post::Decree { decree, reply } => self.on_decree(decree, reply, &mut out),
                    Post::Agree { consent, reply } => self.on_agree(consent, reply, &mut out),
                    Post::Served { ticket, reply } => self.on_served(ticket, reply),
                    Post::Introduce => self.introduce(),
                    Post::Renewed(renewal) => self.on_renewed(renewal, &mut out),
                    // Whoever asked may be gone.
                    Post::Survivor(reply) => _ = reply.try_send(self.survivor()),
                    Post::Find { serial, reply } => _ = reply.try_send(self.find(serial)?),
                    Post::Rights { machine, serial, file, reply } => {
                        _ = reply.try_send(self.rights(&machine, serial, &file)?);
                    }
                    Post::Accounts(reply) => _ = reply.try_send(self.accounts()),
                    Post::Rescue { rescue, reply } => self.on_rescue(rescue, reply, &mut out),
                    Post::Obey(reply) => self.on_obey(&reply, &mut out),
                    Post::Changes(changes) => self.on_changes(changes, &mut out),
                    Post::Survey(reply) => surveyors.push(reply),
                    #[cfg(test)]
                    Post::Corrupt(corruption) => self.corrupt(*corruption),
                }
                let cost = Duration::from_nanos(self.clock.used().saturating_sub(used));
                self.inbox.charge(&from, cost);
                if self.is_much_changed() {
                    self.follow(std::mem::take(&mut out), &mut said)?;
                    self.checkpoint()?;
                }
            }
            self.member.tick(self.clock.now(), &mut out);
            self.tell_cell(&mut out)?;
            self.tick_decrees(&mut out)?;
            let is_idle = is_quiet && out.is_empty();
            self.follow(out, &mut said)?;
            for bytes in said.drain(..) {
                desk.hear(&bytes);
            }
            self.read_roll();
            self.renew_in_time(crate::cell::seconds_now());
            self.note_decided();
            self.tell_passed_over();
            self.tell_fork();
            self.content.owe(self.owed_bytes());
            if self.is_log_long()
                || self.is_much_changed()
                || is_idle && self.has_news()
                || !surveyors.is_empty()
            {
                self.checkpoint()?;
                self.await_room()?;
            }
            for reply in surveyors {
                // Whoever asked may be gone.
                _ = reply.try_send(self.survey());
            }
            self.release();
            self.tell_standing();
            let away = self.inbox.away();
            if away > SLOW {
                let seconds = away.as_secs();
                eprintln!(
                    "croft: the disk is slow or busy; everything has waited {seconds} s for it"
                );
            }
        }
        self.checkpoint()
    }

    /// The file with an inode number, as far as this machine has heard.
    fn find(&self, serial: u64) -> Result<Answer, Failure> {
        if !self.member.replica().is_member() {
            return Ok(Answer::Refused(
                "this machine has no vote; ask a member of the group".into(),
            ));
        }
        match self.member.directory().newborn(serial) {
            Some(file) => Ok(Answer::File(Some(file.clone()))),
            None => self.store.file(serial).map(Answer::File),
        }
    }

    /// Who may have how much, and has.
    fn accounts(&self) -> Vec<(Holder, Option<Key>, Account)> {
        let key = |holder: &Holder| match holder {
            Holder::Machine(client) => {
                let known = self.member.book().machine(*client).map(|machine| Key(machine.key));
                known.or_else(|| (*client == self.me.1).then_some(Key(self.me.0)))
            }
            Holder::Everybody | Holder::User(_) => None,
        };
        let accounts = self.member.directory().accounts().into_iter();
        accounts.map(|(holder, account)| (holder, key(&holder), account)).collect()
    }

    /// How long to wait for letters.
    fn pause(&self) -> Duration {
        let until = |at: Instant| at.since(self.clock.now()) + Duration::from_millis(1);
        let quiet = if self.has_news() { QUIET } else { Duration::from_secs(3_600) };
        let calls = self.decreeing.as_ref().and_then(Decreeing::wake_at);
        let wake_at = self.member.wake_at().into_iter().chain(calls).min();
        wake_at.map_or(quiet, |at| until(at).min(quiet))
    }

    /// Whether something was decided that is not in the store.
    fn has_news(&self) -> bool {
        self.member.height() > self.stored.height
    }

    /// Does what the member wants done, until it wants nothing more.
    fn follow(&mut self, mut out: Vec<Output>, said: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
        while !out.is_empty() {
            let is_replaced = out.contains(&Output::Replaced);
            if is_replaced {
                // Before the log says so: a log that goes on from a state that is not there is of no use.
                self.replace_store()?;
            }
            let mut is_book_read = !is_replaced;
            let mut is_sent_away = false;
            let mut unsafe_mark = None;
            let mut wanted: Option<Absent> = None;
            let (mut joined, mut decided) = (Vec::new(), Vec::new());
            for output in out.drain(..) {
                match output {
                    Output::Persist { mark, record } => {
                        self.log_bytes += record.len() as u64;
                        self.patiently(|group| group.log.append(mark, &record))?;
                    }
                    Output::Sync { mark } => unsafe_mark = Some(mark),
                    Output::Send { to, slot, bytes } => self.say(to, slot, bytes, said),
                    Output::Show { to, bytes } => self.show(to, bytes),
                    Output::Tell { to, bytes } => {
                        if let Some(peers) = &self.peers {
                            peers.send(&to.key, bytes);
                        }
                    }
                    Output::Joined { machine, outcome: Err(refused) } if machine == self.me.0 => {
                        return Err(Failure::Unfit(format!(
                            "this machine can't be of its cell: {refused}"
                        )));
                    }
                    Output::Joined { machine, outcome } => {
                        joined.push((machine, outcome));
                        is_book_read = false;
                    }
                    Output::Decreed { subject, decree, outcome } => {
                        is_sent_away |= self.member.book().is_revoked(&self.me.0);
                        decided.push((subject, decree, outcome));
                        is_book_read = false;
                    }
                    Output::Rescued(rescue) => self.on_rescued(&rescue),
                    Output::Replaced => {}
                    Output::Misled => {
                        self.forget()?;
                        is_book_read = false;
                    }
                    Output::Load(absent) => wanted = Some(absent),
                    Output::Astray(astray) => {
                        self.tell_standing();
                        return Err(Failure::Unfit(went_astray(&astray)));
                    }
                    Output::Stale => {
                        let what = "this machine's disk is older than what it has said; make a new \
                                    directory and join with a new invitation";
                        return Err(Failure::Unfit(what.into()));
                    }
                }
            }
            if is_sent_away {
                // So that it is known at the next start too.
                self.patiently(|group| group.log.sync())?;
                return Err(Failure::Unfit(SENT_AWAY.into()));
            }
            if !is_book_read {
                self.read_book();
            }
            for (machine, outcome) in joined {
                if let Some(peers) = &mut self.peers {
                    peers.on_joined(&machine, outcome, self.member.book());
                }
            }
            // Whoever waits for the answer may rely on it that nobody is let in here any more.
            for (subject, decree, outcome) in decided {
                if outcome.is_ok() {
                    self.on_decided(*decree, &mut out)?;
                }
                if let Some(peers) = &mut self.peers {
                    peers.on_decreed(&subject, outcome);
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

    fn tell_standing(&self) {
        let (directory, replica) = (self.member.directory(), self.member.replica());
        let sizes = directory.sizes();
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        *standing = Standing {
            height: self.member.height(),
            stored: self.stored.height,
            records: sizes.records,
            leases: sizes.leases,
            log_bytes: self.log.bytes(),
            log_us: self.log_used / 1_000,
            dropped: self.inbox.dropped(),
            sessions: directory.clients().filter(|(_, client)| client.is_live).count(),
            members: replica.members().list().len(),
            quorum: replica.members().quorum(),
            machines: self.listed.machines.len(),
            address: self.peers.as_ref().and_then(|peers| peers.address().ok()),
            torn: self.torn,
            is_full: self.is_full,
            failure: None,
            rescues: self.member.book().rescues().iter().map(RescueStanding::of).collect(),
            decided_at: Some(self.decided.1),
            quiet_s: self.quiet_s(),
            fork: ForkStanding::of(replica),
            is_passed_over: replica.is_passed_over(),
            astray: replica.astray().map(AstrayStanding::of),
            roster: Roster::new(replica, Arc::clone(&self.listed)),
            is_named: self.member.book().is_named(),
            expires: self.peers.as_ref().map(Peers::expires),
        };
    }
}

#[cfg(test)]
mod tests;
