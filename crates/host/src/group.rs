//! Runs this machine's server roles: a thread with a `node::Server`, its log and its store.
//!
//! What the group is told is written to the log and made safe, many commands at a time; then it takes
//! effect and is answered. Now and then the state goes to the store, and the log before it away.

mod decreeing;
mod disk;
mod inviting;
mod joining;
#[cfg(test)]
pub(crate) mod liar;
mod opening;
mod peers;
mod renewing;
mod rights;
mod standing;
mod survivor;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, mpsc::SyncSender},
    time::Duration,
};

use base::{FileId, Instant, Machine, PublicKey};
use directory::{Absent, Account, Holder};
use group::{Decision, Ed25519, Rescue, Sealed};
use lease::{Client, Terms};
use node::{
    Input as MemberInput, Seating, Server,
    server::{Input, Output, Token},
};
use overlay::{Consent, Decree, Renewal};
use wire::{Answer, Join, Pin, Survivor};

use crate::{
    Content, Failure, Key, Log, Store,
    ballast::Ballast,
    cell::seconds_now,
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
    /// The group does not let this machine act for whom it thought.
    Introduce,
    /// The certificate of this machine was renewed.
    Renewed(Renewal),
    /// What came of what another machine was asked.
    Answered { token: Token, answer: Option<Box<Answer>> },
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
    server: Server<Ed25519>,
    /// This machine's key, and which client it is.
    me: (PublicKey, Client),
    /// The other machines, if it listens to any.
    peers: Option<Peers>,
    /// Who waits to hear what. As many as the server keeps waiting, and the token of the last.
    replies: BTreeMap<Token, SyncSender<Answer>>,
    token: Token,
    /// Where this machine lives.
    home: PathBuf,
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
            self.server.attend(seating, self.clock.now());
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
            self.step(Input::Seconds(seconds_now()), &mut out);
            for (from, post) in posts {
                let used = self.clock.used();
                match post {
                    Post::Letter(letter) => self.step(Input::Wanted(letter.request), &mut out),
                    #[cfg(test)]
                    Post::Frame { from, bytes } if !self.heeds(&from, &bytes) => {}
                    Post::Frame { from, bytes } => {
                        self.step(Input::Frame { from, bytes }, &mut out);
                    }
                    Post::Met(other) => self.step(Input::Met(other), &mut out),
                    Post::Invited { pin, reply } => self.on_invited(*pin, &reply),
                    Post::Join { join, reply } => {
                        let token = self.token_of(reply);
                        self.step(Input::Join { join, token }, &mut out);
                    }
                    Post::Decree { decree, reply } => {
                        let token = self.token_of(reply);
                        self.step(Input::Decree { decree, token }, &mut out);
                    }
                    Post::Answered { token, answer } => {
                        let answer = answer.map(|answer| *answer);
                        self.step(Input::Answered { token, answer }, &mut out);
                    }
                    Post::Agree { consent, reply } => self.on_agree(consent, reply, &mut out),
                    Post::Introduce => self.introduce(&mut out),
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
                    Post::Changes(changes) => self.step(Input::Changes(changes), &mut out),
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
            self.server.tick(self.clock.now(), &mut out);
            let is_idle = is_quiet && out.is_empty();
            self.follow(out, &mut said)?;
            for bytes in said.drain(..) {
                desk.hear(&bytes);
            }
            self.inbox.seat(self.server.seated());
            if let Some(peers) = &mut self.peers {
                peers.expire();
            }
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
        if !self.server.member().replica().is_member() {
            return Ok(Answer::Refused(
                "this machine has no vote; ask a member of the group".into(),
            ));
        }
        match self.server.member().directory().newborn(serial) {
            Some(file) => Ok(Answer::File(Some(file.clone()))),
            None => self.store.file(serial).map(Answer::File),
        }
    }

    /// Who may have how much, and has.
    fn accounts(&self) -> Vec<(Holder, Option<Key>, Account)> {
        let key = |holder: &Holder| match holder {
            Holder::Machine(client) => {
                let known =
                    self.server.member().book().machine(*client).map(|machine| Key(machine.key));
                known.or_else(|| (*client == self.me.1).then_some(Key(self.me.0)))
            }
            Holder::Everybody | Holder::User(_) => None,
        };
        let accounts = self.server.member().directory().accounts().into_iter();
        accounts.map(|(holder, account)| (holder, key(&holder), account)).collect()
    }

    /// How long to wait for letters.
    fn pause(&self) -> Duration {
        let until = |at: Instant| at.since(self.clock.now()) + Duration::from_millis(1);
        let quiet = if self.has_news() { QUIET } else { Duration::from_secs(3_600) };
        self.server.wake_at().map_or(quiet, |at| until(at).min(quiet))
    }

    /// Whether something was decided that is not in the store.
    fn has_news(&self) -> bool {
        self.server.member().height() > self.stored.height
    }

    fn step(&mut self, input: Input, out: &mut Vec<Output>) {
        self.server.step(self.clock.now(), input, out);
    }

    /// With what the server is told that somebody waits for an answer.
    fn token_of(&mut self, reply: SyncSender<Answer>) -> Token {
        self.token += 1;
        self.replies.insert(self.token, reply);
        self.token
    }

    /// Does what the server wants done, until it wants nothing more.
    fn follow(&mut self, mut out: Vec<Output>, said: &mut Vec<Vec<u8>>) -> Result<(), Failure> {
        while !out.is_empty() {
            let mut unsafe_mark = None;
            let mut wanted: Option<Absent> = None;
            for output in std::mem::take(&mut out) {
                match output {
                    Output::Persist { mark, record } => {
                        self.log_bytes += record.len() as u64;
                        self.patiently(|group| group.log.append(mark, &record))?;
                    }
                    Output::Sync { mark } => unsafe_mark = Some(mark),
                    Output::Load(absent) => wanted = Some(absent),
                    Output::Replaced => self.replace_store()?,
                    Output::Misled => self.forget()?,
                    Output::Hear(bytes) => said.push(bytes),
                    Output::Reply { token, answer } => {
                        if let Some(reply) = self.replies.remove(&token) {
                            // Whoever waited may be gone.
                            _ = reply.try_send(answer);
                        }
                    }
                    Output::Keep => self.keep_decrees()?,
                    Output::Book => self.read_book(),
                    Output::Rescued(rescue) => self.on_rescued(&rescue),
                    Output::Renewed(renewal) => self.on_renewed(*renewal, &mut out),
                    Output::Unnoted { by, why } => {
                        eprintln!("croft: {by:?} does not note where this machine is: {why}");
                    }
                    Output::SentAway => {
                        // So that it is known at the next start too.
                        self.patiently(|group| group.log.sync())?;
                        return Err(Failure::Unfit(SENT_AWAY.into()));
                    }
                    Output::Unfit(refused) => {
                        return Err(Failure::Unfit(format!(
                            "this machine can't be of its cell: {refused}"
                        )));
                    }
                    Output::Astray(astray) => {
                        self.tell_standing();
                        return Err(Failure::Unfit(went_astray(&astray)));
                    }
                    Output::Stale => {
                        let what = "this machine's disk is older than what it has said; make a new \
                                    directory and join with a new invitation";
                        return Err(Failure::Unfit(what.into()));
                    }
                    Output::Ask { token, to, query } => self.ask(token, to, query),
                    to_others => {
                        if let Some(peers) = &mut self.peers {
                            peers.follow(to_others);
                        }
                    }
                }
            }
            if let Some(mark) = unsafe_mark {
                self.patiently(|group| group.log.sync())?;
                self.step(Input::Member(MemberInput::Persisted { mark }), &mut out);
            }
            if let Some(absent) = wanted {
                let loaded = self.store.load(&absent)?;
                self.step(Input::Member(MemberInput::Loaded(loaded)), &mut out);
            }
        }
        Ok(())
    }

    /// The book of machines may have changed: others may have to be met.
    fn read_book(&mut self) {
        let book = self.server.member().book();
        self.listed = Roster::read(book);
        if let Some(peers) = &mut self.peers {
            peers.read_book(book, &self.me.0);
        }
    }

    fn tell_standing(&self) {
        let (directory, replica) =
            (self.server.member().directory(), self.server.member().replica());
        let sizes = directory.sizes();
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        *standing = Standing {
            height: self.server.member().height(),
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
            rescues: self.server.member().book().rescues().iter().map(RescueStanding::of).collect(),
            decided_at: Some(self.decided.1),
            quiet_s: self.quiet_s(),
            fork: ForkStanding::of(replica),
            is_passed_over: replica.is_passed_over(),
            astray: replica.astray().map(AstrayStanding::of),
            roster: Roster::new(replica, Arc::clone(&self.listed)),
            is_named: self.server.member().book().is_named(),
            expires: self.peers.as_ref().map(Peers::expires),
        };
    }
}

#[cfg(test)]
mod tests;
