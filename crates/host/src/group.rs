//! Runs this machine's member of the directory group: a thread with it, its log and its store.
//!
//! What the group is told is written to the log and made safe, many commands at a time; then it takes
//! effect and is answered. Now and then the state goes to the store, and the log before it away.

mod announce;
mod joining;
#[cfg(test)]
pub(crate) mod liar;
mod peers;
mod renewing;
mod standing;
mod survivor;

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError, mpsc::SyncSender},
    time::Duration,
};

use base::{Instant, Machine, PublicKey};
use directory::{Absent, message::Request};
use group::{Decision, Ed25519, Rescue, Roll, Sealed, Tip};
use lease::{Client, Policy, Terms};
use node::{Base, Input, Join, Limits, Member, Output, Recovery, Seating, Settings};
use overlay::{Consent, Decree, Renewal, Renewer};
use wire::{Audience, Message, Slot, Word};

use crate::{
    Content, Failure, Log, Neighbours, Store,
    ballast::Ballast,
    cell::{Answer, Membership, Ticket},
    clock::Clock,
    content::Space,
    desk::{Desk, Letter},
    fsck::Survey,
    key,
    mailbox::Mailbox,
    net::Lookout,
};
pub(crate) use renewing::ask_around;
pub use standing::{MachineStanding, RescueStanding, Standing, UserStanding, since_recovery};
pub(crate) use survivor::Survivor;

use peers::Peers;
use standing::{Listed, Roster};

/// There is a checkpoint when the log since the last one is long, and with so much in it that a checkpoint may take
/// this part of the room that is left.
const ROOM_PART: u64 = 4;
/// A checkpoint takes so many times as much as the log since the last one: records are longer than what
/// changes them, and are written twice. An estimate: with short names the store alone took 3 to 6 times as much.
const CHECKPOINT_FACTOR: u64 = 8;
/// For less it is never done, however little room is left.
const OWED_MIN: u64 = 1 << 20;
/// After so long without a word there is one too, so that a start is quick.
const QUIET: Duration = Duration::from_secs(5);
/// While the disk is full there are no checkpoints. With so many times as much that waits for one as otherwise may,
/// nothing more is taken.
const FULL_FACTOR: usize = 8;
/// A disk that takes longer is told of.
const SLOW: Duration = Duration::from_secs(10);
/// What has found no room, or could not be opened, is tried again after this.
const PAUSE: Duration = Duration::from_millis(250);

/// What a machine is told that the authority has sent away.
const SENT_AWAY: &str = "the cell's authority has sent this machine away; to come back, make a new \
                         directory and join with a new invitation";

/// What reaches the group's thread.
pub(crate) enum Post {
    /// This machine's client says something.
    Letter(Letter),
    /// Another machine says something.
    Frame { from: PublicKey, bytes: Vec<u8> },
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
    /// Somebody shows how the members have changed.
    Changes(Vec<Decision>),
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

/// How long promises last: as long as the session that they are made in, also through a night in which the
/// machine sleeps. Whoever else wants something has it recalled.
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
        inbox: Arc<Mailbox<Post>>,
        membership: Membership,
        neighbours: Arc<Neighbours>,
    ) -> Result<Group, Failure> {
        let key = key::read(&home.join("key"))?;
        let identity = membership.identity(&key);
        let me = (key.public(), membership.client);
        let policy = Policy { gives_all_to_one: true, ..Policy::default() };
        let settings = Settings { is_stored: true, terms: terms(), policy, ..Settings::default() };
        let checkpoint = store.checkpoint()?;
        let mark = checkpoint.as_ref().map_or(0, |(mark, _)| *mark);
        let first = Tip::first(vec![membership.founder]).expect("one is a group");
        let base = match &checkpoint {
            Some((_, state)) => Base::Stored(state),
            None => Base::First(&first),
        };
        let group = group::Settings::default();
        let mut recovery = Recovery::new(settings, group, identity, base, mark, clock.now())?;
        let stored = Stored { mark, height: recovery.height() };
        let limits = Limits::planned(group::Settings::default());
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
        if member.book().is_revoked(&me.0) {
            return Err(Failure::Unfit(SENT_AWAY.into()));
        }
        let join = membership.own_join(&key);
        let known = member.book().client(&me.0).and_then(|client| member.book().machine(client));
        let expires = join.certificate.verify(&membership.authority, 0).map(|good| good.expires);
        let has_moved = known.is_none_or(|known| {
            known.whereabouts.addresses != join.whereabouts.addresses
                || expires.is_ok_and(|expires| expires > known.expires)
        });
        let is_alone = member.replica().is_alone();
        if is_alone && has_moved {
            // Whoever founds a cell is the first to join it.
            member.step(clock.now(), Input::Join(Box::new(join.clone())), &mut out);
        }
        let peers = match membership.listen {
            Some(bind) => {
                let mail_back = Arc::clone(&inbox);
                let (inbox, content) = (Arc::clone(&inbox), Arc::clone(&content));
                let beside = Arc::clone(&neighbours);
                let mail = (inbox, limits);
                let peers = Peers::start(home, membership, bind, mail, content, neighbours)?;
                if has_moved || !is_alone {
                    announce::announce(peers.lookout(), beside, mail_back, join, None);
                }
                Some(peers)
            }
            None => None,
        };
        let standing = Arc::default();
        let mut group = Group {
            member,
            me,
            peers,
            log,
            store,
            content,
            clock,
            inbox,
            standing,
            listed: Arc::default(),
            stored,
            log_bytes,
            log_used: 0,
            ballast: Ballast::of(home),
            torn,
            records_max: limits.records_max,
            is_waiting: false,
            is_full: false,
            decided: (0, clock.now()),
            renewer: Renewer::default(),
            rescuing: None,
            is_passed_over: false,
        };
        group.content.owe(group.owed_bytes());
        group.make_room();
        group.follow(out, &mut Vec::new())?;
        group.read_book();
        group.tell_standing();
        Ok(group)
    }

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
            if posts.iter().any(tells_content) {
                self.make_room();
                self.sync_content()?;
            }
            for post in posts {
                match post {
                    Post::Letter(letter) => self.on_letter(letter.request, &mut out),
                    Post::Frame { from, bytes } => {
                        self.on_frame(from, bytes, &mut said, &mut out);
                    }
                    Post::Join { join, reply } => self.on_join(join, reply, &mut out),
                    Post::Decree { decree, reply } => self.on_decree(decree, reply, &mut out),
                    Post::Agree { consent, reply } => self.on_agree(consent, reply, &mut out),
                    Post::Served { ticket, reply } => self.on_served(ticket, reply),
                    Post::Introduce => self.introduce(),
                    Post::Renewed(renewal) => self.on_renewed(renewal, &mut out),
                    // Whoever asked may be gone.
                    Post::Survivor(reply) => _ = reply.try_send(self.survivor()),
                    Post::Rescue { rescue, reply } => self.on_rescue(rescue, reply, &mut out),
                    Post::Changes(changes) => self.on_changes(changes, &mut out),
                    Post::Survey(reply) => surveyors.push(reply),
                    #[cfg(test)]
                    Post::Corrupt(corruption) => self.corrupt(*corruption),
                }
                if self.is_much_changed() {
                    self.follow(std::mem::take(&mut out), &mut said)?;
                    self.checkpoint()?;
                }
            }
            self.member.tick(self.clock.now(), &mut out);
            let is_idle = is_quiet && out.is_empty();
            self.follow(out, &mut said)?;
            for bytes in said.drain(..) {
                desk.hear(&bytes);
            }
            self.read_roll();
            self.renew_in_time(crate::cell::seconds_now());
            self.note_decided();
            self.tell_passed_over();
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
            let is_replaced = out.contains(&Output::Replaced);
            if is_replaced {
                // Before the log says so: a log that goes on from a state that is not there is of no use.
                self.replace_store()?;
            }
            let mut is_book_read = !is_replaced;
            let mut is_sent_away = false;
            let mut unsafe_mark = None;
            let mut wanted: Option<Absent> = None;
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
                        let roll = Roll::from(self.member.replica().tip());
                        if let Some(peers) = &mut self.peers {
                            peers.on_joined(&machine, outcome, roll, self.member.book());
                        }
                        is_book_read = false;
                    }
                    Output::Decreed { subject, outcome } => {
                        is_sent_away |= self.member.book().is_revoked(&self.me.0);
                        if let Some(peers) = &mut self.peers {
                            peers.on_decreed(&subject, outcome);
                        }
                        is_book_read = false;
                    }
                    Output::Rescued(rescue) => self.on_rescued(&rescue),
                    Output::Replaced => {}
                    Output::Load(absent) => wanted = Some(absent),
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

    /// This machine's client wants something.
    fn on_letter(&mut self, request: Request, out: &mut Vec<Output>) {
        let (now, (me, client)) = (self.clock.now(), self.me);
        if self.member.replica().is_alone() {
            let bytes = wire::seal(&Message::Request(request));
            return self.member.step(now, Input::Heard { from: client, bytes, key: None }, out);
        }
        let Some(peers) = &mut self.peers else { return };
        let mut said = Vec::new();
        let bytes = peers.ear().seal(request);
        peers.ear().say(now, bytes, &mut said);
        peers.ask_around(now);
        for (seat, bytes) in said {
            if seat.key == me {
                self.member.step(now, Input::Heard { from: client, bytes, key: Some(me) }, out);
            } else {
                peers.send(&seat.key, bytes);
            }
        }
    }

    /// Another machine says something.
    fn on_frame(
        &mut self,
        from: PublicKey,
        bytes: Vec<u8>,
        said: &mut Vec<Vec<u8>>,
        out: &mut Vec<Output>,
    ) {
        #[cfg(test)]
        if !self.heeds(&from, &bytes) {
            return;
        }
        let Some(peers) = &mut self.peers else { return };
        peers.took(&bytes);
        let now = self.clock.now();
        match Audience::of(&bytes) {
            Some(Audience::Member) => {
                let from = self.member.replica().tip().seat_of(&from);
                self.member.step(now, Input::Told { from, bytes }, out);
            }
            Some(Audience::Group) => {
                if let Some(client) = self.member.book().client(&from) {
                    let input = Input::Heard { from: client, bytes, key: Some(from) };
                    self.member.step(now, input, out);
                }
            }
            Some(Audience::Client) => match wire::open(&bytes) {
                Ok(Message::Word(word)) => said.extend(peers.ear().on_word(&from, word)),
                Ok(Message::Changes(changes)) => self.on_changes(changes, out),
                _ => {}
            },
            None => {}
        }
    }

    /// Tells a client what follows from a decision.
    fn say(&mut self, to: Client, slot: Slot, bytes: Vec<u8>, said: &mut Vec<Vec<u8>>) {
        let (me, client) = self.me;
        let replica = self.member.replica();
        if to == client && replica.is_alone() {
            return said.push(bytes);
        }
        let Some(peers) = self.peers.as_mut().filter(|_| replica.is_member()) else { return };
        let word = Word { slot, leader: replica.tip().leader, bytes };
        if to == client {
            said.extend(peers.ear().on_word(&me, word));
        } else if let Some(machine) = self.member.book().machine(to) {
            peers.send(&machine.key, wire::seal(&Message::Word(word)));
        }
    }

    fn show(&self, to: Client, bytes: Vec<u8>) {
        let machine = self.member.book().machine(to);
        if let (Some(peers), Some(machine)) = (&self.peers, machine) {
            peers.send(&machine.key, bytes);
        }
    }

    /// The book of machines may have changed: others may have to be met.
    fn read_book(&mut self) {
        self.listed = Roster::read(self.member.book());
        let Some(peers) = &mut self.peers else { return };
        peers.read_book(self.member.book(), &self.me.0);
    }

    /// The members may have changed: this machine's client has to know whom to ask.
    fn read_roll(&mut self) {
        let Some(peers) = &mut self.peers else { return };
        let (replica, epoch) = (self.member.replica(), peers.ear().roll().epoch);
        if replica.epoch_known() > epoch {
            peers.ear().on_changes(&replica.changes_since(epoch));
        }
        peers.read_roll();
        peers.expire();
    }

    /// Everything that the store has is void; what the member has now takes its place.
    fn replace_store(&mut self) -> Result<(), Failure> {
        let Some(checkpoint) = self.member.checkpoint() else {
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

    /// Whether so many records have changed that they have to be stored.
    fn is_much_changed(&self) -> bool {
        self.member.directory().sizes().changes > self.member.limits().changes_max
    }

    /// While the disk is full, waits if so much is not in the store that no more may come.
    fn await_room(&mut self) -> Result<(), Failure> {
        let Limits { log_bytes_max, changes_max, .. } = *self.member.limits();
        let is_stuffed = |group: &Group| {
            group.is_full
                && (group.log_bytes / FULL_FACTOR as u64 > log_bytes_max
                    || group.member.directory().sizes().changes / FULL_FACTOR > changes_max)
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
    fn is_log_long(&self) -> bool {
        if self.log_bytes > self.member.limits().log_bytes_max {
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
        if self.has_news() {
            let Some(checkpoint) = self.member.checkpoint() else { return Ok(()) };
            // Else the store could know more than the log after a crash.
            self.patiently(|group| group.log.sync())?;
            self.store.save(checkpoint.mark, &checkpoint.state, checkpoint.changes)?;
            // The log goes back to the checkpoint before this one, in case this one turns out bad.
            self.log.drop_before(self.stored.mark.min(checkpoint.mark) + 1)?;
            self.stored = Stored { mark: checkpoint.mark, height: checkpoint.height };
        }
        self.log_bytes = 0;
        self.content.owe(0);
        self.records_max = self.member.limits().records_max;
        Ok(())
    }

    /// All records as they are, if they are in the store.
    fn survey(&self) -> Option<Result<Survey, String>> {
        if !self.member.replica().is_member() {
            let what = "this machine is no member of the group and has no records; run `croft fsck` on \
                        one that is (`croft status` shows which)";
            return Some(Err(what.into()));
        }
        let outline = self.member.directory().outline().filter(|_| !self.has_news())?;
        let members = self.member.replica().members().list().len();
        Some(Ok(Survey { records: self.store.freeze(), outline, members }))
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
            is_passed_over: replica.is_passed_over(),
            roster: Roster::new(replica, Arc::clone(&self.listed)),
            is_named: self.member.book().is_named(),
            expires: self.peers.as_ref().map(Peers::expires),
        };
    }
}

fn no_room(what: &'static str, path: &str) -> Failure {
    let full = std::io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
    Failure::of(what, path)(full)
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
